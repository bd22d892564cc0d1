// stanchion: one program, several commands.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>
#include <system_error>

#include "cli/backup.h"
#include "cli/bench.h"
#include "cli/exit_codes.h"
#include "cli/export.h"
#include "cli/health.h"
#include "cli/import.h"
#include "cli/inspect.h"
#include "cli/server.h"
#include "cli/settings.h"
#include "cli/settings_file.h"
#include "cli/settings_sources.h"
#include "cli/toml_text.h"
#include "net/tls.h"

// Read by jemalloc, if that is linked: memory that is no longer needed goes back to the system also
// while nothing happens.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "background_thread:true,max_background_threads:1";
}

namespace {

using namespace stanchion;
using namespace stanchion::cli;

constexpr std::size_t kImportSizeMax = 1 << 20;

int report(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) fmt::print(stderr, "stanchion: {}\n", problem);
  return kExitSettings;
}

int report_failure(const Failure& failure) {
  fmt::print(stderr, "stanchion: {}\n", failure.message);
  return kExitFailed;
}

// The flags of `serve`: one for every value of the settings.
class ServeCommand {
 public:
  explicit ServeCommand(CLI::App& app)
      : command_(*app.add_subcommand("serve", "Start the server")) {
    command_.footer(
        "Every flag can also stand in stanchion.toml or in the environment (--log-level:\n"
        "STANCHION_LOG_LEVEL); flags win over the environment, which wins over the file.\n"
        "Example:\n"
        "  stanchion serve --data ./stanchion-data\n"
        "  aws --endpoint-url http://127.0.0.1:9324 sqs create-queue --queue-name hello");
    command_.add_option("--config", config_,
                        "The file with settings, accounts and queues; else ./stanchion.toml or "
                        "/etc/stanchion/stanchion.toml, if there is one");
    command_.add_flag("--print-config", print_, "Print the settings that result, and end");
    Settings defaults;
    for (const Setting& setting : list_settings(defaults)) add(setting);
    options_.at("server.in_memory")->excludes(options_.at("server.data"));
  }

  int run() {
    Sources sources{.config = std::nullopt,
                    .environment = std::getenv,
                    .flags = {},
                    .variables = variables_of_process()};
    if (!config_.empty()) sources.config = config_;
    for (const auto& [name, option] : options_)
      if (option->count() > 0)
        sources.flags[name] = option->get_expected_min() == 0
                                  ? (option->as<bool>() ? "true" : "false")
                                  : option->as<std::string>();
    const Loaded loaded = load_settings(sources);
    if (!loaded.problems.empty()) return report(loaded.problems);
    if (!print_) return serve(loaded.settings, sources);
    fmt::print("{}", to_toml(loaded.settings));
    return kExitOk;
  }

 private:
  void add(const Setting& setting) {
    const std::string help(setting.help);
    options_[setting.name()] = setting.is_switch() ? command_.add_flag(setting.flag(), help)
                                                   : command_.add_option(setting.flag(), help)
                                                         ->default_str(setting.value())
                                                         ->type_name("TEXT");
  }

  CLI::App& command_;
  std::string config_;
  bool print_ = false;
  std::map<std::string, CLI::Option*> options_;
};

int check_config(const std::string& file) {
  Settings settings;
  auto problems = read_settings_file(file, settings);
  if (problems.empty()) problems = find_problems(settings);
  if (problems.empty() && !settings.tls.certificate.empty()) {
    const auto tls = net::TlsCredentials::load({settings.tls.certificate, settings.tls.key});
    if (!tls) problems.push_back(fmt::format("{}: tls: {}", file, tls.error().message));
  }
  if (!problems.empty()) return report(problems);
  fmt::print("{} is fine: {} accounts, {} queues\n", file, settings.accounts.size(),
             settings.queues.size());
  return kExitOk;
}

int check_health(const std::string& url) {
  if (!url.empty()) return health(url);
  // A server in the same container has the same file and environment. Whether they are enough to
  // start with is not the question, since it may have been given flags besides.
  const Loaded loaded =
      load_settings({.config = std::nullopt, .environment = std::getenv, .flags = {}});
  return health(local_url(loaded.settings));
}

