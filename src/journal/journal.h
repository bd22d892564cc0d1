// A shard's journal: the durable order of its records. The journal does not interpret records.
//
//   open ─▶ replay ─▶ start ─▶ append… flush, append… flush ─▶ close
//                                 └─▶ events.durable(position), on another thread, in order
//
// Implementations: LocalJournal (segment files and a commit thread), MemoryJournal (keeps nothing),
// kafka::KafkaSharedJournal (a partition that other nodes can take over).
//
// Threads: one thread, the shard's, makes all calls. Events come from a thread of the journal, or
// from within flush() and close(); event handlers must return at once, usually after posting to the
// shard's thread, and must not call the journal.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/latency.h"
#include "base/result.h"
#include "base/strong.h"
#include "journal/shared_log.h"
#include "model/ids.h"

namespace stanchion::journal {

// Called for records in the order of their positions. The view is valid during the call. A failure
// ends the reading and is returned to the caller that started it.
using RecordVisitor = std::function<Status(Position, std::string_view record)>;

// What the journal still accepts.
enum class Room {
  kPlenty,       // Anything.
  kReserveOnly,  // Space is used up. Only calls that drain should be admitted.
  kBusy,         // There is space, but the queue of unwritten records is full. Try again soon.
  kNone,         // Nothing may be appended for now.
};

inline bool may_append(Room room) {
  return room == Room::kPlenty || room == Room::kReserveOnly;
}

// The ordinal of a proof that the journal is still its log's only writer; 0 is given from the
// beginning.
using Proof = Strong<struct ProofTag>;

struct JournalEvents {
  // All records up to and including `position` are durable. Positions increase from call to call.
  std::function<void(Position position)> durable;

  // proven() has increased.
  std::function<void()> proven{};

  // Another writer has taken over the log. What is not durable yet, or not proven, never will be;
  // nothing that was decided here may be told to anybody any more. Called at most once.
  std::function<void()> superseded{};

  // room() may have increased.
  std::function<void()> roomier{};

  // The journal has failed for good: records not yet reported durable never will be. Called at most
  // once, and durable() is not called after it. The process should end with this message.
  std::function<void(const Failure& failure)> failed;
};

// What a journal has done since it was opened.
struct JournalFigures {
  std::uint64_t commits = 0;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;    // As they were written.
  LatencyCounts commit_time;  // Write and sync.
};

class Journal {
 public:
  virtual ~Journal() = default;

  // Passes every record from `from` on to `visit`, in order. Fails if the journal is damaged, or
  // does not reach back to `from`. REQUIRES: start() was not called yet.
  virtual Status replay(Position from, const RecordVisitor& visit) = 0;

  // From here on records may be appended.
  virtual void start(JournalEvents events) = 0;

  // Queues the record and returns its position, one more than that of the record before. Never
  // blocks on the disk. The record is copied. REQUIRES: started, not closed, record.size() <=
  // limits::kRecordSizeMax, may_append(room()).
  virtual Position append(std::string_view record) = 0;

  // Requests a commit of the records appended so far. Without it they may wait until something else
  // wakes the journal. Several appends and one flush() cost one wake-up.
  virtual void flush() = 0;

  // Whether somebody else may write the log instead of this journal, without it knowing. If so, a
  // reply that no record of its own carries has to wait for a proof.
  virtual bool can_be_superseded() const { return false; }

  // Of this ownership of such a log: higher than that of any owner before. 0 where there is no other.
  virtual Epoch epoch() const { return Epoch(); }

  // Asks for a proof, begun after this call, that nobody else writes the log, and returns its
  // number. The proof comes with the next commit, or with an empty one if there is nothing to
  // commit: flush() requests it. One proof serves all that ask before it is begun.
  virtual Proof barrier() { return Proof(); }

  // The last proof that was given.
  virtual Proof proven() const { return Proof(); }

  // The last durable position; 0 if there is none.
  virtual Position durable() const = 0;

  // The position that the next append will get.
  virtual Position next_position() const = 0;

  // Of all records before next_position(), if the journal is a log with a chain of digests (see
  // shared_log.h) that has begun.
  virtual std::optional<LogDigest> digest() const { return std::nullopt; }

  // Whether the caller may append, and what. Queued records count, so that a stalled disk shows
  // here before memory runs out. Cheap enough to be called for every request.
  virtual Room room() const = 0;

  // Of records that wait to be written, as copies in memory; 0 where something else bounds them.
  // Cheap enough to be called for every send.
  virtual std::uint64_t unwritten_bytes() const { return 0; }

  // Records before `position` will not be replayed any more; their space may be freed soon.
  virtual void trim_before(Position position) = 0;

  // Any thread.
  virtual JournalFigures figures() const { return {}; }

  // Makes everything appended durable, reports it, and ends. Only the destructor may be called
  // after it. The destructor alone ends without waiting for queued records, as a crash would.
  virtual Status close() = 0;
};

}  // namespace stanchion::journal
