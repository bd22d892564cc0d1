// Judges the entries of a shard's log in a partition, one after the other, for everybody who reads
// one: a standby, a new owner, and who only looks.
//
//   KF1  A log is trimmed only right before a valid entry with records. So where a log does not
//        begin at the offset 0, its first entry has records and is valid, and says by itself which
//        epoch and which position the log was at.
//   KF3  A log that was founded with stores that have records begins with a claim that says where they
//        end. Who founds it removes that claim, so that KF1 holds. But Kafka may forget where a log
//        begins, if all brokers are killed within a minute: then the claim at the offset 0 says it.
//   KF2  Bytes that cannot be an entry, or what one changed byte has left of one, are void, for every
//        reader: no node has written them. Others that do not match their checksum, or belong to
//        another fleet or shard, are refused. A later version is believed only of an entry that is
//        whole and of this fleet and shard. Kafka's own checksum is not needed for that: a byte that
//        changes outside an entry leaves it as it is, or shows as a damaged entry, as a missing one
//        (KF4), or as a log that shows nothing further (silence_watch.h).
//   KF4  A log has something at every offset: nobody compacts it or writes transactions to it. What
//        stands behind an offset that is missing is refused, because a claim may be what is missing.
//
// Pure bookkeeping. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "journal/log_entry.h"
#include "journal/shared_log.h"
#include "kafka/settings.h"

namespace stanchion::kafka {

// The log of a shard, and who this is.
struct ShardLog {
  Partition partition;
  std::uint64_t fleet = 0;
  ShardIndex shard{};
  std::uint32_t node = 0;
  // Whether an operator has declared that what cannot be read at this offset is of no effect. Any
  // thread.
  std::function<bool(journal::LogOffset)> is_skipped = {};
};

// The entry in `bytes`; nullopt if they cannot be one (KF2), or are skipped. No entry has a key.
Result<std::optional<journal::DecodedLogEntry>> read_entry(const ShardLog& log,
                                                           journal::LogOffset at,
                                                           std::string_view bytes,
                                                           std::string_view key);

// KF4: whether nothing is missing from `expected` to `at`, except what is skipped.
Status check_offset(const ShardLog& log, journal::LogOffset expected, journal::LogOffset at);

class LogJudge {
 public:
  explicit LogJudge(ShardLog log) : log_(std::move(log)) {}

  struct Judged {
    std::optional<journal::DecodedLogEntry> entry;  // None: the bytes are none, or unreadable.
    journal::LogReader::Verdict verdict = journal::LogReader::Verdict::kVoid;
    std::string problem;   // If it is damaged.
    bool too_new = false;  // It is not damaged: only a later release can read it.
    bool missing = false;  // It is not damaged itself: KF4.
  };

  // Entries have to be passed in order, each once. Who finds that one is damaged must not use what
  // comes behind it. `bytes` must outlive what is returned.
  Judged judge(journal::LogOffset at, std::string_view bytes, std::string_view key = {});

  // LG4: each record of a valid entry, in order, before the next entry.
  void pass(std::string_view record) { reader_->pass(record); }
  // Of the records that were passed, and all before them, if the log says so.
  std::optional<journal::LogDigest> digest() const {
    return reader_ ? reader_->digest() : std::nullopt;
  }

  // For who only looks, after a damaged entry: what comes is judged as if this entry were valid.
  void go_on_behind(const Judged& damaged);

  // The log ends at this offset for now; a failure if something is missing before it.
  Status check_end(journal::LogOffset end) const;

  // The offset that comes next, except those that are skipped, once the log has a beginning.
  journal::LogOffset expected() const;

  // Whether an entry was judged by which the log has a beginning.
  bool has_begun() const { return reader_.has_value(); }
  // The position of the next record. REQUIRES: has_begun().
  Position next() const { return reader_->next(); }
  journal::Epoch epoch() const { return reader_ ? reader_->epoch() : journal::Epoch(); }
  const ShardLog& log() const { return log_; }

 private:
  // The position of the first record of a log with this entry at the offset 0.
  static Position first_of(const Result<std::optional<journal::DecodedLogEntry>>& entry);
  // Why the log cannot begin with this entry; empty: it does now.
  std::string begin(journal::LogOffset at, const journal::DecodedLogEntry* entry);

  ShardLog log_;
  journal::LogOffset expected_;               // Once the log has a beginning.
  std::optional<journal::LogReader> reader_;  // From the first entry on.
};

}  // namespace stanchion::kafka
