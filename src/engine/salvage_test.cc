// A store in which a run of neighbouring entries cannot be read, whichever they are: everything
// readable is recovered into a sound engine, with the journal applied, and nothing else.
#include "engine/salvage.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

#include "engine/careful_walk.h"
#include "engine/engine_test_kit.h"

namespace stanchion::engine {
namespace {

using Entries = std::map<std::string, std::string, std::less<>>;
using Live = std::set<std::pair<QueueId, Seq>>;

void commit(const Batch& batch, Entries& entries) {
  for (const KeyRange& range : batch.erased_ranges)
    entries.erase(entries.lower_bound(range.begin), entries.lower_bound(range.end));
  for (const Key& key : batch.erased) entries.erase(std::string(key));
  batch.for_each_put([&](std::string_view key, std::string_view head, const ContentPtr& content) {
    std::string& value = entries[std::string(key)] = head;
    if (content != nullptr) value += content->encoded();
  });
}

// Reading any entry from `first` up to `end` fails, as with a damaged block; and from the second of
// these up to its end.
struct Damage {
  std::string first = "";
  std::string end = "";
  std::string second = "";
  std::string second_end = "";

  bool hides(std::string_view key) const {
    return (key >= first && key < end) || (key >= second && key < second_end);
  }
};

Engine::ScanStore scan_of(const Entries& entries, const Damage& damage = {}) {
  return [&entries, damage](const KeyRange& range, const auto& visit) -> Status {
    for (auto it = entries.lower_bound(range.begin); it != entries.end() && it->first < range.end;
         ++it) {
      if (damage.hides(it->first)) return fail("a block is damaged");
      if (!visit(it->first, it->second)) break;
    }
    return {};
  };
}

class SalvageTest : public testing::Test {
 protected:
  static constexpr int kQueues = 3;

  static QueueRef queue(std::uint64_t i) {
    return TestWorld::ref(i == 0 ? "plain" : i == 1 ? "dead" : "line.fifo");
  }

  explicit SalvageTest(std::uint64_t seed = 1) : random_(seed) {}

  void create_queues() {
    create(1, {});
    create(0,
           {{"RedrivePolicy", R"({"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead",)"
                              R"("maxReceiveCount":"2"})"}});
    create(2, {{"FifoQueue", "true"}, {"ContentBasedDeduplication", "true"}});
  }
  void create(std::uint64_t i, StringMap attributes) {
    world_->get<QueueUrlResult>(CreateQueue{queue(i), std::move(attributes), {}});
  }

  std::uint64_t roll(std::uint64_t sides) { return random_() % sides; }

  void send() {
    const std::uint64_t to = roll(kQueues);
    SendMessage send;
    send.queue = queue(to);
    send.message.body = "message " + std::to_string(++sent_);
    if (to == 2 || roll(3) == 0) send.message.group_id = std::to_string(roll(3));
    if (to == 0 && roll(4) == 0) send.message.delay_seconds = 5;
    world_->get<SentMessage>(send);
  }
  void receive() {
    ReceiveMessage receive;
    receive.queue = queue(roll(kQueues));
    receive.max_number_of_messages = 3;
    receive.visibility_timeout = 10;
    for (const ReceivedMessage& m : world_->get<ReceiveMessageResult>(receive).messages)
      receipts_.emplace_back(receive.queue, m.receipt_handle);
  }
  void settle() {
    if (receipts_.empty()) return;
    const auto [ref, receipt] = receipts_[roll(receipts_.size())];
    if (roll(3) == 0) {
      world_->ask(ChangeMessageVisibility{ref, receipt, static_cast<std::int64_t>(roll(20))});
    } else {
      world_->ask(DeleteMessage{ref, receipt});
    }
  }
  void play(int steps) {
    for (int i = 0; i < steps; ++i) {
      const std::uint64_t what = roll(10);
      if (what < 5) send();
      if (what == 5 || what == 6) receive();
      if (what == 7 || what == 8) settle();
      if (what == 9) world_->tick(std::chrono::seconds(roll(4)));
    }
  }
  void checkpoint() {
    position_ = world_->records().size();
    world_->engine().begin_checkpoint(Position(position_), world_->now());
    while (!world_->engine().save_some(10)) {
    }
    commit(world_->engine().take_checkpoint(), entries_);
    world_->engine().checkpoint_is_durable();
  }

