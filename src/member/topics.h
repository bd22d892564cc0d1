// The topics of a fleet.
#pragma once

#include <string>
#include <string_view>

#include "kafka/settings.h"
#include "model/ids.h"

namespace stanchion::member {

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

}  // namespace stanchion::member
