// What one shard hands to another when a message moves from queue to queue.
#pragma once

#include <cstdint>
#include <string>

#include "base/strong.h"
#include "base/time.h"
#include "model/content.h"
#include "model/fact.h"
#include "model/ids.h"

namespace stanchion {

// Which owner of the source's log hands over: a later one has a higher epoch. 0: nobody else can own
// the log, or the owner is of a release that does not say.
using SourceEpoch = Strong<struct SourceEpochTag>;

// A member more would be another link version (link/frame_codec.h).
struct Transfer {
  ShardIndex source;
  TransferNo number;
  TransferNo settled_below;  // The source has settled every number below this one.
  // Which time it is handed over, since the source may not know whether it arrived; and whether it
  // is the first of this attempt that its target gets: all that are not settled come behind it.
  // Numbers of attempts increase, also from epoch to epoch.
  std::uint64_t attempt = 0;
  bool opens_attempt = false;
  QueueRef destination;
  TransferReason reason = TransferReason::kDeadLetter;
  std::string source_arn;
  ContentPtr content;
  std::uint32_t receive_count = 0;
  Instant first_received;
  Instant last_received;
};

enum class TransferVerdict { kAccepted, kRefused };

// What has become of a transfer. What one attempt was refused for, a later one may be accepted in
// spite of; accepted is accepted.
struct Settlement {
  TransferNo number;
  std::uint64_t attempt = 0;
  TransferVerdict verdict = TransferVerdict::kAccepted;
};

}  // namespace stanchion
