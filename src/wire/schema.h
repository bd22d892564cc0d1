// The members of every request, each described once. The JSON decoder and the Query decoder iterate
// over these descriptions and contain nothing about single actions.
//
//   Schema<SendMessage>::fields   a tuple of Field, one per member of the action
//
// A Field names the member in both protocols and points to where its value goes. The type of the
// member says how it is read: text, number, list, map, list of structures; where the type is not
// enough, the Kind decides.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "model/action.h"
#include "model/error.h"
#include "model/request.h"

namespace stanchion::wire {

enum class Kind {
  kPlain,       // The member's type is enough.
  kQueueUrl,    // A QueueRef, taken as a whole from a URL.
  kQueueName,   // The name of a QueueRef; account and region are the caller's.
  kQueueOwner,  // The account of a QueueRef.
  kBase64,      // Bytes as base64.
  kPresence,    // A bool: whether the member was given, whatever its value.
  kInlined,     // A structure whose fields appear among those of its owner.
};

template <Kind kKind, class Owner, class Member>
struct Field {
  using Value = Member;
  static constexpr Kind kind = kKind;

  std::string_view json;
  std::string_view query;
  Member Owner::*member;
  bool required = false;  // Set where the model cannot represent that the member was left out.
  // The names of key and value of a map's entries in the Query protocol.
  std::string_view query_key = "Name";
  std::string_view query_value = "Value";
};

template <class Owner, class Member>
constexpr auto field(std::string_view json, std::string_view query, Member Owner::*member) {
  return Field<Kind::kPlain, Owner, Member>{json, query, member};
}
template <class Owner, class Member>
constexpr auto field(std::string_view name, Member Owner::*member) {
  return field(name, name, member);
}
template <class Owner>
constexpr auto tag_field(std::string_view json, StringMap Owner::*member) {
  return Field<Kind::kPlain, Owner, StringMap>{json, "Tag", member, false, "Key", "Value"};
}
template <Kind kKind, class Owner, class Member>
constexpr auto field_as(std::string_view json, std::string_view query, Member Owner::*member) {
  return Field<kKind, Owner, Member>{json, query, member};
}
template <class Owner>
constexpr auto queue_url(QueueRef Owner::*member) {
  return Field<Kind::kQueueUrl, Owner, QueueRef>{"QueueUrl", "QueueUrl", member, true};
}
template <class Owner>
constexpr auto queue_name(QueueRef Owner::*member, bool required) {
  return Field<Kind::kQueueName, Owner, QueueRef>{"QueueName", "QueueName", member, required};
}
template <class Owner, class Member>
constexpr auto inlined(Member Owner::*member) {
  return Field<Kind::kInlined, Owner, Member>{"", "", member};
}

template <class T>
struct Schema;

// The value of an attribute; its name is the key of the map that holds it.
template <>
struct Schema<MessageAttribute> {
  using T = MessageAttribute;
  static constexpr auto fields = std::tuple(
      field("DataType", &T::data_type), field("StringValue", &T::string_value),
      field_as<Kind::kBase64>("BinaryValue", "BinaryValue", &T::binary_value),
      field_as<Kind::kPresence>("StringListValues", "StringListValue", &T::has_list_value),
      field_as<Kind::kPresence>("BinaryListValues", "BinaryListValue", &T::has_list_value));
};

template <>
struct Schema<OutgoingMessage> {
  using T = OutgoingMessage;
  static constexpr auto fields = std::tuple(
      field("MessageBody", &T::body), field("DelaySeconds", &T::delay_seconds),
      field("MessageAttributes", "MessageAttribute", &T::attributes),
      field("MessageSystemAttributes", "MessageSystemAttribute", &T::system_attributes),
      field("MessageDeduplicationId", &T::deduplication_id), field("MessageGroupId", &T::group_id));
};

template <>
struct Schema<AddPermission> {
  using T = AddPermission;
  static constexpr auto fields = std::tuple(queue_url(&T::queue), field("Label", &T::label),
                                            field("AWSAccountIds", "AWSAccountId", &T::account_ids),
                                            field("Actions", "ActionName", &T::actions));
};

template <>
struct Schema<CancelMessageMoveTask> {
  using T = CancelMessageMoveTask;
  static constexpr auto fields = std::tuple(field("TaskHandle", &T::task_handle));
};

template <>
struct Schema<ChangeMessageVisibility> {
  using T = ChangeMessageVisibility;
  static constexpr auto fields =
      std::tuple(queue_url(&T::queue), field("ReceiptHandle", &T::receipt_handle),
                 field("VisibilityTimeout", &T::visibility_timeout));
};

template <>
struct Schema<ChangeMessageVisibilityBatch::Entry> {
  using T = ChangeMessageVisibilityBatch::Entry;
  static constexpr auto fields =
      std::tuple(field("Id", &T::id), field("ReceiptHandle", &T::receipt_handle),
                 field("VisibilityTimeout", &T::visibility_timeout));
};

template <>
struct Schema<ChangeMessageVisibilityBatch> {
  using T = ChangeMessageVisibilityBatch;
  static constexpr auto fields =
      std::tuple(queue_url(&T::queue),
                 field("Entries", "ChangeMessageVisibilityBatchRequestEntry", &T::entries));
};

template <>
struct Schema<CreateQueue> {
  using T = CreateQueue;
  static constexpr auto fields =
      std::tuple(queue_name(&T::queue, true), field("Attributes", "Attribute", &T::attributes),
                 tag_field("tags", &T::tags));
};

template <>
struct Schema<DeleteMessage> {
  using T = DeleteMessage;
  static constexpr auto fields =
      std::tuple(queue_url(&T::queue), field("ReceiptHandle", &T::receipt_handle));
};

template <>
struct Schema<DeleteMessageBatch::Entry> {
  using T = DeleteMessageBatch::Entry;
  static constexpr auto fields =
      std::tuple(field("Id", &T::id), field("ReceiptHandle", &T::receipt_handle));
};

template <>
struct Schema<DeleteMessageBatch> {
  using T = DeleteMessageBatch;
  static constexpr auto fields = std::tuple(
      queue_url(&T::queue), field("Entries", "DeleteMessageBatchRequestEntry", &T::entries));
};

template <>
struct Schema<DeleteQueue> {
  static constexpr auto fields = std::tuple(queue_url(&DeleteQueue::queue));
};

template <>
struct Schema<GetQueueAttributes> {
  using T = GetQueueAttributes;
  static constexpr auto fields = std::tuple(
      queue_url(&T::queue), field("AttributeNames", "AttributeName", &T::attribute_names));
};

template <>
struct Schema<GetQueueUrl> {
  using T = GetQueueUrl;
  static constexpr auto fields = std::tuple(
      queue_name(&T::queue, false),
      field_as<Kind::kQueueOwner>("QueueOwnerAWSAccountId", "QueueOwnerAWSAccountId", &T::queue));
};

template <>
struct Schema<ListDeadLetterSourceQueues> {
  using T = ListDeadLetterSourceQueues;
  static constexpr auto fields =
      std::tuple(queue_url(&T::queue), field("MaxResults", &T::max_results),
                 field("NextToken", &T::next_token));
};

template <>
struct Schema<ListMessageMoveTasks> {
  using T = ListMessageMoveTasks;
  static constexpr auto fields =
      std::tuple(field("SourceArn", &T::source_arn), field("MaxResults", &T::max_results));
};

template <>
struct Schema<ListQueueTags> {
  static constexpr auto fields = std::tuple(queue_url(&ListQueueTags::queue));
};

template <>
struct Schema<ListQueues> {
  using T = ListQueues;
  static constexpr auto fields =
      std::tuple(field("QueueNamePrefix", &T::prefix), field("MaxResults", &T::max_results),
                 field("NextToken", &T::next_token));
};

template <>
struct Schema<PurgeQueue> {
  static constexpr auto fields = std::tuple(queue_url(&PurgeQueue::queue));
};

template <>
struct Schema<ReceiveMessage> {
  using T = ReceiveMessage;
  static constexpr auto fields = std::tuple(
      queue_url(&T::queue), field("AttributeNames", "AttributeName", &T::attribute_names),
      field("MessageSystemAttributeNames", "MessageSystemAttributeName", &T::attribute_names),
      field("MessageAttributeNames", "MessageAttributeName", &T::message_attribute_names),
      field("MaxNumberOfMessages", &T::max_number_of_messages),
      field("VisibilityTimeout", &T::visibility_timeout),
      field("WaitTimeSeconds", &T::wait_time_seconds),
      field("ReceiveRequestAttemptId", &T::attempt_id),
      field("StanchionPositions", "StanchionPosition", &T::positions));
};

template <>
struct Schema<RemovePermission> {
  using T = RemovePermission;
  static constexpr auto fields = std::tuple(queue_url(&T::queue), field("Label", &T::label));
};

template <>
struct Schema<SendMessage> {
  using T = SendMessage;
  static constexpr auto fields = std::tuple(queue_url(&T::queue), inlined(&T::message));
};

template <>
struct Schema<SendMessageBatch::Entry> {
  using T = SendMessageBatch::Entry;
  static constexpr auto fields = std::tuple(field("Id", &T::id), inlined(&T::message));
};

template <>
struct Schema<SendMessageBatch> {
  using T = SendMessageBatch;
  static constexpr auto fields = std::tuple(
      queue_url(&T::queue), field("Entries", "SendMessageBatchRequestEntry", &T::entries));
};

template <>
struct Schema<SetQueueAttributes> {
  using T = SetQueueAttributes;
  static constexpr auto fields =
      std::tuple(queue_url(&T::queue), field("Attributes", "Attribute", &T::attributes));
};

template <>
struct Schema<StanchionAdvice> {
  static constexpr auto fields = std::tuple();
};

template <>
struct Schema<StanchionGroups> {
  using T = StanchionGroups;
  static constexpr auto fields =
      std::tuple(queue_url(&T::queue), field("MaxResults", &T::max_results),
                 field("NextToken", &T::next_token));
};

template <>
struct Schema<StanchionPeek> {
  using T = StanchionPeek;
  static constexpr auto fields =
      std::tuple(queue_url(&T::queue), field("States", "State", &T::states),
                 field("MessageGroupId", &T::group_id), field("Search", &T::search),
                 field("MaxResults", &T::max_results), field("NextToken", &T::next_token));
};

template <>
struct Schema<StartMessageMoveTask> {
  using T = StartMessageMoveTask;
  static constexpr auto fields =
      std::tuple(field("SourceArn", &T::source_arn), field("DestinationArn", &T::destination_arn),
                 field("MaxNumberOfMessagesPerSecond", &T::max_messages_per_second));
};

template <>
struct Schema<TagQueue> {
  using T = TagQueue;
  static constexpr auto fields = std::tuple(queue_url(&T::queue), tag_field("Tags", &T::tags));
};

template <>
struct Schema<UntagQueue> {
  using T = UntagQueue;
  static constexpr auto fields =
      std::tuple(queue_url(&T::queue), field("TagKeys", "TagKey", &T::tag_keys));
};

// Calls visit(field, owner) for each field, with the fields of inlined structures in place of the
// structure, until one call returns true. Returns whether one did.
template <class T, class Visit>
constexpr bool visit_fields(T& object, Visit&& visit) {
  const auto one = [&](const auto& f) {
    if constexpr (std::decay_t<decltype(f)>::kind == Kind::kInlined)
      return visit_fields(object.*f.member, visit);
    else
      return static_cast<bool>(visit(f, object));
  };
  return std::apply([&](const auto&... f) { return (one(f) || ...); },
                    Schema<std::remove_const_t<T>>::fields);
}

// Completes names of queues: account and region that are not given are the caller's.
template <class T>
void begin_request(T& request, std::string_view account, std::string_view region) {
  if constexpr (requires { request.queue; }) {
    request.queue.account = account;
    request.queue.region = region;
  } else if constexpr (requires { request.account; }) {
    request.account = account;
    request.region = region;
  }
}

// What `decoder.decode<R>()` makes of the request R that belongs to the action.
template <class Decoder>
Answer<Request> decode_as(Action action, Decoder& decoder) {
  using Decode = Answer<Request> (*)(Decoder&);
  static constexpr auto kDecoders = []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return std::array<Decode, sizeof...(kIndex)>{[](Decoder& d) -> Answer<Request> {
      return d.template decode<std::variant_alternative_t<kIndex, Request>>();
    }...};
  }
  (std::make_index_sequence<kActionNames.size()>());
  return kDecoders[static_cast<std::size_t>(action)](decoder);
}

}  // namespace stanchion::wire
