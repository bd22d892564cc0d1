// Advice: what is likely to be wrong with how queues are set up or used, from what the server sees,
// and what mends it.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broker/figures.h"
#include "model/reply.h"

namespace stanchion::service {

using Advice = StanchionAdviceResult::Advice;

// At most so many bytes: those about the first queues.
struct Advised {
  std::vector<Advice> advice;  // In order of the queues' names.
  std::size_t left_out = 0;    // How many more there are.
};
inline constexpr std::size_t kAdviceBytesMax = std::size_t{1} << 20;

// About the queues of these shards, and about these policies by their queues. `base_url` is the server
// as the caller reaches it: the endpoint of the commands, and the beginning of the queues' URLs.
Advised advise(std::span<const broker::ShardFigures> shards,
               const std::map<QueueRef, std::string>& policies, std::string_view base_url);
// The same about the queues alone, without texts and commands.
Advised kinds_of_advice(std::span<const broker::ShardFigures> shards);

}  // namespace stanchion::service
