// The messages of a stock that are in memory, and the bytes that they take.
//
// A message whose record must stay can lose its content if the store has it. After every durable
// checkpoint each message is examined once for that, and so is each whose content was read since.
//
//   MM1  bytes() is what the messages take, and the stock's part of Memory::messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/memory.h"
#include "engine/message.h"
#include "engine/message_table.h"
#include "engine/store/read_requests.h"

namespace stanchion::engine {

// The memory of a message, including its share of the allocator's overhead: header and rounding,
// for a record and a content.
inline std::size_t memory_of(const Message& message) {
  constexpr std::size_t kAllocationOverhead = 32;
  return sizeof(Message) + kAllocationOverhead +
         (message.content ? message.content->footprint() : 0);
}

class ResidentMessages {
 public:
  explicit ResidentMessages(Memory& memory) : memory_(memory) {}
  ~ResidentMessages() { release_memory(); }
  ResidentMessages(const ResidentMessages&) = delete;
  ResidentMessages& operator=(const ResidentMessages&) = delete;

  // They are about to be destroyed, perhaps by another thread: they no longer count as memory.
  void release_memory();

  // In order of Seq.
  const MessageTable& table() const { return table_; }
  Message* find(Seq seq) const { return table_.find(seq); }
  std::size_t bytes() const { return bytes_; }

  Message& keep(std::unique_ptr<Message> message);
  std::unique_ptr<Message> let_go(Message& message);
  // It is gone from the queue, but others may hold its content.
  void note_if_outlived(const Message& message);

  void set_content(Message& message, ContentPtr content);
  // Evicts the contents of messages that do not wait in a line, until `target` bytes are freed or
  // enough were examined. Not of those that are awaited.
  Evicted evict_contents(std::size_t target, const ReadRequests& reads);

  // Ends the process if an invariant does not hold. Visits all messages.
  void check_invariants() const;

 private:
  bool may_lose_content(const Message& message, const ReadRequests& reads) const;
  void drop_content(Message& message);

  // The position of evict_contents(): the messages from `next` on, and those that were read since it
  // came by them.
  struct Walk {
    Seq next;  // kNoSeq: none is left.
    std::uint64_t checkpoint = UINT64_MAX;
    std::vector<Seq> read_since{};
  };
  static constexpr Seq kNoSeq{UINT64_MAX};

  Memory& memory_;
  std::size_t bytes_ = 0;
  MessageTable table_;
  Walk walk_;
};

inline Message& ResidentMessages::keep(std::unique_ptr<Message> message) {
  const std::size_t size = memory_of(*message);
  bytes_ += size;
  memory_.messages += size;
  return table_.insert(std::move(message));
}

inline std::unique_ptr<Message> ResidentMessages::let_go(Message& message) {
  const std::size_t size = memory_of(message);
  CHECK(size <= bytes_, "MM1: nothing is given back that was not taken");
  bytes_ -= size;
  memory_.messages -= size;
  return table_.extract(message.seq);
}

}  // namespace stanchion::engine
