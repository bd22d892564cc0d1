#include "broker/routing.h"

#include <fmt/format.h>

#include "base/digest.h"
#include "engine/routing.h"

namespace stanchion::broker {

std::optional<QueueRef> queue_of(const Request& request) {
  return engine::home_of(request);
}

ShardIndex shard_of(const QueueRef& queue, std::uint32_t shard_count) {
  if (shard_count == 1) return ShardIndex(0);
  fmt::memory_buffer text;
  fmt::format_to(std::back_inserter(text), "{}/{}/{}", queue.account, queue.region, queue.name);
  return ShardIndex(static_cast<std::uint32_t>(xxh3_64({text.data(), text.size()}) % shard_count));
}

}  // namespace stanchion::broker