int run_backup(std::string data, const std::string& to) {
  if (data.empty()) {
    // As for health: a server on this machine has the same file and environment.
    const Loaded loaded =
        load_settings({.config = std::nullopt, .environment = std::getenv, .flags = {}});
    if (loaded.settings.server.in_memory)
      return report({"the settings say in_memory: there is nothing on disk to back up"});
    data = loaded.settings.server.data;
  }
  if (const Status made = back_up(data, to); !made)
    return report_failure({fmt::format("no backup was made: {}", made.error().message)});
  fmt::print("{} is a complete backup of {}\n", to, data);
  return kExitOk;
}

int run_export(ExportSettings settings) {
  const auto from_environment = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  settings.access_key_id = from_environment("AWS_ACCESS_KEY_ID");
  settings.secret = from_environment("AWS_SECRET_ACCESS_KEY");
  settings.session_token = from_environment("AWS_SESSION_TOKEN");
  const auto text = export_queues(settings);
  if (!text) return report_failure(text.error());
  fmt::print("{}", *text);
  return kExitOk;
}

int run_import(const std::string& file) {
  const auto text = read_small_file(file, kImportSizeMax);
  if (!text) return report_failure(text.error());
  const auto toml = import_elasticmq(*text);
  if (!toml) return report_failure({fmt::format("{}: {}", file, toml.error().message)});
  fmt::print("{}", *toml);
  // What ElasticMQ takes and SQS does not is told now rather than at the first start.
  Settings settings;
  auto problems = read_settings_text(*toml, "the result", settings);
  settings.server.insecure = true;
  if (problems.empty()) problems = find_problems(settings);
  for (const std::string& problem : problems)
    fmt::print(stderr, "stanchion: to be put right: {}\n", problem);
  return kExitOk;
}

}  // namespace

// What cannot be told, because standard error takes nothing, ends with its exit code only.
int main(int argc, char** argv) try {
  CLI::App app{"Stanchion: Amazon SQS on your own machines"};
  app.set_version_flag("--version", std::string("stanchion ") + STANCHION_VERSION);
  app.require_subcommand(1);
  ServeCommand serve_command(app);

  std::string file;
  CLI::App* check = app.add_subcommand("check-config", "Say what is wrong with a stanchion.toml");
  check->add_option("FILE", file, "The file")->required();

  std::string health_url;
  CLI::App* health_command =
      app.add_subcommand("health", "End with 0 if the server is ready, else with 1");
  health_command->add_option("--url", health_url,
                             "The server, as http://127.0.0.1:9324; else where the file and the "
                             "environment say that it listens");

  std::string backup_data, backup_to;
  CLI::App* backup_command = app.add_subcommand(
      "backup", "Copy a data directory to another one, consistently, while its server runs or not");
  backup_command->add_option("--to", backup_to, "Where to, a new or empty directory")->required();
  backup_command->add_option(
      "--data", backup_data,
      "The data directory; else the one that the file and the environment name");

  ExportSettings export_settings;
  CLI::App* export_command = app.add_subcommand(
      "export",
      "Print the queues of a running server as TOML. Signs with $AWS_ACCESS_KEY_ID and "
      "$AWS_SECRET_ACCESS_KEY, if they are set");
  export_command->add_option("--endpoint", export_settings.endpoint, "The server")
      ->capture_default_str();
  export_command->add_option("--region", export_settings.region, "The region to sign for")
      ->capture_default_str();

  CLI::App* import_command =
      app.add_subcommand("import", "Print an ElasticMQ configuration as stanchion.toml");
  import_command->add_option("FILE", file, "The file, as elasticmq.conf")->required();

  InspectSettings inspect_settings;
  CLI::App* inspect_command =
      app.add_subcommand("inspect", "Print what a data directory holds, without changing it");
  inspect_command->add_option("DIR", inspect_settings.data, "The data directory")->required();
  inspect_command->add_flag("--facts", inspect_settings.facts, "Print every fact of the journal");
  inspect_command->add_flag("--messages", inspect_settings.messages, "Print every message");

  BenchCommand bench_command(app);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitSettings;
  }
  if (app.got_subcommand(check)) return check_config(file);
  if (app.got_subcommand(health_command)) return check_health(health_url);
  if (app.got_subcommand(backup_command)) return run_backup(backup_data, backup_to);
  if (app.got_subcommand(export_command)) return run_export(export_settings);
  if (app.got_subcommand(import_command)) return run_import(file);
  if (app.got_subcommand(inspect_command)) return inspect(inspect_settings);
  if (app.got_subcommand(bench_command.command())) return bench_command.run();
  return serve_command.run();
} catch (const std::system_error&) {
  return kExitFailed;
}
