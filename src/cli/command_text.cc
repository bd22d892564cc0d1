#include "cli/command_text.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace stanchion::cli {
namespace {

constexpr std::size_t kLineMax = 80;
constexpr std::size_t kIndent = 6;

// Wraps to lines of at most kLineMax columns, each indented by `indent` spaces.
std::string wrap(std::string_view text, std::size_t indent) {
  std::string out;
  std::string line(indent, ' ');
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.size() > indent && line.size() + 1 + word.size() > kLineMax) {
      out += line + "\n";
      line.assign(indent, ' ');
    }
    if (line.size() > indent) line += ' ';
    line += word;
  }
  return out + line + "\n";
}

// Keeps lines that begin with two spaces, and joins the others.
std::string wrap_notes(std::string_view notes) {
  std::string out;
  std::string flowing;
  const auto end_paragraph = [&] {
    if (!flowing.empty()) out += wrap(std::exchange(flowing, {}), 0);
  };
  while (!notes.empty()) {
    const std::string line(notes.substr(0, notes.find('\n')));
    notes.remove_prefix(std::min(line.size() + 1, notes.size()));
    if (line.starts_with("  ")) {
      end_paragraph();
      out += line + "\n";
    } else {
      flowing += flowing.empty() ? line : " " + line;
    }
  }
  end_paragraph();
  return out;
}

// "Seconds to measure (default: 10)".
std::string help_of(const FlagText& flag) {
  std::string text = flag.help;
  if (!flag.fallback.empty()) text += fmt::format(" (default: {})", flag.fallback);
  if (flag.required) text += " (required)";
  return text;
}

FlagText describe_flag(const CLI::Option& option) {
  FlagText text;
  if (!option.get_lnames().empty()) text.name = "--" + option.get_lnames().front();
  if (!option.get_snames().empty()) text.other = "-" + option.get_snames().front();
  if (option.get_items_expected_max() > 0) text.value = option.get_type_name();
  text.help = option.get_description();
  text.fallback = option.get_default_str();
  if (text.value.empty()) text.fallback.clear();
  text.required = option.get_required();
  return text;
}

}  // namespace

std::vector<std::string> choices_of(std::string_view value) {
  std::vector<std::string> words;
  if (value.find('|') == std::string_view::npos) return words;
  while (true) {
    const std::size_t bar = value.find('|');
    words.emplace_back(value.substr(0, bar));
    if (bar == std::string_view::npos) return words;
    value.remove_prefix(bar + 1);
  }
}

CommandText describe_command(const CLI::App& command) {
  CommandText text{.name = command.get_name(),
                   .summary = command.get_description(),
                   .arguments = {},
                   .flags = {},
                   .notes = command.get_footer()};
  for (const CLI::Option* option : command.get_options()) {
    if (option->nonpositional()) {
      text.flags.push_back(describe_flag(*option));
    } else {
      const std::string name = option->get_name(true);
      const std::string type = option->get_type_name();
      text.arguments.push_back({name, choices_of(type).empty() ? name : type,
                                option->get_description(), option->get_required()});
    }
  }
  // Everybody knows --help, so it comes last.
  std::ranges::stable_partition(text.flags, [](const FlagText& f) { return f.name != "--help"; });
  return text;
}

ProgramText describe_program(const CLI::App& program) {
  ProgramText text{program.get_name(), program.get_description(), {}};
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; }))
    text.commands.push_back(describe_command(*command));
  return text;
}

std::string to_help(std::string_view program, const CommandText& command) {
  std::string usage = fmt::format("{} {}", program, command.name);
  for (const FlagText& flag : command.flags)
    if (flag.required) usage += fmt::format(" {} {}", flag.name, flag.value);
  for (const ArgumentText& argument : command.arguments)
    usage += argument.required ? " " + argument.name : " [" + argument.name + "]";
  std::string out = wrap(command.summary + ".", 0);
  out += fmt::format("\nUsage: {} [FLAGS]\n", usage);
  if (!command.arguments.empty()) out += "\n";
  for (const ArgumentText& argument : command.arguments)
    out += "  " + argument.name + "\n" + wrap(argument.help, kIndent);
  out += "\nFlags:\n";
  for (const FlagText& flag : command.flags) {
    out += "  " + flag.name;
    if (!flag.value.empty()) out += " " + flag.value;
    if (!flag.other.empty()) out += ", " + flag.other;
    out += "\n" + wrap(help_of(flag), kIndent);
  }
  if (!command.notes.empty()) out += "\n" + wrap_notes(command.notes);
  return out;
}

std::string to_overview(const ProgramText& program) {
  std::size_t width = 0;
  for (const CommandText& command : program.commands) width = std::max(width, command.name.size());
  std::string out = program.summary + "\n\nUsage: " + program.name + " COMMAND [FLAGS]\n\n";
  for (const CommandText& command : program.commands)
    out += fmt::format("  {:<{}}  {}\n", command.name, width, command.summary);
  out += fmt::format(
      "\n"
      "To start a server for this machine, with its data in ./stanchion-data:\n"
      "  {0} serve\n"
      "It prints a command to try. For help on a command: {0} help COMMAND\n",
      program.name);
  return out;
}

}  // namespace stanchion::cli
