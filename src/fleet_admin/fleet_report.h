// What `stanchion fleet status` says about a fleet. A pure function of what was read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "fleet/control.h"

namespace stanchion::fleet_admin {

struct NodeReport {
  fleet::NodeName name;
  std::string zone;
  std::string address;
  std::string version;
  bool alive = false;
  bool ready = false;
  bool draining = false;  // It is about to end.
  bool drained = false;   // An operator wants it to own nothing.
  bool linked = true;     // Well enough to own shards, as the last beats say.
  Instant heard{};
  std::optional<Duration> clock_offset;  // From the median of those that are alive.
  std::size_t owned = 0;
  std::size_t followed = 0;
};

struct ShardReport {
  struct Standby {
    fleet::NodeName name;
    bool alive = false;
    // Records behind its owner; none: it does not follow, or nobody serves the shard.
    std::optional<std::uint64_t> lag;
  };

  std::uint32_t index = 0;
  fleet::NodeName owner;  // Empty: it was never assigned.
  bool served = false;    // The owner is alive and says that it serves it.
  std::vector<Standby> standbys;
  std::optional<std::uint64_t> entries;  // Of its log, if Kafka says.
  fleet::NodeName moving_to{};           // What an operator asked for, until it is done.
  // Kafka takes nothing from its owner, who is alive.
  std::optional<fleet::Beat::Stall> stall{};
};

struct FleetReport {
  fleet::FleetMetadata metadata;
  fleet::NodeName coordinator;
  std::vector<NodeReport> nodes;
  std::vector<ShardReport> shards;
  std::vector<std::string> warnings;

  bool has_shard_without_owner() const;
};

// What is known of a node beyond the state.
struct Heard {
  Instant at{};  // Of its last beat, by the brokers' clock.
  bool alive = false;
};

// `entries`: the size of each shard's log, where it is known.
FleetReport make_report(const fleet::ControlState& state,
                        const std::map<fleet::NodeName, Heard>& heard,
                        const std::vector<std::optional<std::uint64_t>>& entries);

// For a person. `now` is the brokers' time.
std::string to_text(const FleetReport& report, Instant now);
std::string to_json(const FleetReport& report);

}  // namespace stanchion::fleet_admin
