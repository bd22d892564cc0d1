// The times and bounds of a fleet.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/time.h"
#include "model/limits.h"

namespace stanchion::fleet {

using namespace std::chrono_literals;

inline constexpr Duration kBeatInterval = 500ms;
// A node that was not heard of for this long is taken for dead.
inline constexpr Duration kDeadAfter = 1500ms;
// The same if the connection to it broke, as it does when its process is killed: a beat that is due
// has this long to show that it was only the connection.
inline constexpr Duration kDeadAfterBreak = 600ms;
// How long a new owner waits for the old one to give way, if that one is alive.
inline constexpr Duration kReleaseWait = 1s;
// A standby that is dead for this long is replaced by another node, which copies a store.
inline constexpr Duration kReplaceAfter = 60s;
// A standby may become owner by plan if it is at most this many records behind.
inline constexpr std::uint64_t kCaughtUp = 1'000;
// A node whose clock is this far from the others' may not own shards.
inline constexpr Duration kClockOffMax = 500ms;
// A beat that was under way for long does not count against a clock within this time of a faster
// one: the control log may stand still for some seconds when a broker is lost.
inline constexpr Duration kClockMemory = 10s;
// Two nodes without a link for this long are apart; before, they may be about to make one. Less than
// kHeldFor, so that requests for a shard that moves for it can wait.
inline constexpr Duration kLinkGrace = 5s;
// A shard whose owner is alive and has not served it for this long is counted as one without an owner:
// a change of owners takes less.
inline constexpr Duration kUnservedAfter = 5s;
// Kafka takes an entry within milliseconds, and within seconds when a broker is lost. What it has not
// taken for so long is told.
inline constexpr Duration kStalledAfter = 5s;
// The same shard is told of in the node's log at most once in this time.
inline constexpr Duration kTellStallAgain = 60s;
// While a shard has no owner that can be reached, requests wait here: so many, and so long.
inline constexpr std::size_t kHeldMax = 10'000;
inline constexpr Duration kHeldFor = 10s;
inline constexpr Duration kTryAgain = 100ms;
// A call whose record Kafka has not confirmed for so long is answered, by the default of the settings.
inline constexpr Duration kWriteTimeout = 30s;
// What the replies that wait for a shard's log may take, about; the same of the requests that wait for
// room, and of the records that Kafka has not confirmed. Beyond, a request is refused. `memory` is the
// shard's part of server.memory. The largest record has to fit twice.
inline constexpr std::size_t kWaitingBytesMin = 2 * limits::kRecordSizeMax;
inline constexpr std::size_t kWaitingBytesMax = 32 << 20;
constexpr std::size_t waiting_bytes(std::size_t memory) {
  return std::clamp(memory, kWaitingBytesMin, kWaitingBytesMax);
}
// What Kafka's client reads ahead of a shard's log, while a replica applies what is before it.
inline constexpr std::size_t kReadAheadMin = 8 << 20;  // A fetch of the largest entry.
inline constexpr std::size_t kReadAheadMax = 64 << 20;
constexpr std::size_t read_ahead_bytes(std::size_t memory) {
  return std::clamp(memory / 4, kReadAheadMin, kReadAheadMax);
}
// A node that is not the owner any more has this long to answer what it was asked before.
inline constexpr Duration kLastWords = 2s;
// A store that could not be copied is tried again so much later.
inline constexpr Duration kCopyAgain = 1s;
// A shard that a node has given up is tried again so much later, and each time twice as late.
inline constexpr Duration kRetryAfter = 2s;
inline constexpr Duration kRetryAfterMax = 300s;
// Who loses its log so many times in a row claims it again at once, see ClaimPace; after that it waits.
// Losses are not in a row if the log was held for so long between them, or if they are so far apart.
inline constexpr int kClaimsAtOnce = 2;
inline constexpr Duration kClaimPauseMin = 500ms;
inline constexpr Duration kClaimPauseMax = 8s;
inline constexpr Duration kClaimHeld = 3s;
inline constexpr Duration kLossMemory = 60s;
// The log is not trimmed for so long after a replica has found other records there than in its store:
// it may only read from a broker that is behind, and tries again 2, 6, 14, 30, 62 and 126 s later.
inline constexpr Duration kOtherPastWait = 130s;
// A backup waits so long for a replica to read its log as far as it went when the backup began.
inline constexpr Duration kBackupPatience = 10min;
// Connected nodes say something this often, and one that says nothing for so long is cut off.
inline constexpr Duration kPingInterval = 500ms;
inline constexpr Duration kSilentAfter = kDeadAfter;
// Bytes that may wait for a node to take them; beyond it is cut off.
inline constexpr std::size_t kQueuedMax = 64 << 20;
// How long the copying of a store waits for the other node to go on. It may first have to make a
// checkpoint.
inline constexpr Duration kCopyPatience = 60s;
// The same if not even its machine confirms that it is there.
inline constexpr Duration kCopySilence = 5s;
// A replica applies this much of its log at a time, so that others get their turn.
inline constexpr std::size_t kApplyBytes = 256 << 10;
inline constexpr std::size_t kReplicas = 3;

static_assert(kLinkGrace + kReleaseWait < kHeldFor, "requests wait for a shard that moves");
static_assert(kClaimPauseMax < kHeldFor, "requests wait for an owner that waits");
static_assert(kClaimHeld < kClaimPauseMax, "a shard that is lost with another one is held between");
static_assert(kOtherPastWait > (1 + 2 + 4 + 8 + 16 + 32) * kRetryAfter, "six more looks");
static_assert(kReleaseWait + 2 * kBeatInterval < kUnservedAfter, "a move is nothing to report");
static_assert(2 * kPingInterval < kSilentAfter, "a ping may be late");
static_assert(kWaitingBytesMin < kWaitingBytesMax && kReadAheadMin < kReadAheadMax);

}  // namespace stanchion::fleet
