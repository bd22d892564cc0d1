// The entries that the owner of a log has sent and that do not count yet, by LG2 of
// journal/shared_log.h: which of them count now, and what has to be done so that more of them do.
//
//   sent ─▶ acknowledged at the next offset ───────────────────────────────▶ counts
//           acknowledged further on ─▶ the entries between are read ────────▶ counts, or superseded
//           acknowledged without an offset ─▶ open, until a later one is acknowledged with one; if
//                                             none is under way, a barrier is sent for it
//
//   SE1  Entries count in the order in which they were sent.
//   SE2  An entry that was acknowledged without an offset counts only when it was seen in the log.
//
// Pure bookkeeping. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "journal/log_entry.h"
#include "journal/shared_log.h"

namespace stanchion::kafka {

class SentEntries {
 public:
  // What comes next; ask again after each step.
  enum class Step {
    kWait,         // For acknowledgements.
    kTake,         // The first entry counts: take_first().
    kReadGap,      // look_at() has to be told the entries from gap() up to gap_end().
    kSendBarrier,  // All entries are open.
    kLost,         // An entry was acknowledged, but is not where it must be: the log has changed.
  };

  struct Entry {
    std::uint64_t number = 0;  // From 1.
    journal::LogEntry head;
    bool acknowledged = false;
    std::optional<journal::LogOffset> at;
  };

  // The owner of `epoch`, whose claim is at `claim`; everything up to there was read.
  SentEntries(journal::Epoch epoch, journal::LogOffset claim) : writer_(epoch, claim) {}

  // Returns the entry's number.
  std::uint64_t add(const journal::LogEntry& head);
  void acknowledge(std::uint64_t number, std::optional<journal::LogOffset> at);

  Step next() const;
  Entry take_first();

  journal::LogOffset gap() const { return writer_.gap(); }
  // The offset of the entry that waits for the gap to be read.
  journal::LogOffset gap_end() const;
  // The entry at gap(), whoever wrote it; `own` if it was sent from here. False: somebody else owns
  // the log. REQUIRES: next() is kReadGap.
  bool look_at(const journal::LogEntry& entry, bool own);
  // There is no entry at gap(), and there never will be: the log used the offset for itself.
  void skip_gap();

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  std::uint64_t last_number() const { return last_number_; }

 private:
  std::size_t open_count() const;

  journal::LogWriter writer_;
  std::deque<Entry> entries_;
  bool seen_ = false;  // The first entry, which was open, was seen in the log.
  std::uint64_t last_number_ = 0;
};

}  // namespace stanchion::kafka
