// A shard's journal: the durable order of its records. What a record means is not known here.
//
//   open ─▶ replay ─▶ start ─▶ append… flush, append… flush ─▶ close
//                                 └─▶ events.durable(position), on another thread, in order
//
// Implementations: LocalJournal (segment files and a commit thread), MemoryJournal (keeps nothing).
//
// Threads: everything but the events is called by one thread, the shard's. Events come from a
// thread of the journal's, or from within flush() and close(); they must return at once, usually
// after posting to the shard's thread, and must not call the journal.
#pragma once

#include <functional>
#include <string_view>

#include "base/result.h"
#include "model/ids.h"

namespace stanchion::journal {

// Called for records in the order of their positions. The view is valid during the call. A failure
// ends the reading and is handed to whoever started it.
using RecordVisitor = std::function<Status(Position, std::string_view record)>;

// What the journal still takes.
enum class Room {
  kPlenty,       // Everything is welcome.
  kReserveOnly,  // Space is used up. Only what lets the operator drain should be admitted.
  kBusy,         // There is space, but what waits to be written comes first. Soon.
  kNone,         // Nothing more may be appended for now.
};

inline bool may_append(Room room) {
  return room == Room::kPlenty || room == Room::kReserveOnly;
}

struct JournalEvents {
  // All records up to and including `position` are durable. Positions increase from call to call.
  std::function<void(Position position)> durable;

  // There may be more room() than before.
  std::function<void()> roomier{};

  // The journal has failed for good: nothing that was not reported durable ever will be. Called
  // at most once, and then durable() no more. The process should end with this message.
  std::function<void(const Failure& failure)> failed;
};

class Journal {
 public:
  virtual ~Journal() = default;

  // Hands every record from `from` on to `visit`, in order. Fails if the journal is damaged, or
  // does not reach back to `from`.
  // REQUIRES: start() was not called yet.
  virtual Status replay(Position from, const RecordVisitor& visit) = 0;

  // From here on records may be appended.
  virtual void start(JournalEvents events) = 0;

  // Queues the record and returns its position, one more than the one before. Never blocks on the
  // disk. The record is copied.
  // REQUIRES: started, not closed, record.size() <= limits::kRecordSizeMax, may_append(room()).
  virtual Position append(std::string_view record) = 0;

  // Says that the records appended so far are worth a commit now. Without it they may wait until
  // something else wakes the journal. Several appends and one flush() cost one wake-up.
  virtual void flush() = 0;

  // The last durable position; 0 if there is none.
  virtual Position durable() const = 0;

  // The position that the next append will get.
  virtual Position next_position() const = 0;

  // Whether, and what, the caller may append. Takes what is queued into account, so that a disk
  // that stands still shows here before memory runs out. Cheap: may be asked for every request.
  virtual Room room() const = 0;

  // Records before `position` will not be replayed any more; their space may be given back, soon.
  virtual void trim_before(Position position) = 0;

  // Makes everything appended durable, reports it, and ends. No call but the destructor after it.
  // The destructor alone ends without waiting for what is queued, as a crash would.
  virtual Status close() = 0;
};

}  // namespace stanchion::journal
