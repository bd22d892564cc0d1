#include "cli/fleet_target.h"

#include <fmt/format.h>

#include <cstdlib>

#include "cli/program.h"
#include "fleet/control_codec.h"
#include "base/terminal.h"
#include "settings/settings_sources.h"

namespace stanchion::cli {

void add_fleet_flags(CLI::App& command, FleetFlags& flags) {
  command.add_option("--name", flags.name, "The name of the fleet")->type_name("NAME");
  command.add_option("--kafka", flags.kafka, "The Kafka brokers: HOST:PORT,HOST:PORT")
      ->type_name("BROKERS");
  command
      .add_option(
          "--kafka-setting", flags.kafka_settings,
          "TLS and SASL to Kafka, by librdkafka's names: security.protocol=SASL_SSL; can be "
          "given several times")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  command
      .add_option("--config", flags.config,
                  "The file with [fleet]; else ./stanchion.toml or /etc/stanchion/stanchion.toml, "
                  "if there is one")
      ->type_name("FILE");
}

Result<FleetTarget> find_fleet(const FleetFlags& flags) {
  settings::Sources sources{.config = std::nullopt,
                            .environment = std::getenv,
                            .flags = {},
                            .variables = settings::variables_of_process()};
  if (!flags.config.empty()) sources.config = flags.config;
  if (!flags.name.empty()) sources.flags["fleet.name"] = flags.name;
  if (!flags.kafka.empty()) sources.flags["fleet.kafka"] = flags.kafka;
  if (!flags.kafka_settings.empty())
    sources.flags["fleet.kafka_settings"] =
        fmt::format("{}", fmt::join(flags.kafka_settings, "\n"));
  const settings::Loaded loaded = settings::read_sources(sources);
  if (!loaded.problems.empty()) return fail(loaded.problems.front());
  const settings::FleetSettings& fleet = loaded.settings.fleet;
  if (!fleet::is_fleet_name(fleet.name))
    return fail(fleet.name.empty()
                    ? std::string("which fleet? Give --name NAME, or fleet.name in stanchion.toml")
                    : fmt::format("\"{}\" is no name of a fleet: it has letters, digits, . _ and "
                                  "-, up to {} of them",
                                  shown(fleet.name), fleet::kControlNameSizeMax));
  if (fleet.kafka.empty())
    return fail("where is Kafka? Give --kafka HOST:PORT,…, or fleet.kafka in stanchion.toml");
  FleetTarget target{.name = fleet.name, .kafka = {}};
  target.kafka.brokers = fleet.kafka;
  for (const auto& [name, value] : fleet.kafka_settings.values)
    target.kafka.security.emplace_back(name, value);
  target.kafka.client_id = "stanchion-fleet";
  RETURN_IF_FAILED(kafka::check_security(target.kafka));
  return target;
}

}  // namespace stanchion::cli
