// Which shard a queue lives in: a function of its name that never changes, because the journals are
// divided by it.
#pragma once

#include <cstdint>
#include <optional>

#include "model/ids.h"
#include "model/request.h"

namespace stanchion::broker {

// The queue that a request is about, by which it is routed; nullopt if it names none.
std::optional<QueueRef> queue_of(const Request& request);

// XXH3-64 of "account/region/name", modulo the number of shards.
ShardIndex shard_of(const QueueRef& queue, std::uint32_t shard_count);

}  // namespace stanchion::broker
