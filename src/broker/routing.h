// Which shard a queue lives in: a function of its name, the same forever, because the journals are
// divided by it.
#pragma once

#include <cstdint>

#include "model/ids.h"

namespace stanchion::broker {

// XXH3-64 of "account/region/name", modulo the number of shards.
ShardIndex shard_of(const QueueRef& queue, std::uint32_t shard_count);

}  // namespace stanchion::broker
