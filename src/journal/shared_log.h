// The rules by which several machines write one log, of which one at a time owns a shard. The log
// keeps whatever anybody appends, in one order that all see; it refuses nobody. So an owner that
// was replaced and does not know it can still append, and the log acknowledges that.
//
//   LG1  Readers: what an entry means is a function of the entries before it. So all agree on it.
//        A claim is valid if its epoch is higher than that of the last valid claim. Records are
//        valid if their epoch is that of the last valid claim and the first of them has the next
//        position. Everything else is void: it has no effect, ever. Records of a higher epoch, or
//        behind a gap, cannot be without a claim or records that this reader was not shown: the log
//        was changed behind it.
//   LG2  Writers: an entry of one's own counts only when every entry from one's claim up to it is
//        known, and no higher claim is among them. An acknowledgement alone says nothing.
//   LG3  A new owner appends its claim and reads everything before it; then it serves.
//   LG4  An entry says the digest of all records before it, a chain: each digest is made of the one
//        before and a record. Whoever has read other records, or has them in its store, finds out at
//        the first such entry, and must not use the log. Entries of the first format have none; the
//        chain begins with the first entry that says one. From there on all records have one: who
//        writes none cannot have read those before.
//
// Pure bookkeeping. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/strong.h"
#include "model/ids.h"

namespace stanchion::journal {

// The place of an entry in the log; the log assigns it. The first one is 0.
using LogOffset = Strong<struct LogOffsetTag>;

// LG4. That of no records, where a chain begins, is 0.
using LogDigest = Strong<struct LogDigestTag>;

LogDigest extended(LogDigest digest, std::string_view record);

// The ordinal of an ownership; the first claim has 1.
using Epoch = Strong<struct EpochTag>;

enum class LogEntryKind : std::uint8_t {
  kRecords = 1,
  kClaim = 2,    // "From here on the log is mine."
  kBarrier = 3,  // Nothing but a place in the log, to learn what stands before it.
};

struct LogEntry {
  LogEntryKind kind = LogEntryKind::kRecords;
  Epoch epoch;
  // Who wrote it: a number that every writer draws anew, by which it knows its own claim.
  std::uint64_t writer = 0;
  // Of records: the position of the first, and how many there are. Otherwise the position of the
  // next record that its writer knows of.
  Position first;
  std::uint64_t count = 0;
  // Of all records before `first`, if the entry says it.
  std::optional<LogDigest> before{};
};

// LG1.
class LogReader {
 public:
  enum class Verdict {
    kRecords,    // The records are the next ones.
    kClaim,      // The log has another owner from here on.
    kVoid,       // Of no effect.
    kDuplicate,  // These records were here before; of no effect.
    kDamaged,    // Records or a claim are missing before these: the log must not be used.
    kOtherPast,  // Its writer has read other records than this reader: likewise.
  };

  // Entries have to be passed in order, each once. `next` is the position of the next record.
  explicit LogReader(Position next = Position(1), Epoch epoch = Epoch())
      : next_(next), epoch_(epoch) {}

  Verdict judge(const LogEntry& entry);

  // Each record of an entry that is found to be kRecords, in order, before the next entry.
  void pass(std::string_view record) {
    if (digest_) digest_ = extended(*digest_, record);
  }

  Position next() const { return next_; }
  Epoch epoch() const { return epoch_; }
  // Of all records that were passed, and those before them; none: the chain has not begun.
  std::optional<LogDigest> digest() const { return digest_; }

 private:
  // LG4: of an entry that begins at next_.
  bool has_the_same_past(const LogEntry& entry);

  Position next_;
  Epoch epoch_;          // Of the last valid claim.
  Position claimed_at_;  // The next record then: its owner writes none before it.
  std::optional<LogDigest> digest_;
};

// LG2: how far an owner knows the log.
class LogWriter {
 public:
  // The owner of `epoch`, whose claim is at `claim`; everything up to there was read.
  LogWriter(Epoch epoch, LogOffset claim) : epoch_(epoch), known_(claim) {}

  // Whether an entry of one's own at this offset counts at once; if not, the entries from gap() up
  // to it have to be passed to look_at() first.
  bool follows(LogOffset own) const { return own == known_.next(); }
  LogOffset gap() const { return known_.next(); }

  // An entry of one's own that follows.
  void take_own(LogOffset own);

  // The entry at gap(), whoever wrote it. False: somebody else owns the log.
  bool look_at(const LogEntry& entry);

 private:
  Epoch epoch_;
  LogOffset known_;  // Everything up to here was looked at.
};

}  // namespace stanchion::journal
