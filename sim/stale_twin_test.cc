// A shard's owner that was replaced and does not know it goes on answering: what it says must be
// true all the same. Two or three owners in turn write one log; clients call any of them, also
// those that own it no longer. fleet_test.cc has whole fleets.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "broker/admission.h"
#include "broker/broker.h"
#include "fleet/replica.h"
#include "sim/random.h"
#include "sim/shared_log.h"
#include "sim/sim_loop.h"
#include "sim/sim_store.h"
#include "sim/violation.h"
#include "sim/world.h"

namespace stanchion::sim {
namespace {

const QueueRef kQueue{"000000000000", "us-east-1", "orders"};
constexpr std::int64_t kShortSeconds = 1;   // Visibility of a receive: a part of a world's time.
constexpr std::int64_t kLongSeconds = 600;  // As it is extended: longer than clients go on.

// One machine that owned the log at some time, and does not try to own it again.
class Node final : private broker::RemoteShards {
 public:
  Node(World& world, SharedLog& log, const FleetRules& rules, Owner owner)
      : clock_(world),
        steady_(world),
        entropy_(world.random().fork()),
        loop_(world, owner, threads_, 0),
        background_(world, owner, kMillisecond),
        time_(clock_, steady_),
        broker_(broker::Broker::of_a_node(1, *this)),
        replica_(
            ShardIndex(0), {}, *broker_, loop_, background_, time_, entropy_,
            {.open = [this, &world, owner, &log, rules]() -> Result<fleet::Replica::Storage> {
               return fleet::Replica::Storage{
                   std::make_unique<SharedLogJournal>(world, owner, log, uplink_, rules), nullptr};
             },
             .copy_store = [] { return fail("there is no other store"); },
             .not_copied = [](const Failure& why) { throw Violation(why.message); },
             .note_past = [](bool) { return Status(); },
             .gave_up = [](const Failure& why) { throw Violation(why.message); },
             .released = [](fleet::AssignmentNo) {},
             .role_changed = [] {},
             .overtaken = [this] { loop_.defer([this] { be(fleet::Replica::Role::kOwner); }); },
             .said = [this](const std::string& what) { said_.push_back(what); }}) {
    time_.begin(Instant());
    broker_->start(
        {&loop_}, background_, [] {},
        [](const Failure& failure) { throw Violation(failure.message); });
    be(fleet::Replica::Role::kOwner);
  }

  void call(Request request, std::move_only_function<void(Reply)> answered) {
    broker::Task submit = [this, &request, &answered] {
      broker_->submit(loop_, std::move(request), std::move(answered));
    };
    loop_.run(submit);
  }

  bool started() const { return replica_.statistics().promotions > 0; }
  const std::vector<std::string>& said() const { return said_; }
  // From now on it reaches the log this much later.
  void cut_off(Micros until) { uplink_.cut_until = until; }

 private:
  void be(fleet::Replica::Role role) {
    broker::Task task = [this, role] { replica_.set_role(role, fleet::AssignmentNo(1)); };
    loop_.is_current() ? task() : loop_.run(task);
  }

  void submit(ShardIndex, Request&&, const engine::Neighbours&, broker::Ticket,
              broker::Respond respond, broker::Guard) override {
    respond(broker::shard_has_moved());
  }
  void cancel(ShardIndex, broker::Ticket) override {}
  void contribute(ShardIndex, const engine::Needs&, engine::Neighbours neighbours,
                  Contributed then) override {
    then(std::move(neighbours), false);
  }
  void lost(ShardIndex, std::string_view why) override {
    replica_.set_role(fleet::Replica::Role::kNone, fleet::AssignmentNo(2));
    replica_.lost(why);
  }
  void deliver(ShardIndex, Transfer, SourceEpoch) override {}
  void tell_verdict(ShardIndex, const Settlement&) override {}

  WorldClock clock_;
  WorldSteadyClock steady_;
  WorldEntropy entropy_;
  Threads threads_;
  SimLoop loop_;
  SimBackground background_;
  os::Timekeeper time_;
  Uplink uplink_;
  std::unique_ptr<broker::Broker> broker_;
  std::vector<std::string> said_;
  fleet::Replica replica_;
};

// What clients were told about one message.
struct Told {
  bool sent = false;
  bool delete_tried = false;
  bool deleted = false;
  Micros deleted_at = 0;
  // Nobody may receive it before the one, as clients know since the other.
  Micros hidden_until = 0;
  Micros hidden_since = 0;
  std::vector<std::string> receipts;
};

class TwinWorld {
 public:
  TwinWorld(std::uint64_t seed, const FleetRules& rules)
      : world_(seed, false), random_(world_.random().fork()), rules_(rules) {}

