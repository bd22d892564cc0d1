// The client's JSON against the server's: what one writes the other reads.
#include "client/json.h"

#include <gtest/gtest.h>

#include <set>

#include "model/reply.h"
#include "wire/encode.h"
#include "wire/json_decode.h"

namespace stanchion::client {
namespace {

constexpr const char* kUrl = "http://127.0.0.1:9324/000000000000/orders";

// The request as the server decodes it.
template <class Request>
auto as_server_reads(const Request& request) {
  const auto body = RequestJson::write(request);
  EXPECT_TRUE(body) << body.error().message;
  auto decoded = wire::decode_json(ActionOf<Request>::value, body.value_or("{}"),
                                   {"000000000000", "us-east-1"});
  EXPECT_TRUE(decoded) << decoded.error().message;
  return decoded.value_or(stanchion::Request());
}

// The result as the client reads what the server writes.
template <class Request>
auto as_client_reads(ReplyValue reply, const stanchion::Request& request = {}) {
  const wire::HttpAnswer answer =
      wire::encode(Reply(std::move(reply)), ActionOf<Request>::value, request,
                   wire::Protocol::kJson, {"request", "http://127.0.0.1:9324"});
  auto read = ResultJson::read<typename Request::Result>(answer.body.empty() ? "{}" : answer.body);
  EXPECT_TRUE(read) << read.error().message << " in " << answer.body;
  return read.value_or(typename Request::Result());
}

TEST(RequestJson, OfMessagesIsWhatTheServerReads) {
  const auto sent = std::get<stanchion::SendMessage>(as_server_reads(SendMessageRequest{
      .queue_url = kUrl,
      .message_body = "body \"\\\n\x01 ü",
      .delay_seconds = 5,
      .message_attributes = {{"a", MessageAttributeValue::text("x")},
                             {"b", MessageAttributeValue::binary(std::string("\0\xff", 2))}},
      .message_system_attributes = {{"AWSTraceHeader", MessageAttributeValue::text("t")}},
      .message_deduplication_id = "d",
      .message_group_id = "g"}));
  EXPECT_EQ(sent.queue.name, "orders");
  EXPECT_EQ(sent.message.body, "body \"\\\n\x01 ü");
  EXPECT_EQ(sent.message.delay_seconds, 5);
  ASSERT_EQ(sent.message.attributes.size(), 2u);
  EXPECT_EQ(sent.message.attributes[0].name, "a");
  EXPECT_EQ(sent.message.attributes[0].data_type, "String");
  EXPECT_EQ(sent.message.attributes[0].string_value, "x");
  EXPECT_EQ(sent.message.attributes[1].binary_value, std::string("\0\xff", 2));
  ASSERT_EQ(sent.message.system_attributes.size(), 1u);
  EXPECT_EQ(sent.message.deduplication_id, "d");
  EXPECT_EQ(sent.message.group_id, "g");

  const auto batch = std::get<stanchion::SendMessageBatch>(as_server_reads(SendMessageBatchRequest{
      kUrl, {{.id = "0", .message_body = "a", .message_group_id = "g"}, {.id = "1"}}}));
  ASSERT_EQ(batch.entries.size(), 2u);
  EXPECT_EQ(batch.entries[0].id, "0");
  EXPECT_EQ(batch.entries[0].message.body, "a");
  EXPECT_EQ(batch.entries[0].message.group_id, "g");
  EXPECT_EQ(batch.entries[1].message.group_id, std::nullopt);

  const auto receive = std::get<stanchion::ReceiveMessage>(
      as_server_reads(ReceiveMessageRequest{.queue_url = kUrl,
                                            .max_number_of_messages = 10,
                                            .wait_time_seconds = 20,
                                            .visibility_timeout = 0,
                                            .message_system_attribute_names = {"All"},
                                            .message_attribute_names = {"a.*"},
                                            .receive_request_attempt_id = "r",
                                            .stanchion_positions = {"p1", "p2"}}));
  EXPECT_EQ(receive.max_number_of_messages, 10);
  EXPECT_EQ(receive.wait_time_seconds, 20);
  EXPECT_EQ(receive.visibility_timeout, 0);
  EXPECT_EQ(receive.attribute_names, std::vector<std::string>{"All"});
  EXPECT_EQ(receive.message_attribute_names, std::vector<std::string>{"a.*"});
  EXPECT_EQ(receive.attempt_id, "r");
  EXPECT_EQ(receive.positions, (std::vector<std::string>{"p1", "p2"}));

  const auto removed =
      std::get<stanchion::DeleteMessage>(as_server_reads(DeleteMessageRequest{kUrl, "handle"}));
  EXPECT_EQ(removed.receipt_handle, "handle");
  const auto removed_batch = std::get<stanchion::DeleteMessageBatch>(
      as_server_reads(DeleteMessageBatchRequest{kUrl, {{"a", "handle"}}}));
  EXPECT_EQ(removed_batch.entries.at(0).receipt_handle, "handle");
  const auto changed = std::get<stanchion::ChangeMessageVisibility>(
      as_server_reads(ChangeMessageVisibilityRequest{kUrl, "handle", 0}));
  EXPECT_EQ(changed.visibility_timeout, 0);
  const auto changed_batch = std::get<stanchion::ChangeMessageVisibilityBatch>(
      as_server_reads(ChangeMessageVisibilityBatchRequest{kUrl, {{"a", "handle", 7}}}));
  EXPECT_EQ(changed_batch.entries.at(0).visibility_timeout, 7);
  EXPECT_EQ(changed_batch.entries.at(0).id, "a");
}

TEST(RequestJson, OfQueuesIsWhatTheServerReads) {
  const auto created = std::get<stanchion::CreateQueue>(
      as_server_reads(CreateQueueRequest{"orders", {{"DelaySeconds", "1"}}, {{"team", "x"}}}));
  EXPECT_EQ(created.queue.name, "orders");
  EXPECT_EQ(created.attributes.at("DelaySeconds"), "1");
  EXPECT_EQ(created.tags.at("team"), "x");
  EXPECT_EQ(std::get<stanchion::DeleteQueue>(as_server_reads(DeleteQueueRequest{kUrl})).queue.name,
            "orders");
  const auto url = std::get<stanchion::GetQueueUrl>(
      as_server_reads(GetQueueUrlRequest{"orders", "111111111111"}));
  EXPECT_EQ(url.queue.name, "orders");
  EXPECT_EQ(url.queue.account, "111111111111");
  const auto listed =
      std::get<stanchion::ListQueues>(as_server_reads(ListQueuesRequest{"or", 7, "token"}));
  EXPECT_EQ(listed.prefix, "or");
  EXPECT_EQ(listed.max_results, 7);
  EXPECT_EQ(listed.next_token, "token");
  const auto sources = std::get<stanchion::ListDeadLetterSourceQueues>(
      as_server_reads(ListDeadLetterSourceQueuesRequest{kUrl, 3, "t"}));
  EXPECT_EQ(sources.max_results, 3);
  EXPECT_EQ(sources.next_token, "t");
  const auto asked = std::get<stanchion::GetQueueAttributes>(
      as_server_reads(GetQueueAttributesRequest{kUrl, {"All"}}));
  EXPECT_EQ(asked.attribute_names, std::vector<std::string>{"All"});
  const auto set = std::get<stanchion::SetQueueAttributes>(
      as_server_reads(SetQueueAttributesRequest{kUrl, {{"Policy", "{\"a\":1}"}}}));
  EXPECT_EQ(set.attributes.at("Policy"), "{\"a\":1}");
  EXPECT_EQ(std::get<stanchion::PurgeQueue>(as_server_reads(PurgeQueueRequest{kUrl})).queue.name,
            "orders");
  EXPECT_EQ(
      std::get<stanchion::ListQueueTags>(as_server_reads(ListQueueTagsRequest{kUrl})).queue.name,
      "orders");
  EXPECT_EQ(std::get<stanchion::TagQueue>(as_server_reads(TagQueueRequest{kUrl, {{"a", "b"}}}))
                .tags.at("a"),
            "b");
  EXPECT_EQ(
      std::get<stanchion::UntagQueue>(as_server_reads(UntagQueueRequest{kUrl, {"a"}})).tag_keys,
      std::vector<std::string>{"a"});
  const auto added = std::get<stanchion::AddPermission>(as_server_reads(
      AddPermissionRequest{kUrl, "label", {"111111111111"}, {"SendMessage", "ReceiveMessage"}}));
  EXPECT_EQ(added.label, "label");
  EXPECT_EQ(added.account_ids, std::vector<std::string>{"111111111111"});
  EXPECT_EQ(added.actions.size(), 2u);
  EXPECT_EQ(
      std::get<stanchion::RemovePermission>(as_server_reads(RemovePermissionRequest{kUrl, "l"}))
          .label,
      "l");
  const auto started = std::get<stanchion::StartMessageMoveTask>(
      as_server_reads(StartMessageMoveTaskRequest{"arn:a", "arn:b", 50}));
  EXPECT_EQ(started.source_arn, "arn:a");
  EXPECT_EQ(started.destination_arn, "arn:b");
  EXPECT_EQ(started.max_messages_per_second, 50);
  EXPECT_EQ(std::get<stanchion::CancelMessageMoveTask>(
                as_server_reads(CancelMessageMoveTaskRequest{"task"}))
                .task_handle,
            "task");
  const auto tasks = std::get<stanchion::ListMessageMoveTasks>(
      as_server_reads(ListMessageMoveTasksRequest{"arn:a", 10}));
  EXPECT_EQ(tasks.source_arn, "arn:a");
  EXPECT_EQ(tasks.max_results, 10);
}

TEST(RequestJson, TextThatIsNotUtf8IsNotWritten) {
  EXPECT_EQ(RequestJson::write(SendMessageRequest{kUrl, "\xff"}).error().message,
            "MessageBody is not UTF-8");
  EXPECT_EQ(RequestJson::write(TagQueueRequest{kUrl, {{"a", "\xff"}}}).error().message,
            "Tags is not UTF-8");
  EXPECT_EQ(RequestJson::write(UntagQueueRequest{kUrl, {"\xff"}}).error().message,
            "TagKeys is not UTF-8");
  EXPECT_EQ(RequestJson::write(
                SendMessageRequest{.queue_url = kUrl, .message_attributes = {{"\xff", {}}}})
                .error()
                .message,
            "MessageAttributes is not UTF-8");
}

TEST(ResultJson, OfMessagesIsWhatTheServerWrites) {
  stanchion::SentMessage sent;
  sent.attributes_md5 = Md5{};
  sent.sequence_number = Seq(7);
  const auto read = as_client_reads<SendMessageRequest>(sent);
  EXPECT_EQ(read.message_id.size(), 36u);
  EXPECT_EQ(read.md5_of_message_body, std::string(32, '0'));
  EXPECT_EQ(read.md5_of_message_attributes, std::string(32, '0'));
  EXPECT_EQ(read.md5_of_message_system_attributes, std::nullopt);
  EXPECT_TRUE(read.sequence_number && read.sequence_number->ends_with("7"));

  const auto batch = as_client_reads<SendMessageBatchRequest>(stanchion::SendMessageBatchResult{
      {{"a", sent}}, {{"b", {ErrorCode::kInvalidParameterValue, "no"}}}});
  EXPECT_EQ(batch.successful.at(0).id, "a");
  EXPECT_EQ(batch.failed.at(0).id, "b");
  EXPECT_EQ(batch.failed.at(0).code, "InvalidParameterValue");
  EXPECT_EQ(batch.failed.at(0).message, "no");
  EXPECT_TRUE(batch.failed.at(0).sender_fault);

  const std::string section =
      encode_attributes({{"n", "Number", ValueKind::kString, "7"},
                         {"r", "Binary.x", ValueKind::kBinary, std::string_view("\0\xff", 2)}});
  ContentParts parts;
  parts.body = "b\n";
  parts.attribute_section = section;
  stanchion::ReceiveMessage request;
  request.attribute_names = {"All"};
  request.message_attribute_names = {"All"};
  const auto received = as_client_reads<ReceiveMessageRequest>(
      stanchion::ReceiveMessageResult{
          {{Content::make(parts), "handle", 3, from_millis(0), std::nullopt}}, Duration(0)},
      request);
  ASSERT_EQ(received.messages.size(), 1u);
  const Message& message = received.messages.front();
  EXPECT_EQ(message.body, "b\n");
  EXPECT_EQ(message.receipt_handle, "handle");
  EXPECT_EQ(message.attributes.at("ApproximateReceiveCount"), "3");
  EXPECT_EQ(message.message_attributes.at("n").string_value, "7");
  EXPECT_EQ(message.message_attributes.at("r").binary_value, std::string("\0\xff", 2));
  EXPECT_EQ(message.message_attributes.at("r").data_type, "Binary.x");
  EXPECT_TRUE(as_client_reads<ReceiveMessageRequest>(stanchion::ReceiveMessageResult{}, request)
                  .messages.empty());

  const stanchion::BatchResult settled{{"a"}, {{"b", {ErrorCode::kReceiptHandleIsInvalid, ""}}}};
  EXPECT_EQ(as_client_reads<DeleteMessageBatchRequest>(settled).successful.at(0).id, "a");
  EXPECT_EQ(as_client_reads<ChangeMessageVisibilityBatchRequest>(settled).failed.at(0).id, "b");
}

TEST(ResultJson, OfQueuesIsWhatTheServerWrites) {
  const QueueRef queue{.account = "000000000000", .region = "us-east-1", .name = "orders"};
  EXPECT_EQ(as_client_reads<CreateQueueRequest>(QueueUrlResult{queue}).queue_url, kUrl);
  EXPECT_EQ(as_client_reads<GetQueueUrlRequest>(QueueUrlResult{queue}).queue_url, kUrl);
  const auto listed = as_client_reads<ListQueuesRequest>(QueueListResult{{queue}, "token"});
  EXPECT_EQ(listed.queue_urls, std::vector<std::string>{kUrl});
  EXPECT_EQ(listed.next_token, "token");
  const auto sources =
      as_client_reads<ListDeadLetterSourceQueuesRequest>(QueueListResult{{queue}, std::nullopt});
  EXPECT_EQ(sources.queue_urls, std::vector<std::string>{kUrl});
  EXPECT_EQ(sources.next_token, std::nullopt);
  EXPECT_EQ(as_client_reads<GetQueueAttributesRequest>(QueueAttributesResult{{{"a", "b"}}})
                .attributes.at("a"),
            "b");
  EXPECT_EQ(as_client_reads<ListQueueTagsRequest>(QueueTagsResult{{{"a", "b"}}}).tags.at("a"), "b");
  EXPECT_EQ(
      as_client_reads<StartMessageMoveTaskRequest>(stanchion::StartMessageMoveTaskResult{"task"})
          .task_handle,
      "task");
  EXPECT_EQ(as_client_reads<CancelMessageMoveTaskRequest>(stanchion::CancelMessageMoveTaskResult{9})
                .approximate_number_of_messages_moved,
            9);
  const auto tasks = as_client_reads<ListMessageMoveTasksRequest>(
      stanchion::ListMessageMoveTasksResult{{{.task_handle = "t",
                                              .status = MoveTaskStatus::kFailed,
                                              .source_arn = "a",
                                              .destination_arn = "b",
                                              .max_messages_per_second = 5,
                                              .moved = 6,
                                              .to_move = 7,
                                              .failure_reason = "why",
                                              .started = from_millis(8)}}});
  ASSERT_EQ(tasks.results.size(), 1u);
  const auto& task = tasks.results.front();
  EXPECT_EQ(task.status, "FAILED");
  EXPECT_EQ(task.destination_arn, "b");
  EXPECT_EQ(task.max_number_of_messages_per_second, 5);
  EXPECT_EQ(task.approximate_number_of_messages_moved, 6);
  EXPECT_EQ(task.approximate_number_of_messages_to_move, 7);
  EXPECT_EQ(task.failure_reason, "why");
  EXPECT_EQ(task.started_timestamp, 8);
}

TEST(ResultJson, StepsOverWhatItDoesNotKnowAndMissesWhatMustBeThere) {
  const auto read =
      ResultJson::read<CreateQueueResult>(R"({"New":{"a":[1,null]},"QueueUrl":"u","Other":null})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->queue_url, "u");
  EXPECT_EQ(ResultJson::read<CreateQueueResult>("{}").error().message, "QueueUrl is missing");
  EXPECT_FALSE(ResultJson::read<CreateQueueResult>(R"({"QueueUrl":null})"));
  for (const char* wrong : {"", "[]", "{", R"({"QueueUrl":7})", R"({"QueueUrl":"u"} x)", "<html>"})
    EXPECT_FALSE(ResultJson::read<CreateQueueResult>(wrong)) << wrong;
}

TEST(ResultJson, ListsAreBounded) {
  std::string text = R"({"QueueUrls":[)";
  for (std::size_t i = 0; i < wire::kElementsMax; ++i) text += i == 0 ? "\"u\"" : ",\"u\"";
  EXPECT_TRUE(ResultJson::read<ListQueuesResult>(text + "]}"));
  EXPECT_FALSE(ResultJson::read<ListQueuesResult>(text + ",\"u\"]}"));
}

}  // namespace
}  // namespace stanchion::client
