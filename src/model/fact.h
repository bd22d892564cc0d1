// Facts: what happened in a shard. The journal holds nothing else, and the state follows from the
// facts and the time alone.
//
// A fact says what happened, not what was asked, so that a journal written by an old release means
// the same to a new one. Numbers are explicit and never reused. A fact is written with its size,
// and fields are only ever added at the end, so an older release skips the fields that it does not
// know, and a newer one gives absent fields their defaults. docs/formats.md has the bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "base/time.h"
#include "model/content.h"
#include "model/ids.h"
#include "model/queue_attributes.h"
#include "model/reply.h"
#include "model/request.h"

namespace stanchion {

// A shard's first fact: the key with which its receipts are signed.
struct ShardFounded {
  static constexpr std::uint8_t kNumber = 1;
  MacKey receipt_key{};
};

struct QueueCreated {
  static constexpr std::uint8_t kNumber = 2;
  QueueId queue;
  QueueRef ref;
  QueueAttributes attributes;
  StringMap tags;
};

struct QueueDeleted {
  static constexpr std::uint8_t kNumber = 3;
  QueueId queue;
};

struct QueuePurged {
  static constexpr std::uint8_t kNumber = 4;
  QueueId queue;
};

struct QueueAttributesSet {
  static constexpr std::uint8_t kNumber = 5;
  QueueId queue;
  QueueAttributes attributes;
};

struct QueueTagged {
  static constexpr std::uint8_t kNumber = 6;
  QueueId queue;
  StringMap tags;  // Added or overwritten.
};

struct QueueUntagged {
  static constexpr std::uint8_t kNumber = 7;
  QueueId queue;
  std::vector<std::string> keys;
};

struct MessageSent {
  static constexpr std::uint8_t kNumber = 8;
  QueueId queue;
  Seq seq;
  Instant due;  // When the message may first be received.
  ContentPtr content;
  std::optional<Hash128> deduplication;  // FIFO: the key by which repetitions are dropped.
};

struct MessagesReceived {
  static constexpr std::uint8_t kNumber = 9;
  struct Item {
    Seq seq;
    Instant visible_again;
  };
  QueueId queue;
  std::vector<Item> items;
  std::string attempt_id;  // FIFO: ReceiveRequestAttemptId, or empty.
};

struct MessagesDeleted {
  static constexpr std::uint8_t kNumber = 10;
  QueueId queue;
  std::vector<Seq> seqs;
};

struct VisibilityChanged {
  static constexpr std::uint8_t kNumber = 11;
  QueueId queue;
  std::vector<MessagesReceived::Item> items;
  std::string attempt_id;  // Set if a repeated receive attempt restarted the visibility timeouts.
};

// Why a message goes from one queue to another.
enum class TransferReason : std::uint8_t { kDeadLetter = 1, kRedrive = 2 };

// Messages leave their queue for another one, through the outbox.
struct MessagesLeft {
  static constexpr std::uint8_t kNumber = 12;
  struct Item {
    Seq seq;
    TransferNo transfer;
    QueueRef destination;
  };
  QueueId queue;
  TransferReason reason = TransferReason::kDeadLetter;
  TaskId task;  // Of the move task, if the reason is a redrive.
  std::vector<Item> items;
};

// This shard accepted a message from another queue.
struct TransferAccepted {
  static constexpr std::uint8_t kNumber = 13;
  ShardIndex source;
  TransferNo transfer;
  TransferNo settled_below;  // The source will never send a number below this one again.
  QueueId queue;
  Seq seq;
  ContentPtr content;
  Instant retained_from;
  std::uint32_t receive_count = 0;
  Instant first_received;
};

// The destination has accepted the message, so the source forgets it.
struct TransfersSettled {
  static constexpr std::uint8_t kNumber = 14;
  std::vector<TransferNo> transfers;
};

// The destination refused the message, so it is back in its queue.
struct TransferRefused {
  static constexpr std::uint8_t kNumber = 15;
  TransferNo transfer;
};

struct MoveTaskStarted {
  static constexpr std::uint8_t kNumber = 16;
  QueueId queue;
  TaskId task;
  std::string destination_arn;      // Empty: each message goes back to where it came from.
  std::int64_t max_per_second = 0;  // 0: as fast as it goes.
  std::uint64_t to_move = 0;        // The number of visible messages when the task started.
};

struct MoveTaskEnded {
  static constexpr std::uint8_t kNumber = 17;
  QueueId queue;
  TaskId task;
  MoveTaskStatus status = MoveTaskStatus::kCompleted;
  std::string failure_reason;
};

// Where messages were that somebody picked from among those that wait, instead of taking the first:
// written before the fact that says what became of them. Changes nothing; a replay needs it to find
// the messages in its store.
struct MessagesChosen {
  static constexpr std::uint8_t kNumber = 18;
  struct Item {
    Seq seq;
    std::string group;
  };
  QueueId queue;
  std::vector<Item> items;
};

// Numbers below this one may have been used by records that are lost: no message that leaves gets
// one of them. Written where a log is made anew from a checkpoint.
struct TransfersResumed {
  static constexpr std::uint8_t kNumber = 19;
  TransferNo next;
};

using Fact =
    std::variant<ShardFounded, QueueCreated, QueueDeleted, QueuePurged, QueueAttributesSet,
                 QueueTagged, QueueUntagged, MessageSent, MessagesReceived, MessagesDeleted,
                 VisibilityChanged, MessagesLeft, TransferAccepted, TransfersSettled,
                 TransferRefused, MoveTaskStarted, MoveTaskEnded, MessagesChosen, TransfersResumed>;

// A record of the journal: the facts of one decision and the instant at which it was made.
//
//   record = version u8, at i64, { fact }      fact = number u8, size u32, fields
class RecordWriter {
 public:
  explicit RecordWriter(Instant at) { start(at); }

  // Begins a new record in the same memory.
  void start(Instant at);

  template <class F>
  void add(const F& fact);  // F is one of the alternatives of Fact.

  bool empty() const { return facts_ == 0; }
  const std::string& bytes() const { return bytes_; }
  // How often the facts say that something became of a message.
  std::size_t messages() const { return messages_; }

 private:
  std::string bytes_;
  std::size_t facts_ = 0;
  std::size_t messages_ = 0;
};

struct Record {
  Instant at;
  std::vector<Fact> facts;
};

// Decodes bytes from a disk, so every length is checked. A fact of an unknown number is a failure,
// because the state without that fact would be wrong.
Result<Record> parse_record(std::string_view bytes);

std::string_view name_of(const Fact& fact);

// One line for a person: the fact's name and its fields.
std::string describe(const Fact& fact);

}  // namespace stanchion
