// Receives that choose their messages, without a store. What is cold is in stock_test.cc, what is
// random in the model and in the simulation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/engine_test_kit.h"

namespace stanchion::engine {
namespace {

using namespace std::chrono_literals;

class Chosen : public testing::Test {
 protected:
  void create(const std::string& name, StringMap attributes = {}) {
    if (name.ends_with(".fifo")) attributes["FifoQueue"] = "true";
    ASSERT_TRUE(world_.ask(CreateQueue{TestWorld::ref(name), std::move(attributes), {}}));
  }
  void send(const std::string& name, const std::string& body, const std::string& group = "",
            std::int64_t delay = 0) {
    SendMessage request{TestWorld::ref(name), "", {}};
    request.message.body = body;
    if (!group.empty()) request.message.group_id = group;
    if (delay > 0) request.message.delay_seconds = delay;
    if (name.ends_with(".fifo")) request.message.deduplication_id = body;
    ASSERT_TRUE(world_.ask(request));
  }
  std::vector<std::string> receive(const std::string& name, std::int64_t most = 10) {
    ReceiveMessage request;
    request.queue = TestWorld::ref(name);
    request.max_number_of_messages = most;
    return bodies(world_.get<ReceiveMessageResult>(request));
  }

  // The positions of the messages with these bodies.
  std::vector<std::string> positions(const std::string& name,
                                     const std::vector<std::string>& wanted) {
    StanchionPeek peek;
    peek.queue = TestWorld::ref(name);
    peek.max_results = 100;
    const auto seen = world_.get<StanchionPeekResult>(peek);
    std::vector<std::string> found;
    for (const std::string& body : wanted)
      for (const PeekedMessage& message : seen.messages)
        if (message.content->body() == body) found.push_back(message.position);
    EXPECT_EQ(found.size(), wanted.size());
    return found;
  }
  static ReceiveMessage choice(const std::string& name, std::vector<std::string> positions) {
    ReceiveMessage request;
    request.queue = TestWorld::ref(name);
    request.positions = std::move(positions);
    return request;
  }
  std::vector<std::string> choose(const std::string& name, std::vector<std::string> positions) {
    return bodies(world_.get<ReceiveMessageResult>(choice(name, std::move(positions))));
  }
  std::string refusal(const ReceiveMessage& request) {
    const Reply reply = world_.ask(request);
    if (reply) return "not refused";
    EXPECT_EQ(reply.error().code, ErrorCode::kInvalidParameterValue);
    return reply.error().message;
  }

  static std::vector<std::string> bodies(const ReceiveMessageResult& result) {
    std::vector<std::string> out;
    for (const ReceivedMessage& message : result.messages)
      out.emplace_back(message.content->body());
    return out;
  }
  using Bodies = std::vector<std::string>;

