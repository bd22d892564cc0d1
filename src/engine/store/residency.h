// Which messages of a stock are in memory: chunks are evicted, and read back when they are needed.
//
//   resident ─evict─▶ cold ─want…, install─▶ resident
//
// Nothing here changes the queue: nothing that a client sees depends on it, except that messages
// expire in the store, too.
//
//   RY1  Only what a durable checkpoint has, and has unchanged, is evicted.
//   RY2  A chunk is evicted and brought in as a whole; what is brought in is what was evicted, less
//        what has expired since.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/chunk_set.h"
#include "engine/lane_set.h"
#include "engine/memory.h"
#include "engine/memory_share.h"
#include "engine/message_states.h"
#include "engine/peek.h"
#include "engine/receiving.h"
#include "engine/resident_messages.h"
#include "engine/store/checkpoint_writer.h"
#include "engine/store/cold_read.h"
#include "engine/store/read_requests.h"

namespace stanchion::engine {

enum class Presence { kInMemory, kAskedFor, kBehindAnother };

class Residency {
 public:
  // What of a stock changes when messages leave memory and come back.
  struct Parts {
    ResidentMessages& messages;
    LaneSet& lanes;
    MessageStates& states;
    CheckpointWriter& writer;
  };

  Residency(StockName name, bool fifo, Memory& memory, MemoryShare& share, const Parts& parts)
      : fifo_(fifo),
        memory_(memory),
        parts_(parts),
        reads_(name, memory),
        chunks_(memory, share, parts.writer, reads_) {}

  ChunkSet& chunks() { return chunks_; }
  const ColdChunks& cold() const { return chunks_.cold(); }

  // Requests for what is not in memory. The results are passed to install().
  void want(const Next& next);
  void want(Chunk& chunk) { reads_.want_chunk(chunk); }
  bool is_wanted(const Next& next) const;
  Presence look_for(Seq seq, bool with_content, const std::string* group = nullptr);
  // Requests what a consumer of this lane will need soon.
  void read_ahead(const Lane& lane);
  // Some other messages of a lane whose head cannot be received; see Stock::next_to_receive(). Of a
  // standard queue, ready ones: at most half of `most` from the line, in order, and then of those
  // that came back, in no order, from the `start`th on. Requests chunks that it finds missing, but
  // no contents.
  struct Behind {
    std::vector<Message*> messages;
    bool cold = false;  // More when something was read.
  };
  Behind look_behind(const Lane& lane, std::size_t most, std::uint64_t start);
  // FIFO: requests all messages that came later than this, and keeps them in memory until
  // hold(false) or until the next read is installed; after that, callers that still wait request
  // them again. True if nothing is missing.
  bool want_entered_after(Instant entered);
  void hold(bool on) { reads_.hold(on); }
  bool is_held() const { return reads_.is_held(); }
  // Keeps the content of a message in memory in the same way.
  void await(Seq seq) { reads_.await(seq); }
  // Requests a chunk that may have this message as a member; false if there is none.
  bool want_around(Seq seq);
  // The requested data cannot be read.
  void give_up(const ColdRead& read);
  // Fails if the store does not hold what it should.
  Status install(const ColdRead& read, std::vector<StoredMessage> found, Instant now);

  // Evicts a few chunks, beginning with those that are far from being received, until `target`
  // bytes are freed.
  Evicted evict(std::size_t target, bool near_too);
  // Evicts the contents of some detached messages in the same way.
  Evicted evict_contents(std::size_t target) {
    return parts_.messages.evict_contents(target, reads_);
  }
  bool has_deep() const { return chunks_.resident().has_deep(); }

  // Whether it has been read which of the messages that are only in the store expires first.
  // REQUIRES: there are some.
  bool knows_first_cold() const { return !cold().first_to_expire().cold->expiries.empty(); }
  void look_up_first_cold() { reads_.want_expiries(cold().first_to_expire()); }
  // Removes all cold messages whose retention began by `deadline`.
  struct ColdExpiry {
    std::size_t messages = 0;
    bool stalled = false;  // Some have expired; a read of which ones was requested.
  };
  ColdExpiry expire_cold(Instant deadline);

  // Looks at messages, from a position on, without changing anything. If something must be read
  // first, it is requested; what was read is kept until forget_peeked() is called when all such
  // reads have ended.
  void peek(Peek& peek);
  void forget_peeked() { reads_.drop_peeks(); }

  // Reads what is not in memory at once; changes nothing.
  using ReadNow = std::function<std::vector<StoredMessage>(const KeyRange&)>;
  // For each cold chunk: how many members it has, and those found in the store.
  using ColdVisitor = std::function<void(std::size_t members, const std::vector<StoredMessage>&)>;
  void for_each_cold(const ReadNow& read, const ColdVisitor& visit) const;
  ContentPtr content_of(const Message& message, const ReadNow& read) const;

  // Ends the process if an invariant of its parts does not hold. Visits all chunks and messages.
  void check_invariants() const;

 private:
  bool may_leave_memory(const Chunk& chunk) const;
  std::size_t make_cold(Chunk& chunk);
  Chunk* cold_chunk_around(const std::string& group, Seq seq) const;
  Status install_content(Seq seq, std::vector<StoredMessage> found);
  Status take_peek(Chunk& chunk, const ColdRead& read, std::vector<StoredMessage> found);
  Status bring_in(Chunk& chunk, std::vector<StoredMessage> found, Instant now);
  Status learn_expiries(Chunk& chunk, std::vector<StoredMessage> found);
  std::vector<StoredMessage> read_members(const Chunk& chunk, const ReadNow& read) const;

  const bool fifo_;
  Memory& memory_;
  const Parts parts_;
  ReadRequests reads_;
  ChunkSet chunks_;
};

}  // namespace stanchion::engine
