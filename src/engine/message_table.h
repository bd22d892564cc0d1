// The live messages of a queue by Seq: found in O(log pages), iterated in order, owned here.
//
// Seqs are dense counters, so messages lie in pages of 64 consecutive Seqs: little more than one
// pointer per message in a busy queue, and one small page for a lone survivor.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>

#include "engine/message.h"

namespace stanchion::engine {

class MessageTable {
 public:
  MessageTable() = default;
  MessageTable(const MessageTable&) = delete;
  MessageTable& operator=(const MessageTable&) = delete;
  ~MessageTable() { clear(); }

  void clear();

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  Message& insert(std::unique_ptr<Message> message);
  Message* find(Seq seq) const;
  std::unique_ptr<Message> extract(Seq seq);

  // Prefetches the messages first to last: all at once takes a fraction of one by one.
  void fetch(Seq first, Seq last) const;

  // The lowest Seq; nullptr if there is none.
  Message* first() const;

  // Calls visit(Message&) in order of Seq. The visitor may not change the table.
  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (const auto& [number, page] : pages_)
      for (std::uint64_t bits = page.used; bits != 0; bits &= bits - 1)
        visit(*page.messages[static_cast<std::size_t>(std::countr_zero(bits))]);
  }

  // Calls visit(const Message&) in order of Seq until it returns false.
  template <class Visitor>
  void for_each_while(Visitor&& visit) const {
    for (const auto& [number, page] : pages_)
      for (std::uint64_t bits = page.used; bits != 0; bits &= bits - 1)
        if (!visit(*page.messages[static_cast<std::size_t>(std::countr_zero(bits))])) return;
  }

  // Calls visit(Message&) in order of Seq, from `first` on, until it returns false; false if it did.
  // The visitor may not change the table.
  template <class Visitor>
  bool for_each_from(Seq first, Visitor&& visit) const {
    for (auto it = pages_.lower_bound(page_of(first)); it != pages_.end(); ++it) {
      for (std::uint64_t bits = it->second.used; bits != 0; bits &= bits - 1) {
        Message& message = *it->second.messages[static_cast<std::size_t>(std::countr_zero(bits))];
        if (message.seq >= first && !visit(message)) return false;
      }
    }
    return true;
  }

  // The same from `first` to `last`, until visit returns false.
  template <class Visitor>
  void for_each_between(Seq first, Seq last, Visitor&& visit) const {
    for (auto it = pages_.lower_bound(page_of(first));
         it != pages_.end() && it->first <= page_of(last); ++it) {
      for (std::uint64_t bits = it->second.used; bits != 0; bits &= bits - 1) {
        const Message& message =
            *it->second.messages[static_cast<std::size_t>(std::countr_zero(bits))];
        if (message.seq < first) continue;
        if (last < message.seq || !visit(message)) return;
      }
    }
  }

  // Bytes of memory that the table itself takes, without the messages.
  std::size_t footprint() const;

 private:
  static constexpr std::size_t kPageSize = 64;

  struct Page {
    std::uint64_t used = 0;  // Bit i: messages[i] is there.
    std::array<Message*, kPageSize> messages{};
  };

  static std::uint64_t page_of(Seq seq) { return seq.value() / kPageSize; }
  static std::size_t slot_of(Seq seq) { return seq.value() % kPageSize; }

  // nullptr if there is none.
  Page* find_page(std::uint64_t number) const;

  std::map<std::uint64_t, Page> pages_;
  // The page that was last used, because the next message is often its neighbour. nullptr if it is
  // gone.
  mutable Page* recent_ = nullptr;
  mutable std::uint64_t recent_number_ = 0;
  std::size_t size_ = 0;
};

// The same for the members of a chunk, which pays off if few other messages lie between the first
// and the last.
void fetch_members(const MessageTable& messages, const Chunk& chunk);

}  // namespace stanchion::engine
