#include "runner/lambda_event.h"

#include <fmt/format.h>

#include "client/checksums.h"
#include "runner/filter.h"
#include "runner/http_loop.h"
#include "runner/job_status.h"
#include "runner/message_json.h"

namespace stanchion::runner {
namespace {

namespace json = boost::json;

// "arn:aws:sqs:us-east-1:000000000000:jobs" → "us-east-1".
std::string region_of(const std::string& arn) {
  std::size_t begin = 0;
  for (int colons = 0; colons < 3; ++colons) {
    begin = arn.find(':', begin);
    if (begin == std::string::npos) return {};
    ++begin;
  }
  return arn.substr(begin, arn.find(':', begin) - begin);
}

// An error of the function, which the runtime interface reports in a header or in the body alone.
std::string function_error(const net::ClientResponse& response, const json::value& body) {
  const json::object* object = body.if_object();
  const bool in_body = object != nullptr && object->contains("errorMessage") &&
                       (object->contains("errorType") || object->contains("stackTrace"));
  if (response.header("X-Amz-Function-Error") == nullptr && !in_body) return {};
  return fmt::format("the function failed: {}", in_short(response.body));
}

}  // namespace

json::object lambda_record(const worker::TaskInformation& task) {
  json::object record;
  record["messageId"] = task.message_id;
  record["receiptHandle"] = task.receipt_handle;
  record["body"] = task.body;
  record["attributes"] = attributes_json(task);
  record["messageAttributes"] = message_attributes_json(task, true);
  if (const auto md5 = client::md5_of(task.message_attributes))
    record["md5OfMessageAttributes"] = *md5;
  record["md5OfBody"] = client::md5_of(task.body);
  record["eventSource"] = "aws:sqs";
  record["eventSourceARN"] = task.queue_arn;
  record["awsRegion"] = region_of(task.queue_arn);
  return record;
}

json::value record_for_filter(json::object record) {
  const json::string& body = record["body"].as_string();
  record["body"] = body_json({body.data(), body.size()});
  return record;
}

std::string lambda_event(const std::vector<std::string>& records) {
  return fmt::format("{{\"Records\":[{}]}}", fmt::join(records, ","));
}

Result<std::set<std::string>> failed_messages(const net::ClientResponse& response, bool partial,
                                              const std::set<std::string>& sent) {
  if (response.status != 200) return fail("the function's endpoint " + answer_in_words(response));
  boost::system::error_code error;
  const std::string& text = response.body;
  const bool empty = text.find_first_not_of(" \t\r\n") == std::string::npos;
  const json::value body = empty ? json::value() : json::parse(text, error);
  if (const std::string failure = function_error(response, body); !failure.empty())
    return fail(failure);
  if (!partial || body.is_null()) {
    if (partial && error) return fail("the function answered what is not JSON: " + in_short(text));
    return std::set<std::string>();
  }
  if (!body.is_object())
    return fail("the function answered JSON that is no object with \"batchItemFailures\": " +
                in_short(text));
  const json::value* failures = body.get_object().if_contains("batchItemFailures");
  if (failures == nullptr || failures->is_null()) return std::set<std::string>();
  if (!failures->is_array())
    return fail("the function's \"batchItemFailures\" is not a list: " + in_short(text));
  std::set<std::string> failed;
  for (const json::value& each : failures->get_array()) {
    const json::value* id =
        each.is_object() ? each.get_object().if_contains("itemIdentifier") : nullptr;
    if (id == nullptr || !id->is_string())
      return fail(
          "the function's \"batchItemFailures\" has an element without the text "
          "\"itemIdentifier\": " +
          in_short(text));
    const std::string name(id->get_string());
    if (!sent.contains(name))
      return fail(
          "the function's \"batchItemFailures\" names a message that was not in the batch: " +
          in_short(name));
    failed.insert(name);
  }
  return failed;
}

}  // namespace stanchion::runner
