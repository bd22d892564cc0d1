// Writes the log of one shard for a fleet that begins with something: a claim, records, and nothing
// before them, as if the log had been trimmed. It begins where a checkpoint ends.
//
// One thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "journal/log_entry.h"
#include "kafka/connection.h"
#include "kafka/log_judge.h"

namespace stanchion::fleet_admin {

class LogFiller {
 public:
  // `digest` is that of all records before the first (LG4); 0: the chain begins here. The connection
  // must outlive this object.
  LogFiller(kafka::KafkaConnection& connection, kafka::ShardLog log, std::uint64_t writer,
            journal::LogDigest digest = {})
      : connection_(connection),
        log_(std::move(log)),
        writer_(writer),
        digest_(digest),
        before_(digest) {}

  // Comes first. `next` is the position of the first record, and `last` that of the last one which is
  // not made by who fills the log. Fails, and writes nothing, if the log was used.
  Status claim(Position next, Position last);

  // A log that was trimmed begins with a record, so one at least has to be added.
  Status add(Position position, std::string_view record);

  // Makes the log begin behind the claim, as one that was trimmed (KF1), and reads it as a node will.
  // Removes nothing if somebody has written in it before the claim meanwhile.
  Status finish();

  std::uint64_t records() const { return records_; }

 private:
  // Shared with what is under way, which may end later than this.
  struct Outcome {
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t under_way = 0;
    std::optional<Failure> failure;
    std::optional<journal::LogOffset> claim;  // Where the first entry is.
  };

  Status send(journal::LogEntryKind kind, Position first);
  // Until at most so many entries are under way.
  Status wait_for(std::size_t under_way);
  Status verify(journal::LogOffset begin);

  kafka::KafkaConnection& connection_;
  const kafka::ShardLog log_;
  const std::uint64_t writer_;
  journal::LogEntryBuilder entry_;
  Position last_;  // See claim().
  Position first_;
  journal::LogDigest digest_;  // Of all records so far,
  journal::LogDigest before_;  // and of those before the entry that is being made.
  std::uint64_t records_ = 0;
  std::shared_ptr<Outcome> outcome_ = std::make_shared<Outcome>();
};

}  // namespace stanchion::fleet_admin
