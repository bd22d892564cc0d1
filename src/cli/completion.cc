#include "cli/completion.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "base/exit_codes.h"
#include "base/terminal.h"
#include "cli/program.h"

namespace stanchion::cli {
namespace {

// What a shell can offer as a value.
enum class Offer { kNothing, kFiles, kDirectories, kWords };

struct Value {
  Offer offer = Offer::kNothing;
  std::string words;  // Separated by spaces.
};

std::string names_of(const ProgramText& program) {
  std::vector<std::string> names;
  for (const CommandText& command : program.commands) names.push_back(command.name);
  return fmt::format("{}", fmt::join(names, " "));
}

Value value_of(const ProgramText& program, std::string_view value) {
  if (value == "FILE" || value == "PATH") return {Offer::kFiles, ""};
  if (value == "DIR") return {Offer::kDirectories, ""};
  if (value == "COMMAND") return {Offer::kWords, names_of(program)};
  const auto choices = choices_of(value);
  if (choices.empty()) return {};
  return {Offer::kWords, fmt::format("{}", fmt::join(choices, " "))};
}

std::string replace_all(std::string_view text, std::string_view letters, std::string_view before) {
  std::string out;
  for (const char c : text) {
    if (letters.find(c) != std::string_view::npos) out += before;
    out.push_back(c);
  }
  return out;
}

// Bash.

std::string bash_offer(const Value& value) {
  switch (value.offer) {
    case Offer::kNothing:
      return ":";
    case Offer::kFiles:
      return "_stanchion_paths -f";
    case Offer::kDirectories:
      return "_stanchion_paths -d";
    case Offer::kWords:
      return fmt::format("_stanchion_words '{}'", value.words);
  }
  return ":";
}

constexpr std::string_view kBashBeginning =
    R"(# Completion of bash, made by: stanchion completion bash
_stanchion_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word")
}
_stanchion_paths() {
  compopt -o filenames
  mapfile -t COMPREPLY < <(compgen "$1" -- "$word")
}
_stanchion() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  COMPREPLY=()
  # Bash takes --flag=value apart.
  if [ "$word" = = ]; then
    word=
  elif [ "$before" = = ]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
)";

// Zsh.

std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : replace_all(text, "[]:\\", "\\")) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

std::string zsh_offer(const Value& value) {
  switch (value.offer) {
    case Offer::kNothing:
      return "";
    case Offer::kFiles:
      return "_files";
    case Offer::kDirectories:
      return "_files -/";
    case Offer::kWords:
      return fmt::format("({})", value.words);
  }
  return "";
}

std::string zsh_arguments(const ProgramText& program, const CommandText& command) {
  std::string out = "_arguments";
  for (const FlagText& flag : command.flags) {
    out += fmt::format(" \\\n            '{}{}[{}]", flag.name, flag.value.empty() ? "" : "=",
                       zsh_text(flag.help));
    if (!flag.value.empty())
      out += fmt::format(":{}:{}", zsh_text(flag.value), zsh_offer(value_of(program, flag.value)));
    out += "'";
  }
  for (const ArgumentText& argument : command.arguments)
    out += fmt::format(" \\\n            ':{}:{}'", zsh_text(argument.name),
                       zsh_offer(value_of(program, argument.value)));
  return out;
}

// Fish.

std::string fish_text(std::string_view text) {
  return "'" + replace_all(text, "\\'", "\\") + "'";
}

std::string fish_offer(const Value& value) {
  switch (value.offer) {
    case Offer::kNothing:
      return " -x";
    case Offer::kFiles:
      return " -r -F";
    case Offer::kDirectories:
      return " -x -a '(__fish_complete_directories)'";
    case Offer::kWords:
      return fmt::format(" -x -a {}", fish_text(value.words));
  }
  return "";
}

int print_completion(const Program& program, const std::string& shell) {
  if (shell == "bash") {
    fmt::print("{}", to_bash_completion(program.text()));
  } else if (shell == "zsh") {
    fmt::print("{}", to_zsh_completion(program.text()));
  } else if (shell == "fish") {
    fmt::print("{}", to_fish_completion(program.text()));
  } else {
    return give_up(fmt::format("completion: \"{}\" is not one of bash, zsh, fish", shown(shell)),
                   kExitSettings);
  }
  return kExitOk;
}

}  // namespace

