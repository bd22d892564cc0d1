#include "cli/import.h"

#include <fmt/format.h>

#include <memory>

#include "base/exit_codes.h"
#include "base/terminal.h"
#include "cli/program.h"
#include "settings/elasticmq.h"
#include "settings/settings_file.h"

namespace stanchion::cli {
namespace {

constexpr std::size_t kImportSizeMax = 1 << 20;

int run_import(const std::string& file) {
  const auto text = settings::read_small_file(file, kImportSizeMax);
  if (!text) return give_up(text.error().message, kExitFailed);
  const auto toml = settings::import_elasticmq(*text);
  if (!toml) return give_up(fmt::format("{}: {}", file, toml.error().message), kExitFailed);
  fmt::print("{}", *toml);
  // Values that ElasticMQ accepts and SQS does not are reported now rather than at the first start.
  settings::Settings settings;
  auto problems = settings::read_settings_text(*toml, "the result", settings);
  settings.server.insecure = true;
  if (problems.empty()) problems = find_problems(settings);
  for (const std::string& problem : problems) complain("to be corrected: " + problem);
  return kExitOk;
}

}  // namespace

void add_import(Program& program) {
  const auto file = std::make_shared<std::string>();
  Command command = program.add("import", "Print an ElasticMQ configuration as stanchion.toml",
                                [file] { return run_import(*file); });
  command.option("FILE", *file, "The file, as elasticmq.conf").required();
  command.notes(
      "Example:\n"
      "  stanchion import elasticmq.conf > stanchion.toml");
}

}  // namespace stanchion::cli
