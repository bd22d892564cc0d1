// Founds a fleet with the data directory of a server by itself, which becomes the directory of the
// first node. Its checkpoints stay where they are; what its journals have besides goes into the
// fleet's logs, which begin there as if they had been trimmed.
//
//   journal of each shard ─▶ claim, records, time ─▶ the log; everything before the records is removed
//   stanchion.meta ─▶ of a node, with the directory's id ─▶ metadata record, with the same id
//
//   IM1  Until the meta file is replaced, the directory can still be served by itself; from then on
//        only by the fleet. An import that was interrupted can be made again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kafka/settings.h"
#include "os/clock.h"
#include "os/entropy.h"

namespace stanchion::fleet_admin {

struct ImportOptions {
  std::string fleet;
  kafka::KafkaSettings kafka;
  bool one_copy = false;
  std::string data;
};

struct Imported {
  std::uint32_t shards = 0;
  std::uint64_t records = 0;  // That went into the logs.
};

// No server may run in the directory, and no fleet of this name may exist. Waits for the brokers.
Result<Imported> import_directory(const ImportOptions& options, os::Entropy& entropy,
                                  os::Clock& clock,
                                  const std::function<void(std::string_view)>& say);

}  // namespace stanchion::fleet_admin
