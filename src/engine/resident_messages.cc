#include "engine/resident_messages.h"

namespace stanchion::engine {

// Counted only once; the destructor may run on another thread.
void ResidentMessages::release_memory() {
  if (bytes_ > 0) memory_.messages -= std::exchange(bytes_, 0);
}

void ResidentMessages::note_if_outlived(const Message& message) {
  if (message.content && message.content->is_shared())
    memory_.outlived += message.content->footprint();
}

void ResidentMessages::set_content(Message& message, ContentPtr content) {
  CHECK(!message.content && content, "a content is read once");
  const std::size_t size = content->footprint();
  bytes_ += size;
  memory_.messages += size;
  message.content = std::move(content);
  // evict_contents() has come by, and has to look at this one again.
  if (message.seq >= walk_.next) return;
  walk_.read_since.push_back(message.seq);
  if (walk_.read_since.size() == kEvictLooksMax) walk_ = {Seq(), memory_.durable_checkpoint, {}};
}

// A detached message's record must stay, but its content can be read again when it is needed.
bool ResidentMessages::may_lose_content(const Message& message, const ReadRequests& reads) const {
  return !message.in_line && message.content && message.saved &&
         message.home->saved_in <= memory_.durable_checkpoint && !reads.is_awaited(message.seq);
}

void ResidentMessages::drop_content(Message& message) {
  CHECK(message.content && message.saved, "the store has the content that leaves memory");
  const std::size_t size = message.content->footprint();
  CHECK(size <= bytes_, "MM1: nothing is given back that was not taken");
  message.content = nullptr;
  bytes_ -= size;
  memory_.messages -= size;
}

Evicted ResidentMessages::evict_contents(std::size_t target, const ReadRequests& reads) {
  const std::size_t before = bytes_;
  std::size_t looks = kEvictLooksMax;
  const auto enough = [&] { return before - bytes_ >= target || looks == 0; };
  const auto look_at = [&](Message& message) {
    if (may_lose_content(message, reads)) drop_content(message);
  };
  if (walk_.checkpoint != memory_.durable_checkpoint)
    walk_ = {Seq(), memory_.durable_checkpoint, {}};
  Seq& next = walk_.next;
  if (next != kNoSeq) {
    const bool all = table_.for_each_from(next, [&](Message& message) {
      if (enough()) return false;
      --looks;
      look_at(message);
      next = message.seq.next();
      return true;
    });
    if (all) next = kNoSeq;
  }
  std::vector<Seq>& read = walk_.read_since;
  for (; !read.empty() && !enough(); read.pop_back(), --looks)
    if (Message* message = find(read.back())) look_at(*message);
  return {before - bytes_, next != kNoSeq || !read.empty()};
}

void ResidentMessages::check_invariants() const {
  std::size_t bytes = 0;
  table_.for_each([&](const Message& message) { bytes += memory_of(message); });
  CHECK(bytes == bytes_ && bytes_ <= memory_.messages, "MM1: memory is accounted for");
}

}  // namespace stanchion::engine
