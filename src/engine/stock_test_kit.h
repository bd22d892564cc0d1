// What tests of a stock need around it: a queue, and a store that is a map. Time is a number.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/stock.h"

namespace stanchion::engine {

class StockTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kChunkMessages = 3;

  static QueueAttributes standard() {
    QueueAttributes attributes;
    attributes.retention_seconds = 60;
    return attributes;
  }

  Message& send(std::string_view body = "hello", Duration delay = {}) {
    auto message = std::make_unique<Message>();
    message->seq = queue.next_seq();
    ContentParts parts;
    parts.body = body;
    message->content = Content::make(parts);
    message->retained_from = now;
    return queue.enter(std::move(message), now + delay, now);
  }
  void send_many(int count) {
    for (int i = 0; i < count; ++i) send();
  }
  Message& receive() {
    Message* message = queue.next_to_receive().message;
    if (message == nullptr) throw std::runtime_error("nothing in memory to receive");
    queue.receive(*message, now + std::chrono::seconds(30), now);
    return *message;
  }
  void drain() {
    while (queue.has_receivable()) queue.remove(receive(), now);
  }

  void begin_save() {
    memory.batch = std::make_unique<Batch>();
    memory.checkpoint = ++checkpoints;
    queue.begin_save();
  }
  Batch end_save() {
    queue.stock().writer().save_some(SIZE_MAX);
    return std::move(*std::exchange(memory.batch, nullptr));
  }
  Batch save() {
    begin_save();
    return end_save();
  }
  void commit(const Batch& batch) {
    for (const KeyRange& range : batch.erased_ranges)
      entries.erase(entries.lower_bound(range.begin), entries.lower_bound(range.end));
    for (const Key& key : batch.erased) entries.erase(std::string(key));
    batch.for_each_put([&](std::string_view key, std::string_view head, const ContentPtr& content) {
      std::string& value = entries[std::string(key)] = head;
      if (content != nullptr) value += content->encoded();
    });
    memory.durable_checkpoint = checkpoints;
  }
  void checkpoint() { commit(save()); }
  std::size_t evict() { return queue.stock().residency().evict(SIZE_MAX, true).bytes; }

  Engine::ScanStore scan() {
    return [this](const KeyRange& range, const auto& visit) -> Status {
      ++walks;
      for (auto it = entries.lower_bound(range.begin); it != entries.end() && it->first < range.end;
           ++it)
        if (!visit(it->first, it->second)) break;
      return {};
    };
  }
  std::vector<StoredMessage> read(const ColdRead& wanted) {
    auto found = Engine::read(wanted, scan());
    if (!found) throw std::runtime_error(found.error().message);
    return std::move(*found);
  }
  std::vector<ColdRead> wanted() { return std::exchange(memory.wanted, {}); }
  Status read_wanted() {
    for (auto reads = wanted(); !reads.empty(); reads = wanted())
      for (const ColdRead& r : reads) RETURN_IF_FAILED(queue.install(r, read(r), now));
    return {};
  }
  void bring_in_head() {
    queue.want(queue.next_to_receive());
    ASSERT_TRUE(read_wanted());
  }

  // Members of each chunk of the plain lane.
  std::vector<std::uint32_t> chunks() {
    std::vector<std::uint32_t> out;
    for (const Chunk* chunk = lane().first_chunk; chunk != nullptr; chunk = chunk->next)
      out.push_back(chunk->members);
    return out;
  }
  const Lane& lane() { return *queue.stock().lanes().find(""); }
  std::size_t keys(KeyType type) const {
    const KeyRange range = all_of(type);
    return static_cast<std::size_t>(
        std::distance(entries.lower_bound(range.begin), entries.lower_bound(range.end)));
  }
  // In packs or by themselves.
  std::size_t messages_stored() const {
    std::vector<StoredMessage> found;
    for (const auto& [key, value] : entries) {
      if (KeyReader(key).type() != KeyType::kMessage) continue;
      EXPECT_TRUE(parse_stored_messages(key, value, true, found));
    }
    return found.size();
  }

  using Chunks = std::vector<std::uint32_t>;

  Memory memory{.options = {.chunk_messages = kChunkMessages,
                            .chunk_bytes = 100'000,
                            .read_ahead = 4,
                            .near_messages = 2},
                .wanted = {}};
  Instant now = from_millis(1'700'000'000'000);
  Queue queue{QueueId(7), {"000000000000", "us-east-1", "orders"}, standard(), {}, now, memory};
  std::map<std::string, std::string> entries;
  std::uint64_t checkpoints = 0;
  int walks = 0;  // Over the store.
};

}  // namespace stanchion::engine
