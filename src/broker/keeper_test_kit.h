// A shard with a store for tests: checkpoints, reads and evictions happen when the test lets them.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "broker/keeper.h"
#include "broker/shard_test_kit.h"
#include "engine/store/store_keys.h"
#include "store/memory_store.h"

namespace stanchion::broker {

// Fails as it is told to.
class MoodyStore final : public store::MemoryStore {
 public:
  Status commit(const Batch& batch) override {
    ++commits;
    if (fails_with != 0) return fail("it does not want to", fails_with);
    return MemoryStore::commit(batch);
  }

  std::uint64_t free_space() const override { return free; }

  Status scan(const KeyRange& range, const store::EntryVisitor& visit) const override {
    if (failing_reads > 0) {
      --failing_reads;
      return fail("the disk is out of reach", reads_fail_with);
    }
    if (!damaged || *damaged < range.begin || *damaged >= range.end)
      return MemoryStore::scan(range, visit);
    return fail("block checksum mismatch in 000012.sst");
  }

  // The newest of a queue's messages becomes unreadable.
  void damage(QueueId queue) {
    const KeyRange all = engine::all_of(engine::KeyType::kMessage);
    static_cast<void>(MemoryStore::scan(all, [&](std::string_view key, std::string_view) {
      if (engine::KeyReader parts(key);
          parts.type() == engine::KeyType::kMessage && parts.stock().queue == queue)
        damaged = std::string(key);
      return true;
    }));
    ASSERT_TRUE(damaged);
  }

  int fails_with = 0;
  int commits = 0;
  mutable int failing_reads = 0;
  int reads_fail_with = 0;
  std::uint64_t free = UINT64_MAX;
  std::optional<std::string> damaged;
};

class KeeperTest : public testing::Test {
 protected:
  using Answer = std::shared_ptr<std::optional<Reply>>;

  static inline const QueueRef kOrders{"000000000000", "us-east-1", "orders"};
  static inline const QueueRef kBills{"000000000000", "us-east-1", "bills"};
  static inline const QueueRef kSteps{"000000000000", "us-east-1", "steps.fifo"};

  // With room for nothing, everything that a checkpoint has written is evicted.
  void start(std::size_t memory = 1) {
    auto owned = std::make_unique<HeldJournal>();
    journal = owned.get();
    keeping.memory = memory;
    shard =
        std::make_unique<Shard>(engine_options, std::move(owned), store, keeping, clock, entropy);
    ASSERT_TRUE(shard->recover());
    shard->start(loop, background, peers);
    loop.run();
    submit(CreateQueue{kOrders, {}, {}});
    submit(CreateQueue{kBills, {}, {}});
    settle();
  }

  // Everything in the journal is in a checkpoint.
  void restart() {
    auto owned = std::make_unique<HeldJournal>();
    while (owned->next_position() < journal->next_position()) owned->append("");
    journal = owned.get();
    shard =
        std::make_unique<Shard>(engine_options, std::move(owned), store, keeping, clock, entropy);
    ASSERT_TRUE(shard->recover());
    shard->start(loop, background, peers);
    loop.run();
  }

  Answer submit(Request request) {
    auto reply = std::make_shared<std::optional<Reply>>();
    shard->submit(std::move(request), {}, Ticket(next_ticket++),
                  [reply](Reply answer) { *reply = std::move(answer); });
    loop.run();
    return reply;
  }
  Answer send(const QueueRef& queue, std::string body) {
    SendMessage request{queue, "me", {}};
    request.message.body = std::move(body);
    return submit(request);
  }
  void send_cold(const QueueRef& queue, std::string body) {
    send(queue, std::move(body));
    settle();
    ASSERT_EQ(shard->engine().message_bytes(), 0U);
  }
  Answer receive(const QueueRef& queue, int wait_seconds = 0) {
    ReceiveMessage request;
    request.queue = queue;
    request.wait_time_seconds = wait_seconds;
    return submit(request);
  }

  // Messages of one group, of 1,000 bytes each.
  void send_steps(std::size_t count, const std::string& group = "group") {
    submit(CreateQueue{kSteps, {{"FifoQueue", "true"}}, {}});
    for (std::size_t i = 0; i < count; ++i) {
      SendMessage request{kSteps, "me", {}};
      request.message.body = std::string(1'000, 'x');
      request.message.group_id = group;
      request.message.deduplication_id = group + std::to_string(i);
      const Answer sent = submit(request);
      settle();
      EXPECT_TRUE(was_accepted(sent));
    }
  }
  // The same, received together; their contents are evicted, except for one at most.
  ReceiveMessage receive_steps_of_1000_bytes(std::size_t count) {
    send_steps(count);
    ReceiveMessage attempt;
    attempt.queue = kSteps;
    attempt.max_number_of_messages = 10;
    attempt.attempt_id = "attempt";
    submit(attempt);
    settle();
    EXPECT_EQ(counts(kSteps), (engine::Counts{.in_flight = count}));
    EXPECT_LE(shard->engine().message_bytes(), 2'000U);
    return attempt;
  }

  // The body of the one message that was received; nullopt if there was no answer yet.
  static std::optional<std::string> body_of(const Answer& answer) {
    if (!*answer) return std::nullopt;
    if (!**answer) return "refused: " + (*answer)->error().message;
    const auto& messages = std::get<ReceiveMessageResult>(***answer).messages;
    return messages.size() == 1 ? std::string(messages[0].content->body()) : "not one message";
  }
  static bool was_accepted(const Answer& answer) { return *answer && (*answer)->has_value(); }

  void commit() {
    background.work(Work::kCheckpoint);
    loop.run();
  }
  void read() {
    background.work(Work::kRead);
    loop.run();
  }
  void settle() {
    loop.run();
    while (background.waiting(Work::kCheckpoint) + background.waiting(Work::kRead) > 0) {
      commit();
      read();
    }
  }
  engine::Counts counts(const QueueRef& queue) { return shard->engine().find(queue)->counts(); }

  engine::Options engine_options;
  KeeperOptions keeping;
  NumberClock clock;
  CountingEntropy entropy;
  NotedPeers peers;
  ManualLoop loop;
  ManualBackground background;
  std::shared_ptr<MoodyStore> store = std::make_shared<MoodyStore>();
  HeldJournal* journal = nullptr;
  std::unique_ptr<Shard> shard;
  std::uint64_t next_ticket = 1;
};

}  // namespace stanchion::broker