  static Live living(const Engine& engine, const Entries& entries) {
    Live live;
    engine.for_each_queue([&](const Queue& q) {
      q.for_each_message([&](const Message& m) { live.emplace(q.id, m.seq); });
      const auto read = [&](const KeyRange& range) {
        return *Engine::read(ColdRead{.range = range}, scan_of(entries));
      };
      q.stock().residency().for_each_cold(
          read, [&](std::size_t, const std::vector<StoredMessage>& found) {
            for (const StoredMessage& m : found) live.emplace(q.id, m.seq);
          });
    });
    return live;
  }

  // The messages whose content is damaged.
  Live hidden(const Damage& damage) const {
    Live found;
    for (const auto& [key, value] : entries_) {
      KeyReader parts(key);
      if (!damage.hides(key) || parts.type() != KeyType::kMessage) continue;
      std::vector<StoredMessage> messages;
      EXPECT_TRUE(parse_stored_messages(key, value, false, messages));
      const QueueId id = parts.queue();
      for (const StoredMessage& m : messages) found.emplace(id, m.seq);
    }
    return found;
  }

  // Salvages, applies the journal, saves the result and loads it again; `entries` is the new store.
  std::unique_ptr<Engine> repaired(const Damage& damage, Entries& entries) {
    const auto report = salvage(scan_of(entries_, damage), [&](const Batch& batch) {
      commit(batch, entries);
      return Status();
    });
    if (!report) throw std::runtime_error(report.error().message);
    report_ = *report;
    Engine::Living left;
    for (const SalvagedQueue& q : report_.queues)
      if (q.damaged()) left[q.id] = q.living;
    Engine engine(options_);
    Instant now;
    const auto loaded = engine.load(scan_of(entries), now);
    if (!loaded) throw std::runtime_error(loaded.error().message);
    engine.recount_departures();
    for (std::size_t i = position_; i < world_->records().size(); ++i) {
      const auto record = parse_record(world_->records()[i]);
      now = std::max(now, record->at);
      engine.advance(now);
      EXPECT_TRUE(engine.apply_what_is_left(record->facts, left, scan_of(entries), now));
    }
    engine.check_invariants();
    engine.begin_checkpoint(Position(world_->records().size()), now);
    while (!engine.save_some(10)) {
    }
    commit(engine.take_checkpoint(), entries);
    auto again = std::make_unique<Engine>(options_);
    EXPECT_TRUE(again->load(scan_of(entries), now));
    again->advance(world_->now());
    EXPECT_TRUE(again->read_wanted(scan_of(entries), world_->now()));
    again->check_invariants();
    return again;
  }

  void expect_what_is_readable(const Damage& damage) {
    SCOPED_TRACE(testing::Message() << "from type " << int(damage.first[0]));
    Entries entries;
    const auto engine = repaired(damage, entries);
    const Live before = living(world_->engine(), {});
    const Live after = living(*engine, entries);
    const Live gone = hidden(damage);
    for (const auto& message : after)
      EXPECT_TRUE(before.contains(message)) << message.second.value() << " came back";
    // A message on its way is lost with its record.
    if (report_.queues_lost || report_.departures_lost) return;
    for (const auto& message : before)
      EXPECT_TRUE(after.contains(message) || gone.contains(message))
          << message.second.value() << " of queue " << message.first.value() << " is lost";
  }

  const Options options_{ShardIndex(0), false, {.chunk_messages = 4}};
  std::mt19937_64 random_;
  std::optional<TestWorld> world_{std::in_place, false, options_.memory};
  Entries entries_;
  std::size_t position_ = 0;
  std::uint64_t sent_ = 0;
  std::vector<std::pair<QueueRef, std::string>> receipts_;
  SalvageReport report_;
};

TEST_F(SalvageTest, AStoreThatIsSoundIsCopiedAsItIs) {
  create_queues();
  play(150);
  checkpoint();
  play(50);
  Entries entries;
  const auto engine = repaired({}, entries);
  EXPECT_FALSE(report_.damaged());
  EXPECT_EQ(living(*engine, entries), living(world_->engine(), {}));
}

TEST_F(SalvageTest, WhateverRunOfEntriesIsDamagedTheReadableRestIsBroughtBack) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    random_.seed(seed);
    world_.emplace(false, options_.memory);
    entries_.clear();
    receipts_.clear();
    create_queues();
    play(60);
    checkpoint();
    play(60);
    if (seed % 2 == 0) world_->set_road(TestWorld::Road::kClosed);
    checkpoint();
    play(60);
    std::vector<std::string> keys;
    for (const auto& [key, value] : entries_) keys.push_back(key);
    for (std::size_t i = 1; i < keys.size(); ++i) {  // Except the shard's record.
      for (const std::size_t length : {1, 3, 20}) {
        const bool to_end = i + length >= keys.size();
        expect_what_is_readable({keys[i], to_end ? "\xff" : keys[i + length]});
        if (HasFailure()) return;
      }
    }
  }
}

