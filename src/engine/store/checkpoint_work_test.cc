// A checkpoint has what there was when it began, however long it takes to assemble, and no call does
// more for it than a bounded part of the work.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine_test_kit.h"

namespace stanchion::engine {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kChunkMessages = 8;
// A chunk is written as a whole, with what is gone from it. A page of deduplication ids takes as much.
constexpr std::uint64_t kChunkWork = 1 + 2 * kChunkMessages;

class CheckpointWork : public testing::Test {
 protected:
  CheckpointWork() {
    world_.get<QueueUrlResult>(CreateQueue{kLate, {}, {}});
    world_.get<QueueUrlResult>(CreateQueue{kDead, {}, {}});
    world_.get<QueueUrlResult>(
        CreateQueue{kPoison,
                    {{"RedrivePolicy",
                      R"({"maxReceiveCount":1,"deadLetterTargetArn":")" + kDead.arn() + "\"}"}},
                    {}});
    world_.get<QueueUrlResult>(CreateQueue{kSteps, {{"FifoQueue", "true"}}, {}});
    world_.get<QueueUrlResult>(CreateQueue{kDeadSteps, {{"FifoQueue", "true"}}, {}});
    make_poison_fifo(kPoisonSteps);
    world_.set_road(TestWorld::Road::kClosed);
  }

