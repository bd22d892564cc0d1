#include "cli/check_config.h"

#include <fmt/format.h>

#include <memory>

#include "base/exit_codes.h"
#include "base/terminal.h"
#include "cli/program.h"
#include "net/tls.h"
#include "settings/settings.h"
#include "settings/settings_file.h"

namespace stanchion::cli {
namespace {

int check_config(const std::string& file) {
  settings::Settings settings;
  auto problems = settings::read_settings_file(file, settings);
  if (problems.empty()) problems = settings::find_problems(settings);
  if (problems.empty() && !settings.tls.certificate.empty()) {
    const auto tls = net::TlsCredentials::load({settings.tls.certificate, settings.tls.key});
    if (!tls) problems.push_back(fmt::format("{}: tls: {}", file, tls.error().message));
  }
  for (const std::string& problem : problems) complain(problem);
  if (!problems.empty()) return kExitSettings;
  fmt::print("{} is fine: {} accounts, {} queues\n", file, settings.accounts.size(),
             settings.queues.size());
  return kExitOk;
}

}  // namespace

void add_check_config(Program& program) {
  const auto file = std::make_shared<std::string>();
  Command command =
      program.add("check-config", "Check a stanchion.toml", [file] { return check_config(*file); });
  command.option("FILE", *file, "The file").required();
  command.notes("Starts nothing. Exits with 0 if a server would accept the file, else with 2.");
}

}  // namespace stanchion::cli
