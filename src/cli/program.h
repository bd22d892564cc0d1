// The program as its commands: each is described once, by its own file, and everything else is made
// of these descriptions: parsing, help, what is said about a slip, the manual page, completions.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "cli/command_text.h"

namespace stanchion::cli {

struct BuildInfo {
  std::string version;
  std::string details;  // Lines: the commit, the compiler, the libraries.
};

class Program {
 public:
  explicit Program(BuildInfo build);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // A command, to which its flags are then added; `run` gives the exit status.
  CLI::App& add(const std::string& name, const std::string& summary, std::function<int()> run);

  // Does what the command line says; gives the exit status.
  int run(int argc, char** argv);

  const BuildInfo& build() const { return build_; }
  ProgramText text() const { return describe_program(app_); }

  // Says that there is no such command, and which one may have been meant.
  int refuse_command(std::string_view word) const;

 private:
  int run_command(int argc, char** argv);
  int refuse(const CLI::ParseError& error) const;
  std::string about_extra(const CLI::App& command, const std::string& word) const;

  const BuildInfo build_;
  CLI::App app_;
  std::map<const CLI::App*, std::function<int()>> commands_;
};

// "stanchion: PROBLEM" on standard error. A standard error that cannot be written to is no reason
// to do anything else than without it.
void complain(std::string_view problem);

// A line on standard output that somebody may read at once, or nobody: whether it could be written
// makes no difference.
void announce(std::string_view line);

// What somebody typed, fit to be shown: no control characters, no broken UTF-8, not endless.
std::string shown(std::string_view typed);

}  // namespace stanchion::cli
