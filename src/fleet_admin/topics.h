// The topics of a fleet, and what its logs call its nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/digest.h"
#include "kafka/settings.h"
#include "model/ids.h"

namespace stanchion::fleet_admin {

inline std::string log_topic(std::string_view fleet) {
  return std::string(fleet) + ".log";
}
inline std::string control_topic(std::string_view fleet) {
  return std::string(fleet) + ".control";
}

// One partition a shard.
inline kafka::Partition log_partition(std::string_view fleet, ShardIndex shard) {
  return {log_topic(fleet), static_cast<std::int32_t>(shard.value())};
}
inline kafka::Partition control_partition(std::string_view fleet) {
  return {control_topic(fleet), 0};
}

// The id of the fleet in the data directories of its nodes. 0 would be none. That of a fleet which
// began with a directory is the directory's own.
inline std::uint32_t directory_id(std::uint64_t fleet) {
  return std::max(static_cast<std::uint32_t>(fleet ^ (fleet >> 32)), 1U);
}

// In a shard's log; it only tells people who has written an entry.
inline std::uint32_t node_number(std::string_view node) {
  return static_cast<std::uint32_t>(xxh3_64(node));
}

}  // namespace stanchion::fleet_admin
