#include "journal/memory_journal.h"

#include <utility>

#include "base/check.h"
#include "model/limits.h"

namespace stanchion::journal {

Status MemoryJournal::replay(Position from, const RecordVisitor&) {
  if (from != next_) return fail("a journal in memory has nothing to replay");
  return {};
}

void MemoryJournal::start(JournalEvents events) {
  events_ = std::move(events);
}

Position MemoryJournal::append(std::string_view record) {
  CHECK(record.size() <= limits::kRecordSizeMax, "record too large");
  return std::exchange(next_, next_.next());
}

void MemoryJournal::flush() {
  const Position last(next_.value() - 1);
  if (last == durable_) return;
  durable_ = last;
  if (events_.durable) events_.durable(last);
}

Status MemoryJournal::close() {
  flush();
  return {};
}

}  // namespace stanchion::journal
