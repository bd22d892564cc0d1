// The messages of a queue since its last purge, in memory or in the store.
//
// Each call leaves the structures consistent; Queue decides which call comes when, in queue.cc.
// Eviction and reading back do not change the queue: nothing that a client sees depends on them.
//
//   Q1 to Q3 are invariants of MessageStates; besides, ready messages wait in their lane, and so do
//   delayed ones of FIFO queues. Messages in flight stand in no line.
//   Q4  A lane may be received from exactly if LaneSet says so (S1): on FIFO queues if its head is
//       ready and none of its blockers is earlier. Idle lanes do not exist (S2), and each lane has
//       the place that it should have (S3, S4).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "engine/chunk_set.h"
#include "engine/lane_set.h"
#include "engine/memory.h"
#include "engine/memory_share.h"
#include "engine/message_states.h"
#include "engine/message_table.h"
#include "engine/peek.h"
#include "engine/resident_messages.h"
#include "engine/store/checkpoint_writer.h"
#include "engine/store/cold_read.h"
#include "engine/store/read_requests.h"
#include "engine/store/store_keys.h"
#include "engine/store/stored_message.h"

namespace stanchion::engine {

// Figures that CloudWatch shows, in its words, besides the counts. Approximations where the exact
// figure would need a look at every message.
struct WatchFigures {
  // When the oldest message came that was not received more than three times in vain, on standard
  // queues; nullopt if there is none.
  std::optional<Instant> oldest;
  // Groups with messages in flight, on FIFO queues also with messages that are leaving.
  std::size_t busy_groups = 0;
  // Fair queues: without the messages of noisy groups.
  Counts quiet;
  std::optional<Instant> oldest_quiet;
};

// The next message that a receive should take.
struct Next {
  Message* message = nullptr;
  const Lane* lane = nullptr;  // Without a message: the lane's next one is not in memory.

  explicit operator bool() const { return lane != nullptr; }
  bool is_cold() const { return message == nullptr || !message->content; }
};

// The lane of a FIFO queue from which a receive took its last message: the same receive may take
// more from it, but only up to the first message that was already away before.
struct Hold {
  Hold() = default;
  explicit Hold(const Lane& held) : lane(&held), until(held.blocked_from()) {}

  const Lane* lane = nullptr;
  Seq until;
};

enum class Presence { kInMemory, kAskedFor, kBehindAnother };

// What memory and store hold. Records belong to messages that cannot be evicted: delayed, in
// flight, or returned.
struct Holdings {
  std::size_t queues = 0;
  std::size_t lanes = 0;
  std::size_t chunks = 0;
  std::size_t in_memory = 0;  // Messages with a record in memory …
  std::size_t records = 0;    // … of which these must stay in memory.
  std::size_t cold = 0;       // Messages that are only in the store.
  std::size_t leaving = 0;    // On their way to another queue.
  std::size_t deduplication_ids = 0;
  std::size_t bytes = 0;  // Of messages in memory.
};

class Stock {
 public:
  Stock(StockName name, bool fifo, Memory& memory);
  ~Stock();
  Stock(const Stock&) = delete;
  Stock& operator=(const Stock&) = delete;

  // The stock is about to be destroyed, perhaps by another thread: it no longer counts as memory.
  void forsake();

  StockName name() const { return name_; }
  const Counts& counts() const { return states_.counts(); }
  // Its memory, including lanes and chunks.
  std::size_t bytes() const { return messages_.bytes() + structure_.bytes(); }
  std::size_t lane_count() const { return lanes_.size(); }
  std::size_t noisy_lane_count() const { return lanes_.noisy_count(); }
  bool has_cold() const { return !chunks_.cold().empty(); }
  void add_to(Holdings& holdings) const;

  // The message, if it is in memory; else nullptr.
  Message* find(Seq seq) const { return messages_.find(seq); }
  // Messages in memory, in order of Seq. The visitor may not change the stock.
  template <class Visitor>
  void for_each(Visitor&& visit) const {
    messages_.table().for_each([&](const Message& message) { visit(message); });
  }

  // When the oldest message came; nullopt if there is none.
  std::optional<Instant> oldest_entered() const;
  // What AWS watches; see WatchFigures.
  WatchFigures watch_figures() const;

