#include "cli/fleet_target.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/terminal.h"
#include "cli/program.h"
#include "fleet/control_codec.h"
#include "settings/settings_sources.h"

namespace stanchion::cli {

void add_fleet_flags(const Command& command, FleetFlags& flags) {
  command.option("--name", flags.name, "The name of the fleet").value("NAME");
  command.option("--kafka", flags.kafka, "The Kafka brokers: HOST:PORT,HOST:PORT").value("BROKERS");
  command
      .option("--kafka-setting", flags.kafka_settings,
              "TLS and SASL to Kafka, by librdkafka's names: security.protocol=SASL_SSL; can be "
              "given several times")
      .one_each()
      .value("NAME=VALUE");
  command
      .option("--config", flags.config,
              "The file with [fleet]; else ./stanchion.toml or /etc/stanchion/stanchion.toml, "
              "if there is one")
      .value("FILE");
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