  // Throws if a promise is broken.
  void play() {
    add_owner();
    bool created = false;
    nodes_.front()->call(CreateQueue{kQueue, {}, {}}, [&](const Reply&) { created = true; });
    run_while([&] { return !created; });
    const int takeovers = random_.between(1, 2);
    for (int i = 0; i <= takeovers; ++i) {
      // The owner may be cut off for a while before it is replaced.
      if (random_.chance(50))
        nodes_.back()->cut_off(world_.now() + random_.between<Micros>(0, 300) * kMillisecond);
      for (int calls = random_.between(10, 60); calls > 0; --calls) {
        act();
        run_for(random_.between<Micros>(0, random_.chance(90) ? 4 : 400) * kMillisecond);
      }
      if (i < takeovers) add_owner();
    }
    run_for(kSecond);  // What is under way arrives, or never will.
    look_at_the_end();
  }

 private:
  void add_owner() {
    nodes_.push_back(std::make_unique<Node>(world_, log_, rules_, nodes_.size() + 1));
    run_while([&] { return !nodes_.back()->started(); });
  }

  void run_for(Micros time) {
    bool over = false;
    world_.schedule(time, kWorldOwner, [&] { over = true; });
    run_while([&] { return !over; });
  }

  template <class Condition>
  void run_while(const Condition& condition) {
    while (condition())
      if (!world_.step()) throw Violation("nothing is left to happen");
  }

  Node& some_node() {
    return random_.chance(50) ? *nodes_.back()
                              : *nodes_[static_cast<std::size_t>(random_.below(nodes_.size()))];
  }

  std::optional<std::string> some_message() {
    std::vector<std::string> known;
    for (const auto& [body, told] : told_)
      if (!told.receipts.empty()) known.push_back(body);
    if (known.empty()) return std::nullopt;
    return random_.pick(known);
  }

  void act() {
    const std::uint64_t choice = random_.below(10);
    if (choice < 4) return send();
    if (choice < 7) return receive(some_node());
    const auto body = some_message();
    if (!body) return;
    if (choice < 9) return erase(*body);
    hide(*body);
  }

  void send() {
    const std::string body = fmt::format("m{}", next_message_++);
    SendMessage request{kQueue, "sender", {}};
    request.message.body = body;
    some_node().call(std::move(request), [this, body](const Reply& reply) {
      if (reply) told_[body].sent = true;
    });
  }

  void receive(Node& node) {
    ReceiveMessage request;
    request.queue = kQueue;
    request.max_number_of_messages = 3;
    request.visibility_timeout = kShortSeconds;
    const Micros asked = world_.now();
    node.call(std::move(request), [this, asked](const Reply& reply) {
      if (!reply) return;
      for (const auto& message : std::get<ReceiveMessageResult>(*reply).messages)
        received(std::string(message.content->body()), message.receipt_handle, asked);
    });
  }

  void received(const std::string& body, const std::string& receipt, Micros asked) {
    Told& told = told_[body];
    if (told.deleted && told.deleted_at < asked)
      throw Violation(body + " was delivered although its delete had been acknowledged");
    if (told.hidden_since < asked && world_.now() < told.hidden_until)
      throw Violation(body + " was delivered while it was in flight");
    told.receipts.push_back(receipt);
    told.hidden_since = world_.now();
    told.hidden_until = asked + kShortSeconds * kSecond;
  }

  void erase(const std::string& body) {
    told_[body].delete_tried = true;
    DeleteMessage request{kQueue, random_.pick(told_[body].receipts)};
    some_node().call(std::move(request), [this, body](const Reply& reply) {
      if (!reply || told_[body].deleted) return;
      told_[body].deleted = true;
      told_[body].deleted_at = world_.now();
    });
  }

  void hide(const std::string& body) {
    const Micros asked = world_.now();
    ChangeMessageVisibility request{kQueue, told_[body].receipts.back(), kLongSeconds};
    some_node().call(std::move(request), [this, body, asked](const Reply& reply) {
      Told& told = told_[body];
      // Of a message that is visible again the change is acknowledged, and has no effect.
      if (!reply || world_.now() >= told.hidden_until) return;
      told.hidden_since = world_.now();
      told.hidden_until = asked + kLongSeconds * kSecond;
    });
  }

  // The last owner has the truth: what was promised must be in it.
  void look_at_the_end() {
    add_owner();
    run_for((kLongSeconds + 10) * kSecond);
    std::map<std::string, int> found;
    for (bool more = true; more;) {
      std::optional<Reply> answer;
      ReceiveMessage request;
      request.queue = kQueue;
      request.max_number_of_messages = 10;
      request.visibility_timeout = 40'000;
      nodes_.back()->call(std::move(request), [&](Reply reply) { answer = std::move(reply); });
      run_while([&] { return !answer; });
      if (!*answer) throw Violation("the last owner does not answer");
      const auto& messages = std::get<ReceiveMessageResult>(**answer).messages;
      for (const auto& message : messages) ++found[std::string(message.content->body())];
      more = !messages.empty();
    }
    for (const auto& [body, told] : told_) {
      const int times = found.contains(body) ? found.at(body) : 0;
      if (told.deleted && times > 0)
        throw Violation(body + " is there although its delete was acknowledged");
      if (told.sent && !told.delete_tried && times != 1)
        throw Violation(fmt::format("{} was acknowledged and is there {} times", body, times));
    }
  }