  // Receiving: see Queue, which has the same calls.
  bool has_receivable() const { return lanes_.next() != nullptr; }
  Next next_to_receive(const Hold& held) const;
  bool has_more_behind(const Message& leaving) const;
  // Whether a receive that chooses its messages may take this one: on FIFO queues only if it could
  // be the next of any receive, or of the one that holds its lane.
  bool may_be_taken(const Message& message, const Hold& held) const;
  // Whether that is possible of a message that is perhaps not in memory, as the first that the
  // receive takes from its lane or as a later one.
  bool may_come(Seq seq, const std::string& group, bool first) const;

  // Some other messages of a lane whose head cannot be received; see next_to_receive(). Of a standard
  // queue, ready ones: at most half of `most` from the line, in order, and then of those that came
  // back, in no order, from the `start`th on. Requests chunks that it finds
  // missing, but no contents.
  struct Behind {
    std::vector<Message*> messages;
    bool cold = false;  // More when something was read.
  };
  Behind look_behind(const Lane& lane, std::size_t most, std::uint64_t start);
  // Lets next_to_receive() pass over a lane, until those lanes are taken back.
  bool pass_over(Lane& lane) { return lanes_.pass_over(lane); }
  void take_back(Lane& lane) { lanes_.take_back(lane); }

  // The life of a message. Each call moves it from one state to another, and updates the counts,
  // its lane, the timers, and what the next checkpoint has to write.
  //
  // A new message: delayed if `due` is in the future, else ready. Messages whose retention began by
  // `expired` no longer count as waiting, even if it is not known yet which they are.
  Message& insert(std::unique_ptr<Message> message, Instant due, Instant now, Instant expired);
  // From ready to in flight.
  void hand_out(Message& message, Instant visible_again, Instant now);
  // Stays in flight, until another time.
  void reschedule(Message& message, Instant visible_again);
  // From delayed or in flight to ready.
  void make_ready(Message& message, Instant now);
  // FIFO: waiting messages that were never received are delayed by this much from when they came.
  void delay_all(Duration delay, Instant now);
  // Removed, from any state.
  void erase(Message& message, Instant now);
  // From ready to leaving for another queue; on a FIFO queue it keeps its lane locked …
  std::unique_ptr<Message> detach(Message& message, Instant now);
  // … until it has arrived there,
  void forget_detached(Message& message);
  // or was refused there, and is ready again.
  void reattach(std::unique_ptr<Message> message);

  // Time. The first message to fall due, among those delayed and in flight, and when.
  Instant next_due() const { return states_.next_due(); }
  Message& first_due() const { return states_.first_due(); }
  // The message in memory that expires first; nullptr if there is none.
  Message* first_to_expire() const { return states_.first_to_expire(messages_.table()); }
  // When the retention of the first message to expire began, among those only in the store; kNever
  // if there are none.
  Instant first_cold_retention() const { return chunks_.cold().first_retention(); }
  // Whether it has been read which message that is.
  bool knows_first_cold() const { return !chunks_.cold().first_to_expire().cold->expiries.empty(); }
  // Removes all cold messages whose retention began by `deadline`.
  struct ColdExpiry {
    std::size_t messages = 0;
    bool stalled = false;  // Some have expired; a read of which ones was requested.
  };
  ColdExpiry expire_cold(Instant deadline);
  void look_up_first_cold() { reads_.want_expiries(chunks_.cold().first_to_expire()); }

  // Requests for what is not in memory. The results are passed to install().
  void want(const Next& next);
  bool is_wanted(const Next& next) const;
  Presence look_for(Seq seq, bool with_content, const std::string* group = nullptr);
  // Requests what a consumer of this lane will need soon.
  void read_ahead(const Lane& lane);
  // FIFO: requests all messages that came later than this, and keeps them in memory until
  // hold(false) or until the next read is installed; after that, callers that still wait request
  // them again. True if nothing is missing.
  bool want_entered_after(Instant entered);
  std::size_t cold_bytes_entered_after(Instant entered) const {
    return chunks_.cold().bytes_entered_after(entered);
  }
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
  // Evicts the contents of some strangers in the same way.
  Evicted evict_contents(std::size_t target) { return messages_.evict_contents(target, reads_); }
  bool has_deep() const { return chunks_.resident().has_deep(); }

