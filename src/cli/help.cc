#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/exit_codes.h"
#include "cli/manual.h"
#include "cli/program.h"

namespace stanchion::cli {
namespace {

int print_help(const Program& program, const std::string& name) {
  const ProgramText text = program.text();
  if (name.empty()) {
    fmt::print("{}", to_overview(text));
    return kExitOk;
  }
  const auto command = std::ranges::find(text.commands, name, &CommandText::name);
  if (command == text.commands.end()) return program.refuse_command(name);
  fmt::print("{}", to_help(text.name, *command));
  return kExitOk;
}

}  // namespace

void add_help(Program& program) {
  struct Wanted {
    std::string command;
    bool manual = false;
  };
  const auto wanted = std::make_shared<Wanted>();
  Command help = program.add("help", "List the commands, or describe one", [&program, wanted] {
    if (!wanted->manual) return print_help(program, wanted->command);
    fmt::print("{}", to_manual(program.text(), program.build().version));
    return kExitOk;
  });
  help.option("COMMAND", wanted->command, "The command; without it, the list of commands");
  help.flag("--man", wanted->manual, "Print the manual page, stanchion.1, instead");

  program.add("version", "Print the version, commit, compiler and libraries", [&program] {
    fmt::print("stanchion {}\n{}", program.build().version, program.build().details);
    return kExitOk;
  });
}

}  // namespace stanchion::cli