  World world_;
  Random random_;
  const FleetRules rules_;
  SharedLog log_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::string, Told> told_;
  int next_message_ = 1;
};

constexpr std::uint64_t kWorlds = 300;

struct Found {
  std::uint64_t seed = 0;
  std::string what;
};

// The first world in which a promise is broken.
std::optional<Found> find_violation(const FleetRules& rules) {
  for (std::uint64_t seed = 1; seed <= kWorlds; ++seed) {
    try {
      TwinWorld(seed, rules).play();
    } catch (const Violation& violation) {
      return Found{seed, violation.what()};
    }
  }
  return std::nullopt;
}

void expect_violation(const FleetRules& rules) {
  const auto found = find_violation(rules);
  ASSERT_TRUE(found) << "nobody noticed";
  fmt::print("seed {}: {}\n", found->seed, found->what);
}

TEST(StaleTwin, WhatAnyOwnerSaysIsTrue) {
  const auto found = find_violation({});
  EXPECT_FALSE(found) << "seed " << found->seed << ": " << found->what;
}

TEST(StaleTwin, WithoutProofsAReplacedOwnerAcknowledgesDeletesInVain) {
  expect_violation({.knows_others = false});
}

TEST(StaleTwin, AnOwnerSaysWhatBecomesOfItsShard) {
  World world(1, false);
  SharedLog log;
  const auto run_until = [&](const auto& condition) {
    while (!condition()) ASSERT_TRUE(world.step());
  };
  Node old_owner(world, log, {}, 1);
  run_until([&] { return old_owner.started(); });
  Node new_owner(world, log, {}, 2);
  constexpr std::string_view kLost = "is no longer served here: its log has another owner";
  run_until([&] { return new_owner.started(); });
  old_owner.call(CreateQueue{kQueue, {}, {}}, [](const Reply&) {});
  run_until([&] { return old_owner.said().back() == kLost; });
  EXPECT_EQ(old_owner.said().front(), "is claimed, after record 0");
  EXPECT_TRUE(std::ranges::any_of(old_owner.said(), [](const std::string& what) {
    return what.starts_with("is served here after record 0, ");
  }));
}

// A client has a receipt of the new owner and shows it to the old one, whose log does not answer: it
// cannot know by itself that it was replaced.
TEST(StaleTwin, AReceiptFromTheFutureEndsTheServiceAtOnce) {
  World world(1, false);
  SharedLog log;
  const auto run_until = [&](const bool& done) {
    while (!done) ASSERT_TRUE(world.step());
  };
  const auto run_until_started = [&](const Node& node) {
    while (!node.started()) ASSERT_TRUE(world.step());
  };
  Node old_owner(world, log, {}, 1);
  bool created = false;
  run_until_started(old_owner);
  old_owner.call(CreateQueue{kQueue, {}, {}}, [&](const Reply& reply) { created = bool{reply}; });
  run_until(created);

  Node new_owner(world, log, {}, 2);
  run_until_started(new_owner);
  bool sent = false;
  SendMessage send{kQueue, "sender", {}};
  send.message.body = "new";
  new_owner.call(std::move(send), [&](const Reply& reply) { sent = bool{reply}; });
  run_until(sent);
  std::string receipt;
  bool received = false;
  ReceiveMessage receive;
  receive.queue = kQueue;
  new_owner.call(std::move(receive), [&](const Reply& reply) {
    receipt = std::get<ReceiveMessageResult>(reply.value()).messages.at(0).receipt_handle;
    received = true;
  });
  run_until(received);

  old_owner.cut_off(world.now() + 3600 * kSecond);
  std::optional<Reply> answer;
  old_owner.call(DeleteMessage{kQueue, receipt}, [&](Reply reply) { answer = std::move(reply); });
  std::optional<Reply> later;
  old_owner.call(GetQueueAttributes{kQueue, {"All"}},
                 [&](Reply reply) { later = std::move(reply); });
  ASSERT_TRUE(later) << "nothing is waited for";
  ASSERT_FALSE(*later);
  EXPECT_EQ(later->error().code, ErrorCode::kShardHasMoved);
  ASSERT_TRUE(answer && !*answer) << "nobody is told that it was deleted";
  EXPECT_EQ(answer->error().code, ErrorCode::kInternalFailure);
}

// The engine's own assertions may notice these before a client does.
void expect_death(const FleetRules& rules) {
  const auto play = [&] {
    if (find_violation(rules)) CHECK(false, "a promise is broken");
  };
  EXPECT_DEATH(play(), "check failed");
}

TEST(StaleTwinDeathTest, AReaderThatTakesVoidRecordsIsNotTheOwnersEqual) {
  expect_death({.skips_void = false});
}

}  // namespace
}  // namespace stanchion::sim