  void make_poison_fifo(const QueueRef& queue) {
    world_.get<QueueUrlResult>(CreateQueue{
        queue,
        {{"FifoQueue", "true"},
         {"RedrivePolicy",
          R"({"maxReceiveCount":1,"deadLetterTargetArn":")" + kDeadSteps.arn() + "\"}"}},
        {}});
  }

  Engine& engine() { return world_.engine(); }
  std::uint64_t work() { return engine().looked_at_by_checkpoints(); }

  void send(const QueueRef& queue, int delay = 0, const std::string& group = "") {
    SendMessage request{queue, "", {}};
    request.message.body = "x";
    if (delay > 0) request.message.delay_seconds = delay;
    if (!group.empty()) {
      request.message.group_id = group;
      request.message.deduplication_id = std::to_string(++sent_);
    }
    world_.get<SentMessage>(request);
  }
  std::vector<std::string> receive(const QueueRef& queue, int visibility,
                                   std::optional<std::string> attempt = std::nullopt) {
    ReceiveMessage request;
    request.queue = queue;
    request.max_number_of_messages = 10;
    request.visibility_timeout = visibility;
    request.attempt_id = std::move(attempt);
    std::vector<std::string> receipts;
    for (const auto& message : world_.get<ReceiveMessageResult>(request).messages)
      receipts.push_back(message.receipt_handle);
    return receipts;
  }

  // Everything that a checkpoint can have to write, this many times: delayed messages, messages in
  // flight, returned ones, dead letters on their way, groups that have lost their places, ids that
  // are remembered, attempts, queues; and after the first time, also what has to be erased.
  void change_much(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string n = std::to_string(++changes_);
      send(kLate, 60 + i % 600);
      send(kLate);
      send(kPoison);
      send(kSteps, 0, "group-" + n);
      send(kSteps, 0, "group-" + n);
      world_.get<QueueUrlResult>(CreateQueue{TestWorld::ref("queue-" + n), {}, {}});
      const auto late = receive(kLate, 20 + i % 50);
      if (i % 3 == 0 && !late.empty()) world_.ask(DeleteMessage{kLate, late.front()});
      const auto steps = receive(kSteps, i % 2 == 0 ? 0 : 45, "attempt-" + n);
      if (i % 5 == 0 && !steps.empty()) world_.ask(DeleteMessage{kSteps, steps.front()});
      receive(kPoison, 0);
      for (int twice = 0; twice < 2; ++twice) send(kPoisonSteps, 0, "group-" + n);
      receive(kPoisonSteps, 0);
    }
  }

  // What happens while a checkpoint is assembled; every kind of change in turn.
  void change_something(int turn) {
    switch (turn % 11) {
      case 0:
        return change_much(1);
      case 1:
        for (const std::string& receipt : receive(kLate, 0))
          world_.ask(DeleteMessage{kLate, receipt});
        return;
      case 2:
        return world_.tick(7s);
      case 3:
        for (const std::string& receipt : receive(kSteps, 30))
          world_.ask(ChangeMessageVisibility{kSteps, receipt, 0});
        return;
      case 4:
        world_.set_road(TestWorld::Road::kOpen);
        return world_.set_road(TestWorld::Road::kClosed);
      case 5:
        world_.ask(DeleteQueue{TestWorld::ref("queue-" + std::to_string(1 + turn))});
        return;
      case 6:
        world_.ask(TagQueue{kLate, {{"turn", std::to_string(turn)}}});
        return;
      case 7:
        if (turn > 60) world_.ask(PurgeQueue{turn % 2 == 0 ? kSteps : kLate});
        return;
      case 8:
        return world_.tick(90s);
      case 9:
        world_.ask(PurgeQueue{kPoisonSteps});
        world_.set_road(TestWorld::Road::kOpen);
        return world_.set_road(TestWorld::Road::kClosed);
      default:
        // Dead letters on their way are refused.
        world_.ask(DeleteQueue{kDeadSteps});
        world_.set_road(TestWorld::Road::kOpen);
        world_.ask(CreateQueue{kDeadSteps, {{"FifoQueue", "true"}}, {}});
        return world_.set_road(TestWorld::Road::kClosed);
    }
  }

  // A group in which one message has come back from a refused move, while a later one is still away.
  void bring_one_back() {
    const QueueRef gone = TestWorld::ref("gone.fifo");
    make_poison_fifo(gone);
    world_.set_road(TestWorld::Road::kOpen);
    for (const QueueRef& source : {gone, kPoisonSteps}) {
      send(source, 0, "one");
      receive(source, 0);
      receive(source, 0);
    }
    world_.get<NoResult>(DeleteQueue{gone});
    world_.set_road(TestWorld::Road::kClosed);
    world_.get<StartMessageMoveTaskResult>(StartMessageMoveTask{kDeadSteps.arn(), {}, {}});
    world_.set_road(TestWorld::Road::kNotSettling);
    const Queue& dead = *engine().find(kDeadSteps);
    ASSERT_EQ(dead.counts().visible, 1U);
    ASSERT_EQ(engine().transfers_from(TransferNo(1)).size(), 1U);
    engine().take_discarded();
  }

  void begin() { engine().begin_checkpoint(Position(++checkpoints_), world_.now()); }
  void commit() {
    const Batch batch = engine().take_checkpoint();
    for (const KeyRange& range : batch.erased_ranges)
      entries_.erase(entries_.lower_bound(range.begin), entries_.lower_bound(range.end));
    for (const Key& key : batch.erased) entries_.erase(std::string(key));
    batch.for_each_put([&](std::string_view key, std::string_view head, const ContentPtr& content) {
      std::string& value = entries_[std::string(key)] = head;
      if (content != nullptr) value += content->encoded();
    });
    engine().checkpoint_is_durable();
  }
  void checkpoint() {
    begin();
    while (!engine().save_some(1'000)) continue;
    commit();
  }

  Engine::ScanStore scan() const {
    return [this](const KeyRange& range, const auto& visit) -> Status {
      for (auto it = entries_.lower_bound(range.begin);
           it != entries_.end() && it->first < range.end; ++it)
        if (!visit(it->first, it->second)) break;
      return {};
    };
  }
  // The state that a start would find in the store, as it would be at `now`.
  std::uint64_t stored(Instant now) const {
    Engine loaded(options_);
    Instant at;
    const auto position = loaded.load(scan(), at);
    if (!position) throw std::runtime_error(position.error().message);
    loaded.advance(now);
    if (!loaded.read_wanted(scan(), now)) throw std::runtime_error("a read");
    loaded.check_invariants();
    return loaded.fingerprint([&](const KeyRange& range) {
      auto found = Engine::read({.range = range}, scan());
      if (!found) throw std::runtime_error(found.error().message);
      return std::move(*found);
    });
  }

  const QueueRef kLate = TestWorld::ref("late");
  const QueueRef kDead = TestWorld::ref("dead");
  const QueueRef kPoison = TestWorld::ref("poison");
  const QueueRef kSteps = TestWorld::ref("steps.fifo");
  const QueueRef kDeadSteps = TestWorld::ref("dead.fifo");
  const QueueRef kPoisonSteps = TestWorld::ref("poison.fifo");
  const MemoryOptions memory_{.chunk_messages = kChunkMessages};
  const Options options_{ShardIndex(0), false, memory_};
  TestWorld world_{false, memory_};
  std::map<std::string, std::string> entries_;
  std::uint64_t checkpoints_ = 0;
  int sent_ = 0;
  int changes_ = 0;
};

TEST_F(CheckpointWork, BeginsWithoutALookAtWhatThereIsToWrite) {
  for (const int count : {50, 100, 200}) {
    change_much(count);
    const std::uint64_t before = work();
    begin();
    EXPECT_EQ(work() - before, 1U) << "the shard's own record";
    while (!engine().save_some(1'000)) continue;
    EXPECT_GT(work() - before, static_cast<std::uint64_t>(5 * count));
    commit();
    EXPECT_EQ(stored(world_.now()), engine().fingerprint());
  }
}

TEST_F(CheckpointWork, IsBoundedInEveryCall) {
  constexpr std::size_t kAtATime = 20;
  change_much(200);
  begin();
  std::uint64_t most = 0;
  for (bool done = false; !done;) {
    const std::uint64_t before = work();
    done = engine().save_some(kAtATime);
    most = std::max(most, work() - before);
  }
  commit();
  EXPECT_LT(most, kAtATime + kChunkWork);
}

TEST_F(CheckpointWork, OfARequestIsWhatTheRequestChanges) {
  change_much(300);
  begin();
  // A receive takes ten messages. Each may be of another chunk, and is a detached message in
  // another lane afterwards.
  constexpr std::uint64_t kMost = 10 * (kChunkWork + 3) + 1;
  const auto bounded = [&](const std::function<void()>& request) {
    const std::uint64_t before = work();
    request();
    EXPECT_LE(work() - before, kMost);
    return work() - before;
  };
  EXPECT_GT(bounded([&] { receive(kLate, 30); }), 0U);
  EXPECT_GT(bounded([&] { receive(kSteps, 30); }), 0U);
  bounded([&] { receive(kPoison, 30); });
  bounded([&] { send(kLate); });
  bounded([&] { world_.ask(PurgeQueue{kSteps}); });
  bounded([&] { world_.ask(PurgeQueue{kLate}); });
  bounded([&] { world_.ask(DeleteQueue{kPoison}); });
  while (!engine().save_some(1'000)) continue;
  commit();
}

TEST_F(CheckpointWork, HasWhatThereWasWhenItBeganWhateverHappensMeanwhile) {
  change_much(30);
  for (int round = 0; round < 12; ++round) {
    const std::uint64_t then = engine().fingerprint();
    const Instant at = world_.now();
    begin();
    // The parts are written in one order; each round changes things at other moments of it.
    const auto part = static_cast<std::size_t>(1 + 7 * round);
    int turn = round * 5;
    while (!engine().save_some(part)) change_something(turn++);
    engine().check_invariants();
    commit();
    ASSERT_EQ(stored(at), then) << round;
  }
  checkpoint();
  EXPECT_EQ(stored(world_.now()), engine().fingerprint());
}

TEST_F(CheckpointWork, KeepsWhatAPurgeDiscardsUntilItIsWritten) {
  change_much(20);
  const std::uint64_t then = engine().fingerprint();
  const Instant at = world_.now();
  begin();
  world_.get<NoResult>(PurgeQueue{kSteps});
  world_.get<NoResult>(PurgeQueue{kLate});
  world_.get<NoResult>(DeleteQueue{kPoison});
  EXPECT_TRUE(engine().take_discarded().empty());
  while (!engine().save_some(10)) EXPECT_TRUE(engine().take_discarded().empty());
  commit();
  EXPECT_EQ(engine().take_discarded().size(), 3U);
  EXPECT_EQ(stored(at), then);
  checkpoint();
  EXPECT_EQ(stored(world_.now()), engine().fingerprint());
}

// The group's place depends on the message that is away, which arrives after its queue is gone.
TEST_F(CheckpointWork, KeepsWhatArrivesElsewhereAfterAPurgeUntilItIsWritten) {
  bring_one_back();
  const std::uint64_t then = engine().fingerprint();
  begin();
  world_.get<NoResult>(PurgeQueue{kDeadSteps});
  world_.set_road(TestWorld::Road::kOpen);
  EXPECT_TRUE(engine().transfers_from(TransferNo(1)).empty());
  while (!engine().save_some(1)) EXPECT_TRUE(engine().take_discarded().empty());
  commit();
  EXPECT_EQ(engine().take_discarded().size(), 2U) << "the queue's contents, and what has arrived";
  EXPECT_EQ(stored(world_.now()), then);
  checkpoint();
  EXPECT_EQ(stored(world_.now()), engine().fingerprint());
}

TEST_F(CheckpointWork, KeepsWhatArrivesElsewhereAfterItsQueueIsDeletedUntilItIsWritten) {
  bring_one_back();
  const std::uint64_t then = engine().fingerprint();
  begin();
  world_.get<NoResult>(DeleteQueue{kDeadSteps});
  world_.set_road(TestWorld::Road::kOpen);
  while (!engine().save_some(1)) EXPECT_TRUE(engine().take_discarded().empty());
  commit();
  EXPECT_EQ(engine().take_discarded().size(), 2U);
  EXPECT_EQ(stored(world_.now()), then);
}

}  // namespace
}  // namespace stanchion::engine