std::string to_bash_completion(const ProgramText& program) {
  std::string out(kBashBeginning);
  out += fmt::format(
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    _stanchion_words '{} --help --version'\n    return\n  fi\n"
      "  case \"${{COMP_WORDS[1]}} $before\" in\n",
      names_of(program));
  for (const CommandText& command : program.commands)
    for (const FlagText& flag : command.flags)
      if (!flag.value.empty())
        out += fmt::format("    '{} {}') {}; return ;;\n", command.name, flag.name,
                           bash_offer(value_of(program, flag.value)));
  out += "  esac\n  case \"${COMP_WORDS[1]}\" in\n";
  for (const CommandText& command : program.commands) {
    std::string flags;
    for (const FlagText& flag : command.flags) flags += flag.name + " ";
    const Value argument = command.arguments.empty()
                               ? Value{Offer::kWords, flags}
                               : value_of(program, command.arguments.front().value);
    out += fmt::format(
        "    {})\n      case \"$word\" in\n        -*) _stanchion_words '{}' ;;\n"
        "        *) {} ;;\n      esac ;;\n",
        command.name, flags, bash_offer(argument));
  }
  out += "  esac\n}\ncomplete -F _stanchion stanchion\n";
  return out;
}

std::string to_zsh_completion(const ProgramText& program) {
  std::string out =
      "#compdef stanchion\n# Completion of zsh, made by: stanchion completion zsh\n"
      "_stanchion() {\n"
      "  local curcontext=\"$curcontext\" state line\n"
      "  local -a commands\n  commands=(\n";
  for (const CommandText& command : program.commands)
    out += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.summary));
  out +=
      "  )\n"
      "  _arguments -C '--help[All about it]' '--version[The version]' \\\n"
      "    ':command:->command' '*::argument:->argument'\n"
      "  case $state in\n"
      "    command) _describe -t commands command commands ;;\n"
      "    argument)\n"
      "      case $words[1] in\n";
  for (const CommandText& command : program.commands)
    out += fmt::format("        {})\n          {} ;;\n", command.name,
                       zsh_arguments(program, command));
  out +=
      "      esac ;;\n  esac\n}\n"
      "if [ \"$funcstack[1]\" = _stanchion ]; then\n  _stanchion \"$@\"\nelse\n"
      "  compdef _stanchion stanchion\nfi\n";
  return out;
}

std::string to_fish_completion(const ProgramText& program) {
  std::string out =
      "# Completion of fish, made by: stanchion completion fish\n"
      "complete -c stanchion -f\n"
      "complete -c stanchion -n __fish_use_subcommand -l version -d 'The version'\n";
  for (const CommandText& command : program.commands) {
    out += fmt::format("complete -c stanchion -n __fish_use_subcommand -a {} -d {}\n", command.name,
                       fish_text(command.summary));
    const std::string here =
        fmt::format("complete -c stanchion -n '__fish_seen_subcommand_from {}'", command.name);
    for (const FlagText& flag : command.flags)
      out += fmt::format("{} -l {}{} -d {}\n", here, flag.name.substr(2),
                         flag.value.empty() ? "" : fish_offer(value_of(program, flag.value)),
                         fish_text(flag.help));
    for (const ArgumentText& argument : command.arguments)
      if (const Value value = value_of(program, argument.value); value.offer == Offer::kFiles) {
        out += here + " -F\n";
      } else if (value.offer != Offer::kNothing) {
        out += fmt::format("{} -a {}\n", here,
                           value.offer == Offer::kWords ? fish_text(value.words)
                                                        : "'(__fish_complete_directories)'");
      }
  }
  return out;
}

void add_completion(Program& program) {
  const auto shell = std::make_shared<std::string>();
  Command command = program.add("completion", "Print a script that completes commands and flags",
                                [&program, shell] { return print_completion(program, *shell); });
  command.option("SHELL", *shell, "The shell: bash, zsh or fish").required().value("bash|zsh|fish");
  command.notes(
      "The Debian package installs all three. Elsewhere, for bash in ~/.bashrc, for zsh after\n"
      "compinit in ~/.zshrc, for fish in ~/.config/fish/config.fish:\n"
      "  source <(stanchion completion bash)\n"
      "  source <(stanchion completion zsh)\n"
      "  stanchion completion fish | source");
}

}  // namespace stanchion::cli
