#include "cli/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/exit_codes.h"
#include "base/nearest_word.h"
#include "base/terminal.h"

namespace stanchion::cli {
namespace {

// The word that was most likely meant: one typing error away, or the only one that begins with or
// contains what was typed, or the one of those that all the others contain.
std::string_view suggestion(std::string_view typed, const std::vector<std::string_view>& known) {
  if (const std::string_view near = nearest_word(typed, known); !near.empty()) return near;
  if (typed.size() < 2) return {};
  std::vector<std::string_view> beginning;
  std::vector<std::string_view> holding;
  const std::string_view stem = typed.starts_with("--") ? typed.substr(2) : typed;
  for (const std::string_view word : known) {
    if (word.starts_with(typed)) beginning.push_back(word);
    if (stem.size() > 2 && word.find(stem) != std::string_view::npos) holding.push_back(word);
  }
  if (beginning.size() == 1) return beginning.front();
  if (holding.empty()) return {};
  const std::string_view least = std::ranges::min(holding, {}, &std::string_view::size);
  const std::string_view its_stem = least.substr(least.find_first_not_of('-'));
  const bool in_all = std::ranges::all_of(holding, [&](std::string_view word) {
    return word.find(its_stem) != std::string_view::npos;
  });
  return in_all ? least : std::string_view();
}

bool is_flag(std::string_view word) {
  return word.size() > 1 && word.starts_with('-') && word != "--";
}

// "--listen=1" as "--listen".
std::string_view flag_name(std::string_view word) {
  return word.substr(0, word.find('='));
}

std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// What CLI11 reports about a value, in our own words where its own are too terse.
std::string in_words(std::string what) {
  const std::size_t colon = what.find(": ");
  if (colon == std::string::npos) return shown(what);
  if (what.find(": At Most 1 required but received") == colon)
    return what.substr(0, colon) + " is given more than once";
  if (what.find(": 1 required ") == colon && what.ends_with(" missing"))
    return what.substr(0, colon) + " needs a value";
  return shown(what);
}

// If a standard stream is closed, the first file opened would get its number, and output would be
// written into that file. So a descriptor that cannot be written to (or read from) is put in its
// place.
void occupy_closed_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

// Lost output, to a full disk for example, must not count as success.
bool flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  complain(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  return false;
}

// Says what is too much.
std::string about_extra(const CLI::App& program, const CLI::App& command, const std::string& word) {
  if (!is_flag(word)) return fmt::format("\"{}\" is one argument too many", shown(word));
  const std::string name(flag_name(word));
  const std::vector<std::string> own = flag_names(command);
  std::vector<std::string> others;
  for (const CLI::App* other : program.get_subcommands([](const CLI::App*) { return true; }))
    if (std::ranges::count(flag_names(*other), name) > 0) others.push_back(other->get_name());
  // A flag before the command belongs after it.
  if (&command == &program && !others.empty())
    return fmt::format("{} goes after its command: stanchion {} {}", name, others.front(), name);
  const std::string_view meant = suggestion(name, {own.begin(), own.end()});
  if (!meant.empty())
    return fmt::format("there is no flag {}; did you mean {}?", shown(name), meant);
  if (!others.empty())
    return fmt::format("there is no flag {} here; it is one of {}", name, fmt::join(others, ", "));
  return fmt::format("there is no flag {}", shown(name));
}

int refuse(const CLI::App& program, const CLI::ParseError& error) {
  const auto chosen = program.get_subcommands();
  // Arguments before the command are the program's.
  std::vector<std::string> extras = program.remaining();
  const bool of_program = chosen.empty() || !extras.empty();
  const CLI::App& command = of_program ? program : *chosen.front();
  if (!of_program) extras = command.remaining();
  const std::string name = of_program ? "" : command.get_name() + ": ";
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !extras.empty()) {
    // The word after an unknown flag is likely its value, so it is not reported as another mistake.
    if (std::ranges::any_of(extras, is_flag))
      std::erase_if(extras, [](const std::string& word) { return !is_flag(word); });
    for (const std::string& word : extras) complain(name + about_extra(program, command, word));
  } else {
    complain(name + in_words(error.what()));
  }
  complain("for help: stanchion help" + (of_program ? "" : " " + command.get_name()));
  return kExitSettings;
}

}  // namespace

Program::Program(BuildInfo build)
    : build_(std::move(build)),
      app_(std::make_unique<CLI::App>(
          "Stanchion: Amazon SQS on your own machines. A send is on disk before it is "
          "acknowledged.",
          "stanchion")) {
  app_->set_version_flag("--version", "stanchion " + build_.version);
  app_->require_subcommand(0, 1);
}

Program::~Program() = default;

Command Program::add(const std::string& name, const std::string& summary,
                     std::function<int()> run) {
  CLI::App* command = app_->add_subcommand(name, summary);
  commands_[command] = std::move(run);
  return Command(*command);
}

int Program::run(int argc, char** argv) {
  occupy_closed_streams();
  try {
    const int status = run_command(argc, argv);
    return flush_output() ? status : std::max(status, kExitFailed);
  } catch (const std::system_error& error) {
    // Thrown by fmt::print.
    complain("cannot write to standard output: " + error.code().message());
    return kExitFailed;
  }
}

int Program::run_command(int argc, char** argv) {
  if (argc < 2) {
    fmt::print("{}", to_overview(text()));
    return kExitSettings;
  }
  const std::string_view word = argv[1];
  const auto is_named = [&](const auto& command) { return command.first->get_name() == word; };
  if (!word.starts_with('-') && std::ranges::none_of(commands_, is_named))
    return refuse_command(word);
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app_->get_subcommands();
    fmt::print("{}", chosen.empty() ? to_overview(text())
                                    : to_help(app_->get_name(), describe_command(*chosen.front())));
    return kExitOk;
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    return refuse(*app_, error);
  }
  const auto chosen = app_->get_subcommands();
  if (!chosen.empty()) return commands_.at(chosen.front())();
  complain("no command given; stanchion help lists them");
  return kExitSettings;
}

int Program::refuse_command(std::string_view word) const {
  std::vector<std::string> names;
  for (const CommandText& command : text().commands) names.push_back(command.name);
  const std::string_view meant = suggestion(word, {names.begin(), names.end()});
  complain(meant.empty()
               ? fmt::format("there is no command \"{}\"; known are {}", shown(word),
                             fmt::join(names, ", "))
               : fmt::format("there is no command \"{}\"; did you mean {}?", shown(word), meant));
  return kExitSettings;
}

}  // namespace stanchion::cli
