#include "kafka/sent_entries.h"

#include <utility>

#include "base/check.h"

namespace stanchion::kafka {
namespace {

using journal::LogEntry;
using journal::LogEntryKind;
using journal::LogOffset;

bool is_same(const LogEntry& a, const LogEntry& b) {
  return a.kind == b.kind && a.first == b.first && a.count == b.count;
}

}  // namespace

std::uint64_t SentEntries::add(const LogEntry& head) {
  entries_.push_back({.number = ++last_number_, .head = head, .at = {}});
  return last_number_;
}

void SentEntries::acknowledge(std::uint64_t number, std::optional<LogOffset> at) {
  CHECK(!entries_.empty() && number >= entries_.front().number && number <= last_number_,
        "an entry is acknowledged while it is under way");
  Entry& entry = entries_[static_cast<std::size_t>(number - entries_.front().number)];
  CHECK(!entry.acknowledged, "an entry is acknowledged once");
  entry.acknowledged = true;
  entry.at = at;
}

std::size_t SentEntries::open_count() const {
  std::size_t count = 0;
  while (count < entries_.size() && entries_[count].acknowledged && !entries_[count].at) ++count;
  return count;
}

SentEntries::Step SentEntries::next() const {
  if (entries_.empty()) return Step::kWait;
  if (seen_) return Step::kTake;
  const std::size_t open = open_count();
  if (open == entries_.size()) return Step::kSendBarrier;
  const Entry& closing = entries_[open];
  if (!closing.acknowledged) return Step::kWait;
  if (*closing.at > writer_.gap()) return Step::kReadGap;
  // The gap was read up to the closing entry, and an open one was not in it.
  if (open > 0 || !writer_.follows(*closing.at)) return Step::kLost;
  return Step::kTake;
}

SentEntries::Entry SentEntries::take_first() {
  CHECK(next() == Step::kTake, "only an entry that counts is taken");
  const Entry first = entries_.front();
  if (!std::exchange(seen_, false)) writer_.take_own(*first.at);
  entries_.pop_front();
  return first;
}

LogOffset SentEntries::gap_end() const {
  const std::size_t open = open_count();
  CHECK(open < entries_.size() && entries_[open].at, "an entry waits for the gap to be read");
  return *entries_[open].at;
}

bool SentEntries::look_at(const LogEntry& entry, bool own) {
  CHECK(next() == Step::kReadGap, "entries are looked at while there is a gap");
  const LogOffset at = writer_.gap();
  if (!writer_.look_at(entry)) return false;
  Entry& first = entries_.front();
  if (own && first.acknowledged && !first.at && is_same(first.head, entry)) {
    first.at = at;
    seen_ = true;
  }
  return true;
}

void SentEntries::skip_gap() {
  (void)writer_.look_at({.kind = LogEntryKind::kBarrier, .epoch = {}, .first = {}});
}

}  // namespace stanchion::kafka
