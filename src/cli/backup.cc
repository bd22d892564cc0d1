#include "cli/backup.h"

#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "backup/backup.h"
#include "cli/exit_codes.h"
#include "cli/program.h"
#include "settings/settings_sources.h"

namespace stanchion::cli {
namespace {

int run_backup(std::string data, const std::string& to) {
  if (data.empty()) {
    // A server on this machine reads the same file and environment.
    const settings::Loaded loaded =
        settings::load_settings({.config = std::nullopt, .environment = std::getenv, .flags = {}});
    if (loaded.settings.server.in_memory) {
      complain("the settings say in_memory: there is nothing on disk to back up");
      return kExitSettings;
    }
    data = loaded.settings.server.data;
  }
  if (const Status made = backup::back_up(data, to); !made) {
    complain(fmt::format("no backup was made: {}", made.error().message));
    return kExitFailed;
  }
  fmt::print("{} is a complete backup of {}\n", to, data);
  return kExitOk;
}

}  // namespace

void add_backup(Program& program) {
  struct Places {
    std::string data;
    std::string to;
  };
  const auto places = std::make_shared<Places>();
  CLI::App& command =
      program.add("backup", "Copy a data directory, consistently, while its server runs or not",
                  [places] { return run_backup(places->data, places->to); });
  command.add_option("--to", places->to, "Where to: a new or empty directory")
      ->required()
      ->type_name("DIR");
  command
      .add_option("--data", places->data,
                  "The data directory; else the one that the file and the environment name")
      ->type_name("DIR");
  command.footer(
      "Example:\n"
      "  stanchion backup --data ./stanchion-data --to ./backup-$(date +%F)");
}

}  // namespace stanchion::cli
