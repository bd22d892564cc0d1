// The limits of SQS, and those that Stanchion adds to client requests, each with its unit in its
// name or type. The limits of the protocols are in wire/limits.h; limits on the machine's resources
// are with the options of the part that uses them (HttpLimits, MemoryOptions, KeeperOptions,
// journal/format.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace stanchion::limits {

using namespace std::chrono_literals;

// Queues.
inline constexpr std::size_t kQueueNameSizeMax = 80;
inline constexpr std::int64_t kVisibilityTimeoutSecondsMax = 43'200;
inline constexpr std::int64_t kVisibilityTimeoutSecondsDefault = 30;
inline constexpr std::int64_t kDelaySecondsMax = 900;
inline constexpr std::int64_t kWaitTimeSecondsMax = 20;
inline constexpr std::int64_t kRetentionSecondsMin = 60;
inline constexpr std::int64_t kRetentionSecondsMax = 1'209'600;
inline constexpr std::int64_t kRetentionSecondsDefault = 345'600;
inline constexpr std::int64_t kMessageSizeMaxMin = 1'024;
inline constexpr std::int64_t kMessageSizeMax = 1'048'576;
inline constexpr std::int64_t kKmsReuseSecondsMin = 60;
inline constexpr std::int64_t kKmsReuseSecondsMax = 86'400;
inline constexpr std::int64_t kKmsReuseSecondsDefault = 300;
inline constexpr std::size_t kPolicySizeMax = 8'192;
inline constexpr std::size_t kPolicyStatementsMax = 20;
inline constexpr std::size_t kPermissionActionsMax = 7;
inline constexpr std::size_t kPermissionAccountsMax = 50;
inline constexpr std::size_t kLabelSizeMax = 80;
inline constexpr std::int64_t kMaxReceiveCountMax = 1'000;
inline constexpr std::size_t kRedriveSourceArnsMax = 10;
inline constexpr std::size_t kTagsMax = 50;
inline constexpr std::size_t kTagKeySizeMax = 128;
inline constexpr std::size_t kTagValueSizeMax = 256;
inline constexpr std::size_t kArnSizeMax = 512;

// Messages.
inline constexpr std::size_t kMessageAttributesMax = 10;
inline constexpr std::size_t kAttributeNameSizeMax = 256;
inline constexpr std::size_t kAttributeTypeSizeMax = 256;
inline constexpr std::size_t kGroupIdSizeMax = 128;
inline constexpr std::size_t kDeduplicationIdSizeMax = 128;
inline constexpr std::size_t kAttemptIdSizeMax = 128;
inline constexpr std::size_t kTraceHeaderSizeMax = 8'192;
inline constexpr std::size_t kSenderIdSizeMax = 255;
inline constexpr std::size_t kReceiptHandleSizeMax = 1'024;

// Requests.
inline constexpr std::size_t kBatchEntriesMax = 10;
inline constexpr std::size_t kBatchIdSizeMax = 80;
inline constexpr std::int64_t kReceiveMessagesMax = 10;
inline constexpr std::int64_t kListResultsMax = 1'000;
inline constexpr std::size_t kInFlightMax = 120'000;

// Looking at messages without receiving them. A call answers at most this many messages, of this
// many bytes (but at least one), and ends early, to be continued, when it has looked at this much.
inline constexpr std::int64_t kPeekMessagesMax = 100;
inline constexpr std::int64_t kPeekMessagesDefault = 10;
inline constexpr std::size_t kPeekBytesMax = 1 << 20;
inline constexpr std::size_t kPeekLooksMax = 8'192;
inline constexpr std::size_t kPeekSearchedBytesMax = 4 << 20;
inline constexpr std::size_t kPeekSearchSizeMax = 256;
// It reads at most this many chunks from disk, together of about this size.
inline constexpr std::size_t kPeekChunksMax = 8;
inline constexpr std::size_t kPeekReadBytesMax = 1 << 20;
// Messages that a receive can choose by position.
inline constexpr std::size_t kPositionsMax = 10;
inline constexpr std::int64_t kGroupsMax = 1'000;
inline constexpr std::int64_t kGroupsDefault = 100;

// Windows.
inline constexpr Duration kDeduplicationWindow = 5min;
inline constexpr Duration kReceiveAttemptWindow = 5min;
inline constexpr Duration kPurgeInterval = 60s;
inline constexpr Duration kRecreateInterval = 60s;
inline constexpr Duration kVisibilityTotalMax = 12h;

// Move tasks.
inline constexpr std::int64_t kMoveRateMax = 500;
inline constexpr std::int64_t kMoveTasksListMax = 10;
inline constexpr std::size_t kMoveTasksPerAccountMax = 100;
inline constexpr Duration kMoveTaskTimeMax = 36h;
// Ended tasks that are remembered per source queue for ListMessageMoveTasks.
inline constexpr std::size_t kMoveTaskHistoryMax = 10;
// Messages of one move task under way to their destination at the same time.
inline constexpr std::size_t kMoveTaskInTransitMax = 1'000;

// Fair queues: a tenant is noisy if it has at least this many messages in flight and this share of
// all messages in flight.
inline constexpr std::uint32_t kNoisyInFlightMin = 30;
inline constexpr std::uint64_t kNoisySharePercent = 10;
inline constexpr Duration kBusyHalfLife = 60s;
// … and it is quiet again when it has sent nothing for this long.
inline constexpr Duration kNoisySilenceMax = 5min;

// CloudWatch: the oldest message of a standard queue is looked for among those that were received at
// most this often. What deleted queues had counted is kept for those who write minutes down.
inline constexpr std::uint32_t kWatchedReceivesMax = 3;
inline constexpr std::size_t kLastWordsMax = 2'000;
inline constexpr Duration kLastWordsKept = 3min;

// A message that was received at least this often comes back again and again.
inline constexpr std::uint32_t kOftenReceived = 5;

// Shards of one data directory, and requests under way to one of them.
inline constexpr std::uint32_t kShardsMax = 256;
inline constexpr std::int64_t kShardInboxMax = 16'384;

// A request that waits longer than this for room in memory or in the journal, or for a message to
// be read from disk, is refused with 503.
inline constexpr Duration kRoomWaitMax = 5s;

// Journal.
inline constexpr std::size_t kRecordSizeMax = 4 << 20;

// Messages that one decision moves from queue to queue or settles; the decisions that follow do the
// rest, and the loop serves others between them. A request names at most kBatchEntriesMax besides.
inline constexpr std::size_t kDecisionMessagesMax = 500;
// What a fact takes for one of them, at most: two numbers, and a destination with its sizes.
inline constexpr std::size_t kMovedMessageSizeMax = 2 * 10 + 3 * 2 + kArnSizeMax;

// Space that journals leave free on the disk, so that a full disk can be drained: a checkpoint
// needs space before it frees any.
inline constexpr std::uint64_t kLeftFree = 24 << 20;
inline constexpr std::uint64_t kLeftFreePerShard = 8 << 20;

static_assert(static_cast<std::size_t>(kMessageSizeMax) * 2 < kRecordSizeMax,
              "a whole batch with its attributes is one record");
static_assert(kDecisionMessagesMax * kMovedMessageSizeMax < kRecordSizeMax / 4,
              "what one decision moves is one record");
static_assert(kReceiveMessagesMax <= static_cast<std::int64_t>(kBatchEntriesMax) &&
                  kPositionsMax <= kBatchEntriesMax,
              "a request names no more messages than a batch has entries");
static_assert(kRetentionSecondsMin * 1000 < kDeduplicationWindow.count(),
              "deduplication outlives messages, so its memory is kept apart from them");

}  // namespace stanchion::limits
