#include "engine/message_table.h"

#include "base/check.h"
#include "base/fetch_soon.h"
#include "engine/chunk.h"

namespace stanchion::engine {

void MessageTable::clear() {
  for_each([](Message& message) { delete &message; });
  pages_.clear();
  recent_ = nullptr;
  size_ = 0;
}

MessageTable::Page* MessageTable::find_page(std::uint64_t number) const {
  if (recent_ != nullptr && recent_number_ == number) return recent_;
  const auto found = pages_.find(number);
  if (found == pages_.end()) return nullptr;
  recent_number_ = number;
  return recent_ = const_cast<Page*>(&found->second);
}

Message& MessageTable::insert(std::unique_ptr<Message> message) {
  const std::uint64_t number = page_of(message->seq);
  Page* page = find_page(number);
  if (page == nullptr) {
    // Almost every new message goes behind all others.
    page = recent_ = &pages_.try_emplace(pages_.end(), number)->second;
    recent_number_ = number;
  }
  const std::size_t slot = slot_of(message->seq);
  CHECK((page->used >> slot & 1) == 0, "a Seq is given once");
  page->used |= std::uint64_t{1} << slot;
  ++size_;
  return *(page->messages[slot] = message.release());
}

Message* MessageTable::find(Seq seq) const {
  const Page* page = find_page(page_of(seq));
  if (page == nullptr || (page->used >> slot_of(seq) & 1) == 0) return nullptr;
  return page->messages[slot_of(seq)];
}

std::unique_ptr<Message> MessageTable::extract(Seq seq) {
  Page* page = find_page(page_of(seq));
  const std::size_t slot = slot_of(seq);
  CHECK(page != nullptr && (page->used >> slot & 1) != 0, "the message is there");
  std::unique_ptr<Message> message(page->messages[slot]);
  page->used &= ~(std::uint64_t{1} << slot);
  if (page->used == 0) {
    pages_.erase(page_of(seq));
    recent_ = nullptr;
  }
  --size_;
  return message;
}

void MessageTable::fetch(Seq first, Seq last) const {
  auto it = pages_.lower_bound(page_of(first));
  for (; it != pages_.end() && it->first <= page_of(last); ++it) {
    for (const Message* message : it->second.messages) fetch_soon(message, sizeof *message);
  }
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

void fetch_members(const MessageTable& messages, const Chunk& chunk) {
  if (chunk.members == 0) return;
  const std::uint64_t span = chunk.last->seq.value() - chunk.first->seq.value();
  if (span < 2 * std::uint64_t{chunk.members}) messages.fetch(chunk.first->seq, chunk.last->seq);
}

}  // namespace stanchion::engine
