// Follows the log of a shard from its beginning: judges every entry (log_judge.h) and passes the
// valid records on. A standby keeps one; so does a new owner until it has read up to its claim.
//
// One thread at a time calls; the handler of when_ready() is called by any.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/result.h"
#include "journal/journal.h"
#include "journal/shared_log.h"
#include "kafka/connection.h"
#include "kafka/log_judge.h"
#include "kafka/offset_index.h"
#include "kafka/partition_reader.h"
#include "kafka/settings.h"

namespace stanchion::kafka {

class KafkaFollower {
 public:
  enum class Progress {
    kEntry,    // An entry was read; its valid records were passed on.
    kEnd,      // Everything that is there was read.
    kNothing,  // The time is over.
  };

  // `connection` must outlive the follower.
  static Result<std::unique_ptr<KafkaFollower>> open(KafkaConnection& connection,
                                                     const ShardLog& log);

  // Reads one entry. A failure of `visit` is returned, and so is damage of the log; nothing can be
  // read after that.
  Result<Progress> step(const journal::RecordVisitor& visit, std::chrono::milliseconds timeout);

  // `ready` is called when there may be more to read, after everything was read; see
  // PartitionReader.
  void when_ready(std::function<void()> ready);

  // The position of the next record; nullopt as long as no entry was read.
  std::optional<Position> next() const;
  journal::Epoch epoch() const { return judge_.epoch(); }
  // Of all records before the one that step() passes on, and of those up to it; none: the log does
  // not say.
  std::optional<journal::LogDigest> digest_before() const { return digest_before_; }
  std::optional<journal::LogDigest> digest() const { return judge_.digest(); }
  const ShardLog& log() const { return judge_.log(); }

  // Behind the entry that was read last; 0 if there was none.
  journal::LogOffset next_offset() const {
    return judge_.has_begun() ? offset_.next() : journal::LogOffset();
  }

  // Everything before it was read, as far as there is something.
  journal::LogOffset reached() const { return std::max(next_offset(), reader_->end()); }

  // Whether step() failed because the next entry is no longer there.
  bool trimmed() const { return trimmed_; }
  // Whether it failed because only a later release can read the next entry.
  bool too_new() const { return too_new_; }

  // Of the entry that step() read last.
  journal::LogOffset offset() const { return offset_; }
  journal::LogReader::Verdict verdict() const { return verdict_; }
  std::uint64_t writer() const { return writer_; }

  // Where the valid records are, for who trims the log.
  OffsetIndex take_index() { return std::move(index_); }

 private:
  KafkaFollower(KafkaConnection& connection, ShardLog log, std::unique_ptr<PartitionReader> reader)
      : connection_(connection), reader_(std::move(reader)), judge_(std::move(log)) {}
  Status take(const journal::RecordVisitor& visit);
  Status begin_anew();

  KafkaConnection& connection_;
  std::unique_ptr<PartitionReader> reader_;
  std::function<void()> ready_;
  bool trimmed_ = false;
  bool too_new_ = false;
  LogJudge judge_;
  std::optional<journal::LogDigest> digest_before_;
  OffsetIndex index_;
  journal::LogOffset offset_;
  journal::LogReader::Verdict verdict_ = journal::LogReader::Verdict::kVoid;
  std::uint64_t writer_ = 0;
};

}  // namespace stanchion::kafka
