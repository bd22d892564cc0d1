#include "cli/serve.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "base/exit_codes.h"
#include "base/terminal.h"
#include "cli/program.h"
#include "server/server.h"
#include "settings/settings.h"
#include "settings/settings_sources.h"
#include "settings/toml_text.h"

namespace stanchion::cli {
namespace {

struct Flags {
  std::string config;
  bool print = false;
  std::map<std::string, Option> values;  // By the name of the setting.
};

// The default of a value, as a person would write it.
std::string fallback_of(const settings::Setting& setting) {
  // The default depends on the machine; the help says how.
  if (setting.name() == "server.memory") return "";
  std::string text = setting.value();
  return text.starts_with('"') ? text.substr(1, text.size() - 2) : text;
}

Option add_flag(const Command& command, const settings::Setting& setting) {
  const std::string help(setting.help);
  if (setting.is_switch()) return command.flag(setting.flag(), help);
  const Option option = command.option(setting.flag(), help);
  if (setting.is_repeated()) option.all_count();
  return option.with_default(fallback_of(setting)).value(setting.value_name());
}

// A flag that is given several times has its values one a line.
std::string value_of(const Option& option) {
  return fmt::format("{}", fmt::join(option.values(), "\n"));
}

int run(const Flags& flags) {
  settings::Sources sources{.config = std::nullopt,
                            .environment = std::getenv,
                            .flags = {},
                            .variables = settings::variables_of_process()};
  if (!flags.config.empty()) sources.config = flags.config;
  for (const auto& [name, option] : flags.values)
    if (option.given()) sources.flags[name] = value_of(option);
  const settings::Loaded loaded = settings::load_settings(sources);
  for (const std::string& problem : loaded.problems) complain(problem);
  if (!loaded.problems.empty()) return kExitSettings;
  if (flags.print) {
    fmt::print("{}", settings::to_toml(loaded.settings));
    return kExitOk;
  }
  return server::serve(loaded.settings, sources);
}

}  // namespace

void add_serve(Program& program) {
  const auto flags = std::make_shared<Flags>();
  Command command = program.add("serve", "Start the server", [flags] { return run(*flags); });
  command
      .option("--config", flags->config,
              "The file with settings, accounts and queues; unless given, ./stanchion.toml "
              "or /etc/stanchion/stanchion.toml, if it exists")
      .value("FILE");
  command.flag("--print-config", flags->print, "Print the resulting settings, and exit");
  settings::Settings defaults;
  for (const settings::Setting& setting : list_settings(defaults))
    flags->values.emplace(setting.name(), add_flag(command, setting));
  flags->values.at("server.in_memory").excludes(flags->values.at("server.data"));
  command.notes(
      "Every flag but --config and --print-config can also be set in stanchion.toml or in the\n"
      "environment (--log-level: STANCHION_LOG_LEVEL; --config: STANCHION_CONFIG). Flags\n"
      "override the environment, which overrides the file.\n"
      "Example:\n"
      "  stanchion serve --data ./stanchion-data");
}

}  // namespace stanchion::cli
