#include "runner/line_protocol.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>

#include "runner/job_status.h"
#include "runner/message_json.h"

namespace stanchion::runner {
namespace {

namespace json = boost::json;
using worker::Verdict;

constexpr std::int64_t kDelayMax = 43'200;

std::string id_in(const json::object& answer) {
  const json::value* id = answer.if_contains("id");
  if (id == nullptr) return {};
  if (id->is_string()) return std::string(id->get_string());
  if (id->is_int64()) return fmt::to_string(id->get_int64());
  return {};
}

std::string text_in(const json::object& answer, std::string_view name) {
  const json::value* value = answer.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

}  // namespace

std::string line_of(std::string_view id, const worker::TaskInformation& task) {
  json::object line;
  line["id"] = id;
  line["messageId"] = task.message_id;
  line["queueName"] = task.queue_name;
  line["queueUrl"] = task.queue_url;
  line["queueArn"] = task.queue_arn;
  line["receiptHandle"] = task.receipt_handle;
  line["receiveCount"] = task.receive_count;
  line["poison"] = task.poison;
  line["attributes"] = attributes_json(task);
  line["messageAttributes"] = message_attributes_json(task, false);
  line["body"] = task.body;
  return json::serialize(line) + "\n";
}

Result<LineAnswer> read_answer(std::string_view line) {
  boost::system::error_code error;
  const json::value value = json::parse(json::string_view(line.data(), line.size()), error);
  if (error || !value.is_object())
    return fail(fmt::format(
        "wrote a line that is not a JSON object: \"{}\". Its standard output is for verdicts; "
        "what is for people belongs on standard error",
        in_short(line)));
  const json::object& object = value.get_object();
  LineAnswer answer{
      .id = id_in(object), .verdict = std::nullopt, .reason = text_in(object, "reason")};
  if (answer.id.empty())
    return fail(
        fmt::format("wrote an answer without the \"id\" of a message: \"{}\"", in_short(line)));
  const std::string verdict = text_in(object, "verdict");
  if (verdict == "done") {
    answer.verdict = Verdict::done();
  } else if (verdict == "reject") {
    answer.verdict = Verdict::reject();
  } else if (verdict != "retry") {
    answer.reason = fmt::format(
        "the answer \"{}\" has no \"verdict\" that is \"done\", \"retry\" or \"reject\"",
        in_short(line));
  } else if (const json::value* delay = object.if_contains("delay"); delay == nullptr) {
    answer.verdict = Verdict::retry_with_backoff();
  } else if (delay->is_int64() && delay->get_int64() >= 0 && delay->get_int64() <= kDelayMax) {
    answer.verdict = Verdict::retry(std::chrono::seconds(delay->get_int64()));
  } else {
    answer.reason = fmt::format(
        "the answer \"{}\" has a \"delay\" that is not a number of seconds from 0 to 43200",
        in_short(line));
  }
  return answer;
}

}  // namespace stanchion::runner
