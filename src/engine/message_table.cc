#include "engine/message_table.h"

#include "base/check.h"

namespace stanchion::engine {

void MessageTable::clear() {
  for_each([](Message& message) { delete &message; });
  pages_.clear();
  size_ = 0;
}

Message& MessageTable::insert(std::unique_ptr<Message> message) {
  const std::uint64_t number = page_of(message->seq);
  // Almost every message goes to the last page or opens a new one behind it.
  auto page = pages_.empty() || pages_.rbegin()->first != number
                  ? pages_.try_emplace(pages_.end(), number)
                  : std::prev(pages_.end());
  const std::size_t slot = slot_of(message->seq);
  CHECK((page->second.used >> slot & 1) == 0, "a Seq is given once");
  page->second.used |= std::uint64_t{1} << slot;
  ++size_;
  return *(page->second.messages[slot] = message.release());
}

Message* MessageTable::find(Seq seq) const {
  const auto page = pages_.find(page_of(seq));
  if (page == pages_.end() || (page->second.used >> slot_of(seq) & 1) == 0) return nullptr;
  return page->second.messages[slot_of(seq)];
}

std::unique_ptr<Message> MessageTable::extract(Seq seq) {
  const auto page = pages_.find(page_of(seq));
  const std::size_t slot = slot_of(seq);
  CHECK(page != pages_.end() && (page->second.used >> slot & 1) != 0, "the message is there");
  std::unique_ptr<Message> message(page->second.messages[slot]);
  page->second.used &= ~(std::uint64_t{1} << slot);
  if (page->second.used == 0) pages_.erase(page);
  --size_;
  return message;
}

Message* MessageTable::first() const {
  if (pages_.empty()) return nullptr;
  const Page& page = pages_.begin()->second;
  return page.messages[static_cast<std::size_t>(std::countr_zero(page.used))];
}

std::size_t MessageTable::footprint() const {
  constexpr std::size_t kNodeOverhead = 4 * sizeof(void*) + sizeof(std::uint64_t);
  return pages_.size() * (sizeof(Page) + kNodeOverhead);
}

}  // namespace stanchion::engine
