// Advice: what is likely to be wrong with how queues are set up or used, from what the server sees,
// and what mends it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broker/figures.h"
#include "model/reply.h"

namespace stanchion::service {

using Advice = StanchionAdviceResult::Advice;

// About the queues of these shards, in order of their names. `base_url` is the server as the caller
// reaches it: the endpoint of the commands, and the beginning of the queues' URLs in them.
std::vector<Advice> advise(std::span<const broker::ShardFigures> shards, std::string_view base_url);
// The same, and about these policies by their queues.
std::vector<Advice> advise(std::span<const broker::ShardFigures> shards,
                           const std::map<QueueRef, std::string>& policies,
                           std::string_view base_url);

}  // namespace stanchion::service
