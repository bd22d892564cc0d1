// Both ends of a transfer of messages from one queue to another, which may live in another shard.
//
// Source: the fact that a message leaves is durable before it is handed over, and the message stays
// in the outbox until the destination has it durably. Destination: accepts each number of a source
// once. So a crash at any point neither loses nor duplicates a message.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "engine/message.h"
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
  std::unique_ptr<Message> message;
  // The chunk that it came from, by its name: the chunk itself goes when its queue is purged.
  Seq home{};
};

class Outbox {
 public:
  TransferNo next() const { return next_; }
  void add(TransferNo number, Departure departure);
  Departure* find(TransferNo number);
  Departure take(TransferNo number);

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
  static Result<Departure> parse(std::string_view value, Seq& home);
  void load(TransferNo number, Departure departure);
  void load_next(TransferNo next);

 private:
  std::map<TransferNo, Departure> under_way_;
  TransferNo next_{1};
  TransferNo saved_below_{1};        // The last checkpoint knew of lower numbers.
  std::vector<TransferNo> settled_;  // Settled since, among those.

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
