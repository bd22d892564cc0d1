#include "wire/encode.h"

#include <fmt/format.h>

#include "wire/reply_description.h"

namespace stanchion::wire {
namespace {

constexpr std::string_view kJsonType = "application/x-amz-json-1.0";
constexpr std::string_view kXmlType = "text/xml";
constexpr std::string_view kQueryJsonType = "application/json";
constexpr std::string_view kXmlHead = "<?xml version=\"1.0\"?>";
constexpr std::string_view kNamespace = " xmlns=\"http://queue.amazonaws.com/doc/2012-11-05/\">";
constexpr std::string_view kQueueDoesNotExistForQuery =
    "The specified queue does not exist for this wsdl version.";

constexpr int kNotFound = 404;

// Room for most replies, so that they are written without reallocation.
std::size_t size_hint(const ReplyValue& value) {
  constexpr std::size_t kFrame = 512, kPerMessage = 768, kPerSent = 192;
  std::size_t size = kFrame;
  if (const auto* received = std::get_if<ReceiveMessageResult>(&value)) {
    for (const ReceivedMessage& message : received->messages)
      size += kPerMessage + message.content->encoded().size();
  } else if (const auto* peeked = std::get_if<StanchionPeekResult>(&value)) {
    for (const PeekedMessage& message : peeked->messages)
      size += kPerMessage + message.content->encoded().size();
  } else if (const auto* sent = std::get_if<SendMessageBatchResult>(&value)) {
    size += kPerSent * sent->successful.size();
  }
  return size;
}

void write_json(std::string& out, const ReplyValue& value, const Describing& about) {
  if (std::holds_alternative<NoResult>(value)) return;
  JsonWriter writer(out);
  writer.begin();
  std::visit([&](const auto& reply) { describe(writer, reply, about); }, value);
  writer.end();
}

void write_xml_result(std::string& out, const ReplyValue& value, const Describing& about) {
  const std::string_view action = name_of(about.action);
  XmlWriter writer(out);
  const std::size_t before = out.size();
  out.append("<").append(action).append("Result>");
  const std::size_t opened = out.size();
  std::visit([&](const auto& reply) { describe(writer, reply, about); }, value);
  if (out.size() == opened) {
    out.resize(before);
    out.append("<").append(action).append("Result/>");
  } else {
    out.append("</").append(action).append("Result>");
  }
}

void write_xml(std::string& out, const ReplyValue& value, const Describing& about,
               std::string_view request_id) {
  const std::string_view action = name_of(about.action);
  out.append(kXmlHead).append("<").append(action).append("Response").append(kNamespace);
  if (!std::holds_alternative<NoResult>(value)) write_xml_result(out, value, about);
  XmlWriter writer(out);
  writer.open("ResponseMetadata");
  writer.text("RequestId", request_id);
  writer.close("ResponseMetadata");
  out.append("</").append(action).append("Response>");
}

void write_query_json(std::string& out, const ReplyValue& value, const Describing& about,
                      std::string_view request_id) {
  const std::string_view action = name_of(about.action);
  append_parts(out, "{\"", action, "Response\":{");
  if (!std::holds_alternative<NoResult>(value)) {
    append_parts(out, "\"", action, "Result\":");
    QueryJsonWriter writer(out);
    writer.begin();
    std::visit([&](const auto& reply) { describe(writer, reply, about); }, value);
    writer.end();
    append_parts(out, ",");
  }
  append_parts(out, "\"ResponseMetadata\":{\"RequestId\":\"", request_id, "\"}}}");
}

std::string_view fault_of(const ErrorInfo& info) {
  return info.sender_fault() ? "Sender" : "Receiver";
}

// InvalidAction without a message: the call names no action. AWS answers such calls outside of its
// protocols.
bool names_no_action(const Error& error) {
  return error.code == ErrorCode::kInvalidAction && error.message.empty();
}

void write_json_error(HttpAnswer& answer, const Error& error, const ErrorInfo& info) {
  answer.query_error = fmt::format("{};{}", info.query_code, fault_of(info));
  JsonWriter writer(answer.body);
  writer.begin();
  writer.token("__type", info.json_type);
  if (!error.message.empty()) writer.text("message", error_text(error));
  writer.end();
}

std::string query_message(const Error& error) {
  const bool no_queue =
      error.code == ErrorCode::kQueueDoesNotExist && error.message == kQueueDoesNotExist;
  return no_queue ? std::string(kQueueDoesNotExistForQuery) : error_text(error);
}

void write_query_json_error(HttpAnswer& answer, const Error& error, const ErrorInfo& info) {
  std::string& out = answer.body;
  out.append("{\"Error\":");
  QueryJsonWriter writer(out);
  writer.begin();
  writer.token("Type", fault_of(info));
  writer.token("Code", info.query_code);
  writer.text("Message", query_message(error));
  writer.end();
  append_parts(out, ",\"RequestId\":\"", std::string_view(answer.request_id), "\"}");
}

void write_xml_error(HttpAnswer& answer, const Error& error, const ErrorInfo& info) {
  std::string& out = answer.body;
  out.append(kXmlHead).append("<ErrorResponse").append(kNamespace);
  XmlWriter writer(out);
  writer.open("Error");
  writer.token("Type", fault_of(info));
  writer.token("Code", info.query_code);
  writer.text("Message", query_message(error));
  out.append("<Detail/>");
  writer.close("Error");
  writer.text("RequestId", answer.request_id);
  writer.close("ErrorResponse");
}

std::string_view content_type_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::kJson:
      return kJsonType;
    case Protocol::kQuery:
      return kXmlType;
    case Protocol::kQueryJson:
      return kQueryJsonType;
  }
  return kXmlType;
}

HttpAnswer begin_answer(Protocol protocol, const ReplyContext& context) {
  HttpAnswer answer;
  answer.content_type = content_type_of(protocol);
  answer.request_id = context.request_id;
  return answer;
}

}  // namespace

HttpAnswer encode(const Reply& reply, Action action, const Request& request, Protocol protocol,
                  const ReplyContext& context) {
  if (!reply) return encode_error(reply.error(), protocol, context);
  HttpAnswer answer = begin_answer(protocol, context);
  const Describing about{action, context.base_url, request};
  answer.body.reserve(size_hint(*reply));
  switch (protocol) {
    case Protocol::kJson:
      write_json(answer.body, *reply, about);
      break;
    case Protocol::kQuery:
      write_xml(answer.body, *reply, about, context.request_id);
      break;
    case Protocol::kQueryJson:
      write_query_json(answer.body, *reply, about, context.request_id);
      break;
  }
  return answer;
}

HttpAnswer encode_error(const Error& error, Protocol protocol, const ReplyContext& context) {
  HttpAnswer answer = begin_answer(protocol, context);
  const ErrorInfo& info = info_of(error.code);
  answer.status = names_no_action(error) ? kNotFound : info.http_status;
  if (protocol != Protocol::kJson && names_no_action(error)) {
    answer.content_type = kXmlType;
    answer.body = "<UnknownOperationException/>\n";
    return answer;
  }
  switch (protocol) {
    case Protocol::kJson:
      write_json_error(answer, error, info);
      break;
    case Protocol::kQuery:
      write_xml_error(answer, error, info);
      break;
    case Protocol::kQueryJson:
      write_query_json_error(answer, error, info);
      break;
  }
  return answer;
}

}  // namespace stanchion::wire
