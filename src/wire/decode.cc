#include "wire/decode.h"

#include <algorithm>
#include <cstring>

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

// A body without a type is treated as a form.
bool may_be_form(std::string_view content_type) {
  return content_type.empty() || is_form_type(content_type);
}

// Whether the parameter ContentType is JSON. It is looked up before anything is decoded, because
// errors of a call are encoded in the same way as its result.
bool asks_for_json(std::string_view form) {
  constexpr std::string_view kAsked = "ContentType=JSON";
  const char* const begin = form.data();
  for (std::string_view rest = form; rest.size() >= kAsked.size();) {
    const void* const found = memmem(rest.data(), rest.size(), kAsked.data(), kAsked.size());
    if (found == nullptr) return false;
    const char* const at = static_cast<const char*>(found);
    const char* const end = at + kAsked.size();
    const bool begins = at == begin || at[-1] == '&';
    const bool ends = end == begin + form.size() || *end == '&';
    if (begins && ends) return true;
    rest = form.substr(static_cast<std::size_t>(end - begin));
  }
  return false;
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
  const bool is_form = may_be_form(call.header("Content-Type"));
  auto parameters = QueryParameters::parse(call.query(), is_form ? call.body : "");
  if (!parameters) return std::unexpected(std::move(parameters).error());
  const std::string* name = parameters->find("Action");
  if (name == nullptr) return refuse(ErrorCode::kInvalidAction, "");
  const auto action = find_action(*name);
  if (!action) return invalid_action(*name);
  // With an endpoint that ends with a slash, some clients request "//".
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

bool accepts_json(std::string_view accept) {
  while (!accept.empty()) {
    const std::string_view range = accept.substr(0, accept.find(','));
    accept.remove_prefix(std::min(range.size() + 1, accept.size()));
    std::string_view type = range.substr(0, range.find(';'));
    type.remove_prefix(std::min(type.find_first_not_of(" \t"), type.size()));
    type = type.substr(0, type.find_last_not_of(" \t") + 1);
    if (equals_ignoring_ascii_case(type, "application/json")) return true;
    if (type.ends_with("/xml")) return false;
  }
  return false;
}

Protocol detect(const HttpCall& call) {
  const std::string_view type = call.header("Content-Type");
  if (is_json_type(type)) return Protocol::kJson;
  const bool wants_json = accepts_json(call.header("Accept")) || asks_for_json(call.query()) ||
                          (may_be_form(type) && asks_for_json(call.body));
  return wants_json ? Protocol::kQueryJson : Protocol::kQuery;
}

Answer<Request> decode(const HttpCall& call, Protocol protocol, const DecodeContext& context) {
  // Returned under one name everywhere, so that it is built where the caller keeps it.
  auto request = protocol == Protocol::kJson ? decode_json_call(call, context)
                                             : decode_query_call(call, context);
  if (!request) return request;
  const auto* get = std::get_if<GetQueueUrl>(&*request);
  if (get != nullptr && get->queue.name.empty()) {
    request =
        refuse(ErrorCode::kInvalidParameterValue,
               "Value for parameter QueueName is invalid. Reason: Must specify a queue name.");
  } else {
    take_trace_header(call, *request);
  }
  return request;
}

}  // namespace stanchion::wire
