// Which fleet a command is about, and how it is reached: the same flags, and the same settings, for
// all commands that have to do with one.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "kafka/settings.h"

namespace stanchion::cli {

struct FleetFlags {
  std::string config;
  std::string name;
  std::string kafka;
  std::vector<std::string> kafka_settings;

  bool any() const {
    return !config.empty() || !name.empty() || !kafka.empty() || !kafka_settings.empty();
  }
};

// `flags` must outlive the command.
void add_fleet_flags(const Command& command, FleetFlags& flags);

struct FleetTarget {
  std::string name;
  kafka::KafkaSettings kafka;
};

// From the file and the environment, as for `serve`; flags win.
Result<FleetTarget> find_fleet(const FleetFlags& flags);

}  // namespace stanchion::cli
