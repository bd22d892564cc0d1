// What one shard hands to another when a message moves from queue to queue.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"
#include "model/content.h"
#include "model/fact.h"
#include "model/ids.h"

namespace stanchion {

struct Transfer {
  ShardIndex source;
  TransferNo number;
  TransferNo settled_below;  // The source has settled every number below this one.
  QueueRef destination;
  TransferReason reason = TransferReason::kDeadLetter;
  std::string source_arn;
  ContentPtr content;
  std::uint32_t receive_count = 0;
  Instant first_received;
};

enum class TransferVerdict { kAccepted, kRefused };

}  // namespace stanchion
