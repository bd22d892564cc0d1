// The program as a list of commands: each is described once, in its own file, and everything else
// is generated from these descriptions: parsing, help, suggestions for typing errors, the manual
// page, completions.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/command_text.h"

namespace stanchion::cli {

struct BuildInfo {
  std::string version;
  std::string details;  // Lines: the commit, the compiler, the libraries.
};

class Program {
 public:
  explicit Program(BuildInfo build);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Adds a command, to which its flags are then added; `run` returns the exit status.
  Command add(const std::string& name, const std::string& summary, std::function<int()> run);

  // Executes the command line; returns the exit status.
  int run(int argc, char** argv);

  const BuildInfo& build() const { return build_; }
  ProgramText text() const { return describe_program(*app_); }

  // Reports that there is no such command, and suggests one.
  int refuse_command(std::string_view word) const;

 private:
  int run_command(int argc, char** argv);

  const BuildInfo build_;
  const std::unique_ptr<CLI::App> app_;
  std::map<const CLI::App*, std::function<int()>> commands_;
};

}  // namespace stanchion::cli