// Records of detached messages and messages of the same chunk: what is missing must not be made up
// for by what is taken for a member.
TEST_F(SalvageTest, TwoDamagedRunsDoNotHideEachOther) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    random_.seed(seed);
    world_.emplace(false, options_.memory);
    entries_.clear();
    receipts_.clear();
    create_queues();
    play(60);
    checkpoint();
    play(60);
    checkpoint();
    const KeyRange detached = all_of(KeyType::kDetached);
    const KeyRange messages = all_of(KeyType::kMessage);
    for (auto a = entries_.lower_bound(detached.begin); a->first < detached.end; ++a) {
      for (auto b = entries_.lower_bound(messages.begin); b->first < messages.end; ++b) {
        const auto after = std::next(b);
        const Damage damage{a->first, std::next(a)->first, b->first,
                            after == entries_.end() ? messages.end : after->first};
        expect_what_is_readable(damage);
        EXPECT_TRUE(report_.damaged());
        if (HasFailure()) return;
        if (after == entries_.end()) break;
      }
    }
  }
}

TEST_F(SalvageTest, WhatIsLostIsCounted) {
  create_queues();
  for (int i = 0; i < 10; ++i) {
    SendMessage send;
    send.queue = queue(0);
    send.message.body = "message " + std::to_string(i);
    world_->get<SentMessage>(send);
  }
  checkpoint();
  const auto message = entries_.lower_bound(all_of(KeyType::kMessage).begin);
  Entries entries;
  const auto engine = repaired({message->first, std::next(message)->first}, entries);
  const auto found = std::ranges::find(report_.queues, queue(0), &SalvagedQueue::ref);
  EXPECT_EQ(found->lost, 4U);  // The pack of a chunk.
  EXPECT_EQ(found->kept, 6U);
  ASSERT_EQ(found->pieces.size(), 1U);
  EXPECT_EQ(found->pieces[0].first, Seq(1));
  EXPECT_EQ(found->pieces[0].last, Seq(4));
  EXPECT_EQ(engine->find(queue(0))->counts().visible, 6U);
}

TEST_F(SalvageTest, AShardWhoseRecordIsLostIsRefused) {
  create_queues();
  checkpoint();
  const auto report = salvage(scan_of(entries_, {std::string(shard_key()), "\x02"}),
                              [](const Batch&) { return Status(); });
  EXPECT_FALSE(report);
}

TEST(CarefulWalk, SeesEverythingOnBothSidesOfAHole) {
  Entries entries;
  for (std::uint64_t i = 0; i < 3000; ++i)
    entries[std::string(departure_key(TransferNo(i * i * i)))] = "";
  std::vector<std::string> keys;
  for (const auto& [key, value] : entries) keys.push_back(key);
  for (const std::size_t first : {0UL, 1UL, 1023UL, 1024UL, 2000UL, 2990UL}) {
    const std::size_t end = std::min<std::size_t>(first + 37, keys.size());
    const Damage damage{keys[first], end == keys.size() ? "\xff" : keys[end]};
    std::size_t seen = 0;
    EXPECT_FALSE(walk_carefully(scan_of(entries, damage), all_of(KeyType::kDeparture),
                                [&](auto, auto) { ++seen; }));
    EXPECT_EQ(seen, keys.size() - (end - first));
  }
}

TEST(CarefulWalk, AnErrorThatPassesIsNoHole) {
  Entries entries;
  for (std::uint64_t i = 0; i < 3000; ++i) entries[std::string(departure_key(TransferNo(i)))] = "";
  int failures = 12;
  const auto scan = scan_of(entries);
  std::size_t seen = 0;
  EXPECT_TRUE(walk_carefully(
      [&](const KeyRange& range, const auto& visit) -> Status {
        return failures-- > 0 ? fail("an error that passes") : scan(range, visit);
      },
      all_of(KeyType::kDeparture), [&](auto, auto) { ++seen; }));
  EXPECT_EQ(seen, entries.size());
}

}  // namespace
}  // namespace stanchion::engine
