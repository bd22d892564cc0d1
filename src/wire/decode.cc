#include "wire/decode.h"

#include "model/limits.h"
#include "wire/json_decode.h"
#include "wire/query_decode.h"

namespace stanchion::wire {
namespace {

constexpr std::string_view kJsonTypePrefix = "application/x-amz-json-1.";
constexpr std::string_view kFormType = "application/x-www-form-urlencoded";
constexpr std::string_view kTargetPrefix = "AmazonSQS.";
constexpr std::string_view kTraceHeader = "X-Amzn-Trace-Id";
constexpr std::string_view kTraceAttribute = "AWSTraceHeader";

bool begins_with(std::string_view text, std::string_view prefix) {
  return equals_ignoring_ascii_case(text.substr(0, prefix.size()), prefix);
}

Answer<Request> decode_json_call(const HttpCall& call, const DecodeContext& context) {
  const std::string_view target = call.header("X-Amz-Target");
  if (target.empty()) return refuse(ErrorCode::kInvalidAction, "");
  if (!target.starts_with(kTargetPrefix)) return invalid_action(target);
  const std::string_view name = target.substr(kTargetPrefix.size());
  const auto action = find_action(name);
  if (!action) return invalid_action(name);
  return decode_json(*action, call.body, context);
}

Answer<Request> decode_query_call(const HttpCall& call, const DecodeContext& context) {
  const std::string_view type = call.header("Content-Type");
  const bool is_form = type.empty() || is_form_type(type);
  auto parameters = QueryParameters::parse(call.query(), is_form ? call.body : "");
  if (!parameters) return std::unexpected(std::move(parameters).error());
  const std::string* name = parameters->find("Action");
  if (name == nullptr) return refuse(ErrorCode::kInvalidAction, "");
  const auto action = find_action(*name);
  if (!action) return invalid_action(*name);
  // An endpoint that ends with a slash makes some clients ask for "//".
  const bool is_root = call.path().find_first_not_of('/') == std::string_view::npos;
  const std::string_view path = is_root ? "/" : call.path();
  return decode_query(*action, path, *parameters, context);
}

void add_trace(OutgoingMessage& message, std::string_view trace) {
  for (const MessageAttribute& attribute : message.system_attributes)
    if (attribute.name == kTraceAttribute) return;
  message.system_attributes.push_back({.name = std::string(kTraceAttribute),
                                       .data_type = "String",
                                       .string_value = std::string(trace),
                                       .binary_value = std::nullopt,
                                       .has_list_value = false});
}

// A trace header that messages cannot carry is dropped: tracing must not make a send fail.
void take_trace_header(const HttpCall& call, Request& request) {
  auto* const one = std::get_if<SendMessage>(&request);
  auto* const many = std::get_if<SendMessageBatch>(&request);
  if (one == nullptr && many == nullptr) return;
  const std::string_view trace = call.header(kTraceHeader);
  if (trace.empty() || trace.size() > limits::kTraceHeaderSizeMax) return;
  if (find_forbidden_character(trace)) return;
  if (one != nullptr) return add_trace(one->message, trace);
  for (SendMessageBatch::Entry& entry : many->entries) add_trace(entry.message, trace);
}

}  // namespace

bool is_json_type(std::string_view content_type) {
  return begins_with(content_type, kJsonTypePrefix);
}

bool is_form_type(std::string_view content_type) {
  return begins_with(content_type, kFormType);
}

Protocol detect(const HttpCall& call) {
  return is_json_type(call.header("Content-Type")) ? Protocol::kJson : Protocol::kQuery;
}

Answer<Decoded> decode(const HttpCall& call, const DecodeContext& context) {
  const Protocol protocol = detect(call);
  auto request = protocol == Protocol::kJson ? decode_json_call(call, context)
                                             : decode_query_call(call, context);
  if (!request) return std::unexpected(std::move(request).error());
  if (const auto* get = std::get_if<GetQueueUrl>(&*request); get && get->queue.name.empty())
    return refuse(ErrorCode::kInvalidParameterValue,
                  "Value for parameter QueueName is invalid. Reason: Must specify a queue name.");
  take_trace_header(call, *request);
  const Action action = action_of(*request);
  return Decoded{*std::move(request), protocol, action};
}

}  // namespace stanchion::wire
