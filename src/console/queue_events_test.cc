#include "console/queue_events.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace stanchion::console {
namespace {

namespace json = boost::json;

broker::QueueFigures queue(std::string name, std::uint64_t visible, std::string account = "1") {
  broker::QueueFigures figures;
  figures.queue = {std::move(account), "r", std::move(name)};
  figures.counts.visible = visible;
  return figures;
}

json::object event_of(const std::vector<broker::ShardFigures>& shards, const QueueView& view) {
  const std::string text = render_event(shards, view);
  EXPECT_TRUE(text.starts_with("data: ") && text.ends_with("\n\n"));
  EXPECT_EQ(text.find('\n'), text.size() - 2) << "an event is one line";
  return json::parse(std::string_view(text).substr(6)).as_object();
}

std::string names(const json::object& event) {
  std::string all;
  for (const json::value& one : event.at("queues").as_array())
    all += std::string(one.at("name").as_string()) + " ";
  return all;
}

TEST(QueueEvents, AViewHasTheQueuesOfItsAccountFromAllShardsInOrder) {
  std::vector<broker::ShardFigures> shards(2);
  shards[0].queues = {queue("b", 1), queue("d", 5), queue("x", 9, "2")};
  shards[1].queues = {queue("a", 5), queue("c", 0)};
  EXPECT_EQ(names(event_of(shards, {"1", "r", "", QueueOrder::kName})), "a b c d ");
  EXPECT_EQ(names(event_of(shards, {"1", "r", "", QueueOrder::kVisible})), "a d b c ");
  EXPECT_EQ(names(event_of(shards, {"2", "r", "", QueueOrder::kName})), "x ");
  EXPECT_EQ(names(event_of(shards, {"1", "elsewhere", "", QueueOrder::kName})), "");
  const json::object some = event_of(shards, {"1", "r", "b", QueueOrder::kName});
  EXPECT_EQ(names(some), "b ");
  EXPECT_EQ(some.at("matching").to_number<int>(), 1);
  EXPECT_EQ(some.at("total").to_number<int>(), 4);
}

TEST(QueueEvents, NoMoreThanTwoHundredQueuesAreShownHoweverManyThereAre) {
  std::vector<broker::ShardFigures> shards(1);
  for (std::uint64_t i = 0; i < 1'000; ++i)
    shards[0].queues.push_back(queue("q" + std::to_string(i), i));
  const json::object event = event_of(shards, {"1", "r", "", QueueOrder::kVisible});
  EXPECT_EQ(event.at("queues").as_array().size(), 200u);
  EXPECT_TRUE(names(event).starts_with("q999 q998 "));
  EXPECT_EQ(event.at("matching").to_number<int>(), 1'000);
}

TEST(QueueEvents, TheFieldsOfAQueueAreWhatIsKnownOfIt) {
  std::vector<broker::ShardFigures> shards(1);
  broker::QueueFigures one = queue("steps.fifo", 3);
  one.counts.in_flight = 2;
  one.counts.delayed = 1;
  one.activity.sent = 9;
  one.activity.received = 5;
  one.activity.deleted = 4;
  one.oldest_age = Duration(1'500);
  one.fifo = true;
  one.groups = 7;
  one.noisy_groups = 6;
  one.dead_letter_target = "arn:aws:sqs:r:1:steps-dead.fifo";
  shards[0].queues = {one, queue("zero", 0)};
  const json::object event = event_of(shards, {"1", "r", "", QueueOrder::kName});
  EXPECT_EQ(json::serialize(event.at("queues").at(0)),
            R"({"name":"steps.fifo","visible":3,"inFlight":2,"delayed":1,"sent":9,"received":5,)"
            R"("deleted":4,"oldest":1500,"fifo":true,"groups":7,"noisyGroups":6,)"
            R"("deadLetter":"steps-dead.fifo","sources":[],"sourceCount":0})");
  EXPECT_TRUE(event.at("queues").at(1).at("oldest").is_null());
  EXPECT_TRUE(event.at("queues").at(1).at("deadLetter").is_null());
}

TEST(QueueEvents, TheTimeIsTheFirstFieldOfAnEventThatIsSent) {
  const std::string event = render_event({}, {"1", "r", "", QueueOrder::kName});
  EXPECT_EQ(with_time(event, from_millis(1'763'424'000'123)),
            "data: {\"now\":1763424000123,\"queues\":[],\"matching\":0,\"total\":0}\n\n");
}

TEST(QueueEvents, AViewOfOneQueueHasNoOthersThatBeginLikeIt) {
  std::vector<broker::ShardFigures> shards(1);
  shards[0].queues = {queue("orders", 1), queue("orders-dead", 2), queue("orders", 3, "2")};
  const QueueView one{"1", "r", "orders", QueueOrder::kName, QueueChoice::kOne};
  EXPECT_EQ(names(event_of(shards, one)), "orders ");
}

TEST(QueueEvents, DeadLetterQueuesAreThoseThatAreNamedAsOneWithTheirSources) {
  std::vector<broker::ShardFigures> shards(2);
  shards[0].queues = {queue("dead", 3), queue("idle", 9), queue("dead", 1, "2")};
  for (int i = 0; i < 12; ++i) {
    shards[1].queues.push_back(queue("source" + std::to_string(10 + i), 0));
    shards[1].queues.back().dead_letter_target = "arn:aws:sqs:r:1:dead";
  }
  const QueueView view{"1", "r", "", QueueOrder::kVisible, QueueChoice::kDeadLetterQueues};
  const json::object event = event_of(shards, view);
  EXPECT_EQ(names(event), "dead ");
  EXPECT_EQ(event.at("matching").to_number<int>(), 1);
  const json::value& dead = event.at("queues").at(0);
  EXPECT_EQ(dead.at("sourceCount").to_number<int>(), 12);
  EXPECT_EQ(dead.at("sources").as_array().size(), 10u);
  EXPECT_EQ(dead.at("sources").at(0).as_string(), "source10");
  const QueueView all{"1", "r", "source", QueueOrder::kName};
  EXPECT_EQ(event_of(shards, all).at("queues").at(0).at("deadLetter").as_string(), "dead");
}

TEST(QueueEvents, AnOrderThatNobodyKnowsIsByName) {
  EXPECT_EQ(queue_order("oldest"), QueueOrder::kOldest);
  EXPECT_EQ(queue_order("received"), QueueOrder::kReceived);
  EXPECT_EQ(queue_order(""), QueueOrder::kName);
  EXPECT_EQ(queue_order("nonsense"), QueueOrder::kName);
}

}  // namespace
}  // namespace stanchion::console
