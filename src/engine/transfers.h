// Both ends of a transfer of messages from one queue to another, which may live in another shard.
//
// Source: the fact that a message leaves is durable before it is handed over, and the message stays
// in the outbox until the destination has it durably. Destination: accepts each number of a source
// once. So a crash at any point neither loses nor duplicates a message.
//
// What is under way is bounded in bytes, for all accounts together and for each. Data that was
// written without this bound may have more under way: then only some of the contents are in memory,
// and the others are read when it is their turn to be handed over.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "engine/memory_share.h"
#include "engine/message.h"
#include "engine/store/cold_read.h"
#include "engine/store/stored_message.h"
#include "model/batch.h"
#include "model/fact.h"
#include "model/ids.h"

namespace stanchion::engine {

struct Departure {
  QueueId queue;  // The source queue; it may be gone by now.
  std::string source_arn;
  QueueRef destination;
  TransferReason reason = TransferReason::kDeadLetter;
  TaskId task;
  std::unique_ptr<Message> message;  // Its content is null while it is only in the store.
  std::size_t bytes = 0;             // Of memory, including the content wherever that is.
  bool handed_over = false;          // Since the start; from then on its content stays in memory.
  bool reading = false;              // Its content was requested, and has not been read yet.
  bool unreadable = false;           // It stays here.
  // The chunk that it came from, by its name: the chunk itself goes when its queue is purged.
  Seq home{};
};

class Outbox {
 public:
  // What it holds in memory is added to `memory`.
  explicit Outbox(std::size_t& memory) : in_memory_(memory) {}

  TransferNo next() const { return next_; }
  void add(TransferNo number, Departure departure);
  Departure* find(TransferNo number);
  Departure take(TransferNo number);

  // Whether one more message of a queue of this account may leave, if at most about `bytes_max` may
  // be under way, and `numbers_max` numbers be in use: an account has half of both. One message may
  // always leave.
  bool has_room(std::string_view account, std::size_t bytes_max, std::uint64_t numbers_max) const;
  std::size_t bytes() const { return bytes_; }
  // Those of departures that no durable checkpoint has, so that evict() leaves them alone.
  std::size_t bytes_to_save() const { return since_durable_; }

  // The first departure from `from` on that is below `end` and may be handed over now; `from` moves
  // behind it. Null if there is none, if those that were handed over and are not settled take
  // `bytes_max`, or if its content must be read first: then that is added to `wanted`.
  const Departure* hand_over(TransferNo& from, TransferNo end, std::size_t bytes_max,
                             std::vector<ColdRead>& wanted);

  // Drops contents that a durable checkpoint has, the last to be handed over first, until `target`
  // bytes are freed; returns how many were.
  std::size_t evict(std::size_t target);
  // Requests the content of a departure that needs it; false if that is in memory.
  bool want(TransferNo number, std::vector<ColdRead>& wanted);
  Status install(TransferNo number, std::vector<StoredMessage> found);
  // The content cannot be read.
  void give_up(TransferNo number);

  // Every number below this one is settled. It is so for good when that is durable: after a crash
  // a number that was refused, but not durably, is handed over again.
  TransferNo settled_below() const {
    return under_way_.empty() ? next_ : under_way_.begin()->first;
  }

  const std::map<TransferNo, Departure>& under_way() const { return under_way_; }

  // A checkpoint writes what differs from the last one: begin_save() fixes what that is, and calls
  // of save_some() write it, each of which looks at this many departures at most and returns how
  // many it looked at. The batch must live until nothing is pending.
  void begin_save(Batch& batch);
  bool has_pending() const { return pending_from_ < pending_below_ || !pending_settled_.empty(); }
  std::size_t save_some(std::size_t count);
  void saved();  // The checkpoint is durable.
  static Result<Departure> parse(std::string_view value, Seq& home);
  // Without its content if more than `bytes_max` are in memory already.
  void load(TransferNo number, Departure departure, std::size_t bytes_max);
  void load_next(TransferNo next);
  // Numbers below this one are not used any more.
  void resume_at(TransferNo next) { next_ = std::max(next_, next); }

  // Ends the process if what is counted is not what there is.
  void check_bytes() const;

 private:
  void count(Departure& departure);
  static std::string_view account_of(const Departure& departure);
  static std::size_t bytes_in_memory(const Departure& departure);
  void drop_content(Departure& departure);
  void request(TransferNo number, Departure& departure, std::vector<ColdRead>& wanted);
  bool has_numbers(std::string_view account, std::uint64_t most) const;

  std::map<TransferNo, Departure> under_way_;
  TransferNo next_{1};
  mutable TransferNo readable_from_{1};  // Of those under way, lower numbers are unreadable.
  TransferNo saved_below_{1};            // The last checkpoint knew of lower numbers.
  std::vector<TransferNo> settled_;      // Settled since, among those.
  TransferNo durable_below_{1};          // The last durable checkpoint knew of lower numbers.
  TransferNo evict_below_{1};            // Of those, evict() has still to look at lower numbers.
  MemoryShare in_memory_;
  std::size_t bytes_ = 0;          // Of all departures …
  std::size_t handed_over_ = 0;    // … and of those that were handed over.
  std::size_t since_saved_ = 0;    // Of those from saved_below_ on …
  std::size_t since_durable_ = 0;  // … and from durable_below_ on.
  std::map<std::string, std::size_t, std::less<>> accounts_;  // Of those from queues of an account.

  void save(TransferNo number, const Departure& departure);

  // What the checkpoint under way has yet to write: the departures with these numbers, unless they
  // were written before they were settled, and the end of those that were settled before it began.
  Batch* batch_ = nullptr;
  TransferNo pending_from_;
  TransferNo pending_below_;
  std::vector<TransferNo> pending_settled_;
};

class Inbox {
 public:
  bool has(ShardIndex source, TransferNo number) const;
  void accept(ShardIndex source, TransferNo number, TransferNo settled_below);
  std::size_t remembered() const;
  // What the source has said; 0 if it never sent anything.
  TransferNo settled_below(ShardIndex source) const;
  // No number from here on was ever accepted from this source.
  TransferNo end(ShardIndex source) const;

  void save(std::string& out) const;
  bool load(ByteReader& reader);

  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (const auto& [shard, source] : sources_)
      for (const TransferNo number : source.accepted) visit(shard, number);
  }

 private:
  struct Source {
    TransferNo settled_below;
    std::set<TransferNo> accepted;  // At or above settled_below.
  };
  std::map<ShardIndex, Source> sources_;
};

}  // namespace stanchion::engine
