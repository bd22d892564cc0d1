#include "cli/backup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "backup/backup.h"
#include "base/date.h"
#include "base/exit_codes.h"
#include "base/terminal.h"
#include "cli/program.h"
#include "settings/settings_sources.h"

namespace stanchion::cli {
namespace {

struct Wanted {
  std::string data;
  std::string to;
  bool no_check = false;
};

std::string describe(const backup::Copied& made, const std::string& data, const std::string& to) {
  if (!made.checked)
    return fmt::format("{} is a copy of {}; stanchion inspect shows what is readable", to, data);
  if (made.fleet.empty()) return fmt::format("{} is a complete backup of {}", to, data);
  std::vector<std::uint64_t> missing;
  for (const ShardIndex shard : made.missing) missing.push_back(shard.value());
  const std::string what = fmt::format(
      "{} has {} of the {} shards of the fleet {}{}", to, made.shards - missing.size(), made.shards,
      made.fleet, missing.size() < made.shards ? ", the oldest as of " + date(made.oldest) : "");
  if (missing.empty()) return what + "; stanchion fleet rebuild can create the fleet again from it";
  return fmt::format(
      "{}; if the others ({}) have ever been used, also back up a node that has them", what,
      fmt::join(missing, ", "));
}

int run_backup(const Wanted& wanted) {
  std::string data = wanted.data;
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
  const auto check = wanted.no_check ? backup::Check::kNot : backup::Check::kFirst;
  const auto made = backup::back_up(data, wanted.to, check);
  if (!made) {
    complain(fmt::format("no backup was made: {}", made.error().message));
    return kExitFailed;
  }
  fmt::print("{}\n", describe(*made, data, wanted.to));
  return kExitOk;
}

}  // namespace

void add_backup(Program& program) {
  const auto wanted = std::make_shared<Wanted>();
  Command command = program.add(
      "backup", "Make a consistent copy of a data directory, whether its server runs or not",
      [wanted] { return run_backup(*wanted); });
  command.option("--to", wanted->to, "The destination: a new or empty directory")
      .required()
      .value("DIR");
  command
      .option("--data", wanted->data,
              "The data directory; unless given, from the file and the environment")
      .value("DIR");
  command.flag("--no-check", wanted->no_check,
               "Copy a stopped server's directory even if it is damaged");
  command.notes(
      "The directory of a stopped server is read first, and refused if it is "
      "damaged.\n"
      "stanchion fleet rebuild can create a fleet from the backups of its nodes.\n"
      "Example:\n"
      "  stanchion backup --data ./stanchion-data --to ./backup-$(date +%F)");
}

}  // namespace stanchion::cli
