// Every action against the real server.
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "client/client.h"
#include "tests/client/server_process.h"

namespace stanchion::client {
namespace {

using test::ServerProcess;

class Calls : public testing::Test {
 protected:
  Calls() : client(must_open({.endpoint = server.url(), .credentials = anonymous_credentials()})) {}

  static Client must_open(Options options) {
    auto opened = Client::open(std::move(options));
    if (!opened) ADD_FAILURE() << opened.error().to_string();
    return std::move(*opened);
  }

  std::string queue(std::string name, StringMap attributes = {}) {
    auto made = client.create_queue({.queue_name = name, .attributes = std::move(attributes)});
    EXPECT_TRUE(made) << (made ? "" : made.error().to_string());
    return made ? made->queue_url : "";
  }

  std::string send(const std::string& url, std::string body) {
    auto sent = client.send_message({.queue_url = url, .message_body = std::move(body)});
    EXPECT_TRUE(sent) << (sent ? "" : sent.error().to_string());
    return sent ? sent->message_id : "";
  }

  ServerProcess server;
  Client client;
};

TEST_F(Calls, AMessageIsSentReceivedAndDeleted) {
  const std::string url = queue("orders");
  auto sent = client.send_message(
      {.queue_url = url,
       .message_body = "hëllo \"world\"\n",
       .message_attributes = {{"kind", MessageAttributeValue::text("greeting")},
                              {"count", MessageAttributeValue::number("7")},
                              {"raw", MessageAttributeValue::binary(std::string("\0\xff", 2))}}});
  ASSERT_TRUE(sent) << sent.error().to_string();
  EXPECT_EQ(sent.attempts(), 1);
  EXPECT_FALSE(sent.may_be_duplicated());
  EXPECT_FALSE(sent.info().request_id.empty());

  auto received = client.receive_message({.queue_url = url,
                                          .max_number_of_messages = 10,
                                          .message_system_attribute_names = {"All"},
                                          .message_attribute_names = {"All"}});
  ASSERT_TRUE(received) << received.error().to_string();
  ASSERT_EQ(received->messages.size(), 1u);
  EXPECT_TRUE(received->damaged.empty());
  const Message& message = received->messages.front();
  EXPECT_EQ(message.message_id, sent->message_id);
  EXPECT_EQ(message.body, "hëllo \"world\"\n");
  EXPECT_EQ(message.attributes.at("ApproximateReceiveCount"), "1");
  EXPECT_EQ(message.message_attributes.at("raw").binary_value, std::string("\0\xff", 2));
  EXPECT_EQ(message.message_attributes.at("count").string_value, "7");

  EXPECT_TRUE(client.delete_message({url, message.receipt_handle}));
  auto counts = client.get_queue_attributes({url, {"All"}});
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->attributes.at("ApproximateNumberOfMessagesNotVisible"), "0");
}

TEST_F(Calls, BatchesNameTheEntriesThatFailed) {
  const std::string url = queue("batches");
  auto sent = client.send_message_batch(
      {url, {{.message_body = "a"}, {.message_body = "b", .delay_seconds = 9'999}}});
  ASSERT_TRUE(sent) << sent.error().to_string();
  ASSERT_EQ(sent->successful.size(), 1u);
  EXPECT_EQ(sent->successful.front().id, "0");
  ASSERT_EQ(sent->failed.size(), 1u);
  EXPECT_EQ(sent->failed.front().id, "1");
  EXPECT_EQ(sent->failed.front().code, "InvalidParameterValue");
  EXPECT_TRUE(sent->failed.front().sender_fault);

  auto received = client.receive_message({.queue_url = url});
  ASSERT_TRUE(received);
  const std::string receipt = received->messages.at(0).receipt_handle;
  auto changed = client.change_message_visibility_batch(
      {url, {{.receipt_handle = receipt, .visibility_timeout = 60}}});
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->successful.size(), 1u);
  auto deleted = client.delete_message_batch(
      {url, {{.receipt_handle = receipt}, {.id = "x", .receipt_handle = "nonsense"}}});
  ASSERT_TRUE(deleted);
  EXPECT_EQ(deleted->successful.size(), 1u);
  ASSERT_EQ(deleted->failed.size(), 1u);
  EXPECT_EQ(deleted->failed.front().id, "x");
}

TEST_F(Calls, ALongPollGetsWhatIsSentMeanwhile) {
  const std::string url = queue("polled");
  std::promise<Outcome<ReceiveMessageResult>> answered;
  client.receive_message({.queue_url = url, .wait_time_seconds = 20},
                         [&](auto outcome) { answered.set_value(std::move(outcome)); });
  send(url, "now");
  auto received = answered.get_future().get();
  ASSERT_TRUE(received) << received.error().to_string();
  ASSERT_EQ(received->messages.size(), 1u);
  EXPECT_EQ(received->messages.front().body, "now");
}

TEST_F(Calls, APollThatIsTakenBackEndsAtOnceAndTakesNothing) {
  const std::string url = queue("cancelled");
  std::promise<Outcome<ReceiveMessageResult>> answered;
  const CallId poll =
      client.receive_message({.queue_url = url, .wait_time_seconds = 20},
                             [&](auto outcome) { answered.set_value(std::move(outcome)); });
  client.cancel(poll);
  auto ended = answered.get_future().get();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, code::kCancelled);
  EXPECT_EQ(ended.error().fault, Fault::kLocal);
  client.cancel(poll);
}

TEST_F(Calls, AnErrorNamesCodeStatusAndRequest) {
  auto refused =
      client.send_message({.queue_url = server.url() + "/000000000000/none", .message_body = "a"});
  ASSERT_FALSE(refused);
  const Error& error = refused.error();
  EXPECT_EQ(error.code, "QueueDoesNotExist");
  EXPECT_EQ(error.http_status, 400);
  EXPECT_EQ(error.fault, Fault::kSender);
  EXPECT_FALSE(error.may_have_happened);
  EXPECT_FALSE(error.request_id.empty());
  EXPECT_EQ(refused.attempts(), 1);
  EXPECT_EQ(error.to_string(),
            "QueueDoesNotExist (HTTP 400, request " + error.request_id + "): " + error.message);
}

TEST_F(Calls, WhatCannotBeWrittenIsRefusedBeforeItIsSent) {
  auto refused = client.send_message({.queue_url = queue("text"), .message_body = "\xff"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, code::kInvalidRequest);
  EXPECT_EQ(refused.error().message, "MessageBody is not UTF-8");
  EXPECT_EQ(refused.attempts(), 0);
}

TEST_F(Calls, QueuesAreMadeFoundDescribedAndDeleted) {
  const std::string url = queue("described", {{"DelaySeconds", "3"}});
  auto found = client.get_queue_url({.queue_name = "described"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->queue_url, url);
  EXPECT_TRUE(client.set_queue_attributes({url, {{"DelaySeconds", "4"}}}));
  auto attributes = client.get_queue_attributes({url, {"DelaySeconds"}});
  ASSERT_TRUE(attributes);
  EXPECT_EQ(attributes->attributes, (StringMap{{"DelaySeconds", "4"}}));
  EXPECT_TRUE(client.tag_queue({url, {{"team", "a"}, {"cost", "b"}}}));
  EXPECT_TRUE(client.untag_queue({url, {"cost"}}));
  auto tags = client.list_queue_tags({url});
  ASSERT_TRUE(tags);
  EXPECT_EQ(tags->tags, (StringMap{{"team", "a"}}));
  EXPECT_TRUE(client.add_permission({url, "friends", {"111111111111"}, {"SendMessage"}}));
  EXPECT_TRUE(client.remove_permission({url, "friends"}));
  EXPECT_TRUE(client.purge_queue({url}));
  auto listed = client.list_queues({.queue_name_prefix = "desc", .max_results = 1});
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->queue_urls, std::vector<std::string>{url});
  EXPECT_TRUE(client.delete_queue({url}));
  EXPECT_TRUE(client.list_queues()->queue_urls.empty());
}

TEST_F(Calls, DeadLettersAreListedAndMovedBack) {
  const std::string dead = queue("dead");
  auto arn = client.get_queue_attributes({dead, {"QueueArn"}});
  ASSERT_TRUE(arn);
  const std::string dead_arn = arn->attributes.at("QueueArn");
  const std::string url = queue(
      "source",
      {{"RedrivePolicy", R"({"deadLetterTargetArn":")" + dead_arn + R"(","maxReceiveCount":1})"}});
  auto sources = client.list_dead_letter_source_queues({.queue_url = dead});
  ASSERT_TRUE(sources);
  EXPECT_EQ(sources->queue_urls, std::vector<std::string>{url});
  send(dead, "back");
  auto started = client.start_message_move_task({.source_arn = dead_arn});
  ASSERT_FALSE(started.ok() && started->task_handle.empty());
  auto tasks = client.list_message_move_tasks({.source_arn = dead_arn});
  ASSERT_TRUE(tasks);
  ASSERT_EQ(tasks->results.size(), 1u);
  EXPECT_EQ(tasks->results.front().source_arn, dead_arn);
  auto cancelled = client.cancel_message_move_task({.task_handle = "nonsense"});
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().fault, Fault::kSender);
}

TEST_F(Calls, VisibilityIsChangedSoThatAMessageComesBack) {
  const std::string url = queue("back");
  send(url, "again");
  auto first = client.receive_message({.queue_url = url, .visibility_timeout = 600});
  ASSERT_TRUE(first && first->messages.size() == 1);
  EXPECT_TRUE(client.change_message_visibility({url, first->messages.front().receipt_handle, 0}));
  auto second = client.receive_message({.queue_url = url});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->messages.size(), 1u);
}

TEST_F(Calls, WhatIsUnderWayEndsWhenTheClientDoes) {
  const std::string url = queue("closed");
  std::promise<Outcome<ReceiveMessageResult>> answered;
  {
    Client other = must_open({.endpoint = server.url()});
    other.receive_message({.queue_url = url, .wait_time_seconds = 20},
                          [&](auto outcome) { answered.set_value(std::move(outcome)); });
  }
  auto ended = answered.get_future().get();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, code::kClosed);
}

}  // namespace
}  // namespace stanchion::client
