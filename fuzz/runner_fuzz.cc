// Any bytes as what `stanchion work` reads: a line of a process, the answer of a function, a cron.yaml,
// a pattern and the message that it is matched with.
#include <boost/json.hpp>

#include "base/check.h"
#include "fuzz/fuzz.h"
#include "runner/cron.h"
#include "runner/filter.h"
#include "runner/lambda_event.h"
#include "runner/line_protocol.h"

namespace stanchion::fuzz {
namespace {

using namespace stanchion::runner;

void read_line(std::string_view text) {
  const auto answer = read_answer(text);
  CHECK(answer || !answer.error().message.empty(), "a refusal says why");
  if (answer) CHECK(answer->verdict || !answer->reason.empty(), "a verdict, or what is wrong");
}

void read_function_answer(std::string_view text) {
  const std::set<std::string> sent{"a", "b"};
  const auto failed = failed_messages({.status = 200, .body = std::string(text)}, true, sent);
  if (!failed) return;
  for (const std::string& id : *failed) CHECK(sent.contains(id), "only messages of the batch fail");
}

void read_cron(std::string_view text) {
  const auto tasks = parse_cron_yaml(text);
  if (!tasks) return;
  for (const PeriodicTask& task : *tasks) {
    const auto next = task.schedule.next(Minute{});
    CHECK(next && task.schedule.is_due(*next), "a schedule is due when it says");
  }
}

// The first line is the pattern, the rest a message.
void match(std::string_view text) {
  const std::size_t end = text.find('\n');
  const auto filter = Filter::parse(text.substr(0, end));
  if (!filter) return;
  const std::string_view body = end == std::string_view::npos ? "" : text.substr(end + 1);
  static_cast<void>(filter->matches(boost::json::object{{"body", body_json(body)}}));
}

}  // namespace

std::vector<std::string> seeds() {
  return {
      R"({"id":"7","verdict":"retry","delay":30,"reason":"busy"})",
      R"({"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"b"}]})",
      "version: 1 # c\ncron:\n - name: \"a\"\n   url: /a\n   schedule: '*/5 1-3,9 * feb MON'\n",
      "version: 1\ncron:\n -\n   schedule: \"@weekly\"\n   url: /b\n   name: b\n",
      R"({"body":{"a":[{"prefix":"x"},{"numeric":[">",0,"<=",5]}],"$or":[{"b":[1]},{"c":[null]}]}})"
      "\n{\"a\":[\"xy\",3],\"b\":1}",
      R"({"body":[{"anything-but":{"suffix":["a"]}},{"wildcard":"a*b\\*"},{"exists":false}]})"
      "\naxb*",
      R"({"body":{"ip":[{"cidr":"10.0.0.0/9"},{"equals-ignore-case":"A"}]}})"
      "\n{\"ip\":\"10.1.2.3\"}",
  };
}

}  // namespace stanchion::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stanchion::fuzz;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_line(text);
  read_function_answer(text);
  read_cron(text);
  match(text);
  return 0;
}
