// Descriptions of the commands, from which --help, the manual page and shell completions are all
// generated, so that none of them can differ from the program's flags.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace stanchion::cli {

struct FlagText {
  std::string name;   // --listen
  std::string other;  // -h; empty: there is no other.
  std::string value;  // HOST:PORT, FILE, DIR, or a choice as json|query; empty: a switch.
  std::string help;
  std::string fallback;  // Its value if it is not given; empty: none, or the help says it.
  bool required = false;
};

struct ArgumentText {
  std::string name;   // FILE, DIR, COMMAND, SHELL.
  std::string value;  // The same, or a choice as bash|zsh|fish.
  std::string help;
  bool required = false;
};

struct CommandText {
  std::string name;
  std::string summary;  // One line.
  std::vector<ArgumentText> arguments;
  std::vector<FlagText> flags;
  std::string notes;  // Paragraphs; lines that begin with two spaces are kept as they are.
};

struct ProgramText {
  std::string name;
  std::string summary;
  std::vector<CommandText> commands;
};

CommandText describe_command(const CLI::App& command);
ProgramText describe_program(const CLI::App& program);

// "json|query" as its words; empty unless it is a choice.
std::vector<std::string> choices_of(std::string_view value);

// What `stanchion COMMAND --help` prints.
std::string to_help(std::string_view program, const CommandText& command);

// What `stanchion help` prints: what the program is, the commands with a line each, and the first
// step.
std::string to_overview(const ProgramText& program);

}  // namespace stanchion::cli