  // Looks at messages, from a position on, without changing anything. If something must be read
  // first, it is requested; what was read is kept until forget_peeked() is called when all such
  // reads have ended.
  void peek(Peek& peek);
  void forget_peeked() { reads_.drop_peeks(); }
  const LaneSet& lanes() const { return lanes_; }

  // Reads what is not in memory at once; changes nothing.
  using ReadNow = std::function<std::vector<StoredMessage>(const KeyRange&)>;
  // For each cold chunk: how many members it has, and those found in the store.
  using ColdVisitor = std::function<void(std::size_t members, const std::vector<StoredMessage>&)>;
  void for_each_cold(const ReadNow& read, const ColdVisitor& visit) const;
  ContentPtr content_of(const Message& message, const ReadNow& read) const;

  // What the next checkpoint has to write.
  CheckpointWriter& writer() { return writer_; }
  const CheckpointWriter& writer() const { return writer_; }

  // Recovery: what a checkpoint wrote, one by one, chunks first; then loaded().
  Status load_chunk(LaneName lane, Seq from, std::string_view value, Instant at);
  Status load_stranger(Seq seq, std::string_view value);
  // A message on its way to another queue, with the chunk that it came from.
  Status load_detached(Message& message, Seq home);
  Status load_place(LaneName lane, std::string_view value);
  // The Seqs from `begin` up to `end` were assigned; messages that may still be delayed at `at` are
  // requested.
  Status loaded(Seq begin, Seq end, Instant at);

  // FIFO: the groups in the line, the one to receive from next first. Visits all lanes.
  std::vector<std::string> line() const;

  // End the process if an invariant does not hold. Visit the whole stock.
  void check_invariants() const;
  // Every lane of this FIFO queue is blocked by its messages in flight and by those that
  // `leaving(lane)` names, and by no others.
  template <class Leaving>
  void check_blockers(Leaving&& leaving) const {
    std::map<const Lane*, std::set<Seq>> away;
    messages_.table().for_each([&](const Message& m) {
      if (m.state == State::kInFlight) away[m.lane].insert(m.seq);
    });
    lanes_.for_each([&](const Lane& lane) {
      std::set<Seq>& expected = away[&lane];
      expected.merge(leaving(lane));
      std::set<Seq> blockers;
      for (const Message* m = lane.first_blocker; m != nullptr; m = m->next)
        blockers.insert(m->seq);
      CHECK(blockers == expected && lane.locks == blockers.size(), "Q3: blockers");
    });
  }

 private:
  friend struct StockPeek;  // Tests.

  std::optional<Instant> oldest_watched(bool quiet_only) const;
  void check_messages() const;
  void check_lanes() const;

  bool has_nothing_waiting(const Lane& lane, Instant expired) const;
  void release(Message& message, Instant now);
  void take_out_of_place(Message& message, Instant now);

  bool may_leave_memory(const Chunk& chunk) const;
  std::size_t make_cold(Chunk& chunk);
  bool loaded_makes_sense(Seq begin, Seq end) const;
  Chunk* cold_chunk_around(const std::string& group, Seq seq) const;
  Status take_peek(Chunk& chunk, const ColdRead& read, std::vector<StoredMessage> found);
  Status bring_in(Chunk& chunk, std::vector<StoredMessage> found, Instant now);
  Status learn_expiries(Chunk& chunk, std::vector<StoredMessage> found);
  std::vector<StoredMessage> read_members(const Chunk& chunk, const ReadNow& read) const;

  const StockName name_;
  const bool fifo_;
  Memory& memory_;
  ResidentMessages messages_;
  MemoryShare structure_;  // The part of lanes and chunks.
  LaneSet lanes_;
  MessageStates states_;
  CheckpointWriter writer_;
  ReadRequests reads_;
  ChunkSet chunks_;
  // Used only while the stock is loaded, in order of lane and Seq.
  struct Loaded {
    LaneName lane;
    Seq from;
    Chunk* chunk;
  };
  std::vector<Loaded> loaded_;
  std::vector<Loaded>::const_iterator first_loaded(LaneName lane, Seq from) const;
  Chunk* find_loaded(LaneName lane, Seq from) const;
  Lane* find_loaded(LaneName lane) const;
};

}  // namespace stanchion::engine