  TestWorld world_;
};

TEST_F(Chosen, AreReceivedFromAmongOthersWhoseOrderStays) {
  create("q");
  for (const char* body : {"a", "b", "c", "d"}) send("q", body);
  EXPECT_EQ(choose("q", positions("q", {"c", "b"})), (Bodies{"b", "c"}));
  EXPECT_EQ(receive("q"), (Bodies{"a", "d"}));
  world_.tick(30s);
  EXPECT_EQ(receive("q"), (Bodies{"a", "b", "c", "d"})) << "they come back where they were";
  EXPECT_TRUE(world_.restart());
}

TEST_F(Chosen, CountAsReceivedAndAreInvisibleAndDeletedAsAnyOthers) {
  create("q");
  send("q", "a");
  send("q", "b");
  const auto chosen = positions("q", {"b"});
  ReceiveMessage request = choice("q", chosen);
  request.visibility_timeout = 5;
  const auto first = world_.get<ReceiveMessageResult>(request);
  ASSERT_EQ(first.messages.size(), 1U);
  EXPECT_EQ(first.messages[0].receive_count, 1U);
  EXPECT_EQ(choose("q", chosen), Bodies{}) << "it is in flight";
  EXPECT_EQ(world_.engine().find(TestWorld::ref("q"))->counts(),
            (Counts{.visible = 1, .in_flight = 1, .delayed = 0}));
  world_.tick(5s);
  const auto again = world_.get<ReceiveMessageResult>(request);
  ASSERT_EQ(again.messages.size(), 1U);
  EXPECT_EQ(again.messages[0].receive_count, 2U);
  EXPECT_TRUE(world_.restart());
  ASSERT_TRUE(world_.ask(DeleteMessage{TestWorld::ref("q"), again.messages[0].receipt_handle}));
  EXPECT_EQ(choose("q", chosen), Bodies{}) << "it is gone";
  EXPECT_EQ(receive("q"), Bodies{"a"});
}

TEST_F(Chosen, AreLeftOutWhileDelayedAndAfterAPurge) {
  create("q");
  send("q", "late", "", 10);
  const auto chosen = positions("q", {"late"});
  EXPECT_EQ(choose("q", chosen), Bodies{});
  world_.tick(10s);
  EXPECT_EQ(choose("q", chosen), Bodies{"late"});
  ASSERT_TRUE(world_.ask(PurgeQueue{TestWorld::ref("q")}));
  send("q", "new");
  EXPECT_EQ(choose("q", chosen), Bodies{});
}

TEST_F(Chosen, NeverWaitForMessagesToCome) {
  create("q", {{"ReceiveMessageWaitTimeSeconds", "20"}});
  send("q", "a");
  const auto chosen = positions("q", {"a"});
  EXPECT_EQ(receive("q"), Bodies{"a"});
  EXPECT_EQ(world_.get<ReceiveMessageResult>(choice("q", chosen)).wait, Duration::zero());
}

TEST_F(Chosen, OfAFifoQueueAreOnlyThoseThatAnyReceiveCouldGet) {
  create("q.fifo");
  for (const char* body : {"a1", "a2", "a3"}) send("q.fifo", body, "a");
  for (const char* body : {"b1", "b2"}) send("q.fifo", body, "b");
  EXPECT_EQ(choose("q.fifo", positions("q.fifo", {"a2", "a3"})), Bodies{}) << "a1 comes first";
  EXPECT_EQ(choose("q.fifo", positions("q.fifo", {"a2", "b1", "a1"})), (Bodies{"a1", "a2", "b1"}))
      << "messages that are taken together do not hold back each other";
  EXPECT_EQ(choose("q.fifo", positions("q.fifo", {"a3", "b2"})), Bodies{})
      << "their groups are locked";
  EXPECT_EQ(receive("q.fifo"), Bodies{});
  world_.tick(30s);
  EXPECT_EQ(receive("q.fifo", 3), (Bodies{"a1", "a2", "a3"}));
  EXPECT_TRUE(world_.restart());
}

TEST_F(Chosen, BecomeDeadLettersAsAnyOthers) {
  create("dead");
  create("q",
         {{"RedrivePolicy", fmt::format(R"({{"deadLetterTargetArn":"{}","maxReceiveCount":1}})",
                                        TestWorld::ref("dead").arn())}});
  for (const char* body : {"a", "b", "c"}) send("q", body);
  const auto chosen = positions("q", {"b", "c"});
  EXPECT_EQ(choose("q", {chosen[0]}), Bodies{"b"});
  world_.tick(30s);
  EXPECT_EQ(choose("q", chosen), Bodies{"c"});
  EXPECT_EQ(receive("dead"), Bodies{"b"});
  EXPECT_EQ(refusal(choice("dead", {chosen[0]})).find("Value for parameter StanchionPositions"), 0U)
      << "it has moved: its position was one of another queue";
  EXPECT_TRUE(world_.restart());
}

TEST_F(Chosen, OfAFairQueueCountForTheirTenant) {
  create("q");
  for (const char* body : {"a1", "a2"}) send("q", body, "a");
  for (const char* body : {"b1", "b2"}) send("q", body, "b");
  EXPECT_EQ(choose("q", positions("q", {"a2"})), Bodies{"a2"});
  EXPECT_EQ(receive("q", 1), Bodies{"b1"}) << "the other tenant's turn";
  const auto groups =
      world_.get<StanchionGroupsResult>(StanchionGroups{TestWorld::ref("q"), {}, {}}).groups;
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].in_flight, 1U);
  EXPECT_EQ(groups[0].waiting, 1U);
}

TEST_F(Chosen, AreAtMostTenAndOfThisQueue) {
  create("q");
  create("other");
  send("q", "a");
  send("other", "a");
  const auto own = positions("q", {"a"});
  EXPECT_EQ(refusal(choice("q", std::vector<std::string>(11, own[0]))),
            "Value for parameter StanchionPositions is invalid. Reason: Must not have more than 10 "
            "entries.");
  const std::string no_position =
      "Value for parameter StanchionPositions is invalid. Reason: It is not one that StanchionPeek "
      "has shown for this queue; look at the queue again.";
  EXPECT_EQ(refusal(choice("q", positions("other", {"a"}))), no_position);
  EXPECT_EQ(refusal(choice("q", {"garbage"})), no_position);
  EXPECT_EQ(refusal(choice("q", {""})), no_position);
  ReceiveMessage attempt = choice("q", own);
  attempt.attempt_id = "try";
  EXPECT_EQ(refusal(attempt),
            "Value for parameter ReceiveRequestAttemptId is invalid. Reason: Must not be given "
            "together with StanchionPositions.");
  EXPECT_EQ(choose("q", std::vector<std::string>(10, own[0])), Bodies{"a"}) << "once";
}

}  // namespace
}  // namespace stanchion::engine
