// One step of a random sequence, as data: it can be generated, printed, simplified and replayed.
//
// No operation depends on what happened before it. A receipt, for instance, is named by how many
// receipts ago it was handed out, so a sequence keeps its meaning when steps are removed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/ids.h"
#include "model/request.h"

namespace stanchion::reference {

// All queues that sequences know, by index.
inline constexpr std::array<std::string_view, 6> kQueueNames{"plain",     "other",     "dead",
                                                             "line.fifo", "more.fifo", "dead.fifo"};
QueueRef ref_of(int queue);
QueueRef ref_of(std::string_view name);

struct Setting {
  enum class Kind {
    kContentBasedDeduplication,
    kDeduplicationScope,  // 0: queue, 1: messageGroup.
    kDelaySeconds,
    kMessageRetentionPeriod,
    kRedrivePolicy,  // The value is maxReceiveCount; 0 removes the policy.
    kVisibilityTimeout,
  };
  Kind kind = Kind::kVisibilityTimeout;
  std::int64_t value = 0;
  int target = 0;  // The dead-letter queue.

  std::string name() const;
  std::string text() const;  // As SetQueueAttributes takes it.
};

struct Outgoing {
  int body = 1;  // 0: none.
  std::optional<std::int64_t> delay{};
  std::optional<int> group{};
  std::optional<int> deduplication{};

  OutgoingMessage request() const;
};

// A receipt, and what is to be done with it; or a message that a peek has shown.
struct Pick {
  enum class Kind { kOwn, kAny, kGarbage, kForged, kMissing };
  Kind kind = Kind::kOwn;  // Of the queue, of any queue, …
  int back = 0;            // 0 is the latest.
  std::optional<std::int64_t> timeout{};
};

struct Operation {
  enum class Kind {
    kCreate,
    kDeleteQueue,
    kPurge,
    kSet,
    kGet,
    kSend,
    kSendBatch,
    kReceive,
    kDelete,
    kDeleteBatch,
    kChange,
    kChangeBatch,
    kStartMove,
    kCancelMove,
    kListMoves,
    kPeek,      // The whole queue, or a part of it that `amount` chooses.
    kPeekPage,  // The next page of a walk over the queue.
    kChoose,    // A receive of messages that earlier peeks have shown.
    kTick,
    kRestart,
    kDeliver,
    kSettle,
    kCheckpoint,  // A checkpoint begins …
    kDurable,     // … and ends.
    kEvict,       // Messages are evicted until this many bytes are left.
  };
  enum class Ids { kGood, kRepeated, kForbidden };  // Of batch entries.

  Kind kind = Kind::kTick;
  int queue = 0;
  std::vector<Setting> settings{};
  std::vector<Outgoing> messages{};
  std::vector<Pick> picks{};
  std::optional<std::int64_t> most{};        // MaxNumberOfMessages, MaxResults.
  std::optional<std::int64_t> visibility{};  // Of a receive.
  std::optional<int> attempt{};
  bool full = false;                   // The disk is: nothing leaves for a dead-letter queue.
  std::optional<int> target{};         // Destination of a move.
  std::optional<std::int64_t> rate{};  // Of a move.
  std::int64_t amount = 0;             // Milliseconds of a tick; messages delivered or settled.
  int steps = 1;                       // The number of steps in which the time of a tick passes.
  Ids ids = Ids::kGood;

  std::string describe() const;
};

struct Sequence {
  bool strict = false;
  int check_every = 1;  // Operations between two checks of the engine's invariants.
  std::uint32_t chunk_messages = 3;
  std::vector<Operation> operations{};
  std::size_t decision_messages = 1'000;  // That one decision moves from queue to queue.

  std::string describe() const;
};

// Simpler operations to try in place of this one, most promising first.
std::vector<Operation> simpler(const Operation& operation);

}  // namespace stanchion::reference
