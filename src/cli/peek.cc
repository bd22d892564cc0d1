#include "cli/peek.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/exit_codes.h"
#include "base/printable.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/page_tokens.h"
#include "cli/program.h"
#include "client/client.h"
#include "model/limits.h"

namespace stanchion::cli {
namespace {

namespace json = boost::json;

struct PeekSettings {
  std::string queue_url;
  std::vector<std::string> states;
  std::string group;
  std::string search;
  std::size_t most = 20;
  bool groups = false;
  bool json = false;
};

// 90 s, 12 min, 3 h, 2 d.
std::string span_of(std::int64_t millis) {
  const std::int64_t seconds = std::max<std::int64_t>(0, millis) / 1000;
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 2 * 3600) return fmt::format("{} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} d", seconds / (24 * 3600));
}

std::int64_t now_millis() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

template <class Text>
const std::string& text_of(const Text& attributes, const char* name) {
  static const std::string none;
  const auto found = attributes.find(name);
  return found == attributes.end() ? none : found->second;
}

json::object object_of(const client::StringMap& map) {
  json::object object;
  for (const auto& [name, value] : map) object[name] = value;
  return object;
}

std::string line_of_json(const client::PeekedMessage& message) {
  json::object line{{"MessageId", message.message_id},
                    {"StanchionPosition", message.stanchion_position},
                    {"State", message.state},
                    {"EnteredTimestamp", message.entered_timestamp},
                    {"ExpiresTimestamp", message.expires_timestamp}};
  if (message.visible_timestamp) line["VisibleTimestamp"] = *message.visible_timestamp;
  if (message.last_receive_timestamp)
    line["LastReceiveTimestamp"] = *message.last_receive_timestamp;
  line["Body"] = message.body;
  line["Attributes"] = object_of(message.attributes);
  json::object attributes;
  for (const auto& [name, value] : message.message_attributes) {
    json::object one{{"DataType", value.data_type}};
    if (value.string_value) one["StringValue"] = *value.string_value;
    if (value.binary_value) one["BinaryValue"] = to_base64(*value.binary_value);
    attributes[name] = std::move(one);
  }
  line["MessageAttributes"] = std::move(attributes);
  return printable_json(json::serialize(line));
}

std::string lines_of_text(const client::PeekedMessage& message) {
  const std::int64_t now = now_millis();
  std::string head = fmt::format("{}  {:<8}  {} old", shown(message.message_id),
                                 shown(message.state), span_of(now - message.entered_timestamp));
  if (message.visible_timestamp)
    head += fmt::format(", visible in {}", span_of(*message.visible_timestamp - now));
  if (const std::string& count = text_of(message.attributes, "ApproximateReceiveCount");
      count != "0")
    head += fmt::format(", received {}x", shown(count));
  if (const std::string& group = text_of(message.attributes, "MessageGroupId"); !group.empty())
    head += fmt::format(", group {}", shown(group));
  if (const std::string& from = text_of(message.attributes, "DeadLetterQueueSourceArn");
      !from.empty())
    head += fmt::format(", from {}", shown(from));
  return fmt::format("{}\n    {}", head, shown(message.body));
}

std::string line_of_json(const client::MessageGroup& group) {
  json::object line{{"MessageGroupId", group.message_group_id},
                    {"Waiting", group.waiting},
                    {"Delayed", group.delayed},
                    {"InFlight", group.in_flight}};
  const auto add = [&](const char* name, const auto& value) {
    if (value) line[name] = *value;
  };
  add("InFlightPercent", group.in_flight_percent);
  add("BusyPercent", group.busy_percent);
  add("Noisy", group.noisy);
  add("Locked", group.locked);
  add("LockedBySequenceNumber", group.locked_by_sequence_number);
  add("LockedByMessageId", group.locked_by_message_id);
  add("LockedSinceTimestamp", group.locked_since_timestamp);
  add("LockedUntilTimestamp", group.locked_until_timestamp);
  add("LockedByReceiveCount", group.locked_by_receive_count);
  return printable_json(json::serialize(line));
}

std::string lines_of_text(const client::MessageGroup& group) {
  std::string line = fmt::format(
      "{:<32}  {} waiting, {} in flight",
      group.message_group_id.empty() ? "(without a group)" : shown(group.message_group_id),
      group.waiting + group.delayed, group.in_flight);
  if (group.noisy)
    line +=
        fmt::format(" ({} %), {} % of the consumers' time{}", group.in_flight_percent.value_or(0),
                    group.busy_percent.value_or(0), *group.noisy ? ", noisy" : "");
  if (group.locked.value_or(false)) {
    const std::int64_t now = now_millis();
    line += fmt::format(
        ", locked by {} since {}, for {} more",
        shown(group.locked_by_message_id ? *group.locked_by_message_id
                                         : group.locked_by_sequence_number.value_or("a message")),
        span_of(now - group.locked_since_timestamp.value_or(now)),
        span_of(group.locked_until_timestamp.value_or(now) - now));
  }
  return line;
}

// Prints items of one page after the other until `most` were printed; `call` makes the request,
// `items` takes the list out of its result.
template <class Request, class Call, class Items>
int print_all(const PeekSettings& settings, Request request, std::int64_t page_max,
              const Call& call, const Items& items) {
  std::size_t left = settings.most == 0 ? SIZE_MAX : settings.most;
  PageTokens tokens;
  while (left > 0) {
    request.max_results =
        static_cast<std::int64_t>(std::min(left, static_cast<std::size_t>(page_max)));
    auto outcome = call(request);
    if (!outcome) return give_up(printable(outcome.error().to_string()), kExitFailed);
    for (const auto& item : items(*outcome)) {
      if (left == 0) break;  // A server that gives more than it was asked for.
      fmt::print("{}\n", settings.json ? line_of_json(item) : lines_of_text(item));
      --left;
    }
    if (!outcome->next_token) return kExitOk;
    if (const std::string why = tokens.endless(*outcome->next_token, items(*outcome).size());
        !why.empty())
      return give_up(why, kExitFailed);
    request.next_token = outcome->next_token;
  }
  if (!settings.json) fmt::print("There may be more: --most 0 shows all.\n");
  return kExitOk;
}

int peek(const PeekSettings& settings) {
  auto client = client::Client::open(client::with_endpoint_of_queue({}, settings.queue_url));
  if (!client) return complain(client.error().to_string()), kExitSettings;
  if (settings.groups)
    return print_all(
        settings, client::StanchionGroupsRequest{.queue_url = settings.queue_url},
        limits::kGroupsMax, [&](const auto& request) { return client->stanchion_groups(request); },
        [](const auto& result) -> const auto& { return result.groups; });
  client::StanchionPeekRequest request{.queue_url = settings.queue_url, .states = settings.states};
  if (!settings.group.empty()) request.message_group_id = settings.group;
  if (!settings.search.empty()) request.search = settings.search;
  return print_all(
      settings, std::move(request), limits::kPeekMessagesMax,
      [&](const auto& one) { return client->stanchion_peek(one); },
      [](const auto& result) -> const auto& { return result.messages; });
}

}  // namespace

void add_peek(Program& program) {
  const auto settings = std::make_shared<PeekSettings>();
  Command command = program.add("peek", "Show the messages of a queue without receiving them",
                                [settings] { return peek(*settings); });
  const auto option = [&](const char* flag, auto& value, const char* kind, const char* help) {
    return command.option(flag, value, help).value(kind);
  };
  option("--queue-url", settings->queue_url, "URL", "The queue").required();
  option("--state", settings->states, "Visible|Delayed|InFlight",
         "Only messages in this state; may be repeated")
      .one_of({"Visible", "Delayed", "InFlight"});
  option("--group", settings->group, "ID", "Only messages of this group");
  option("--search", settings->search, "TEXT",
         "Only messages with this text in their body, attributes, group or deduplication id");
  option("--most", settings->most, "NUMBER", "Print at most this many; 0: all").with_default();
  command.flag("--groups", settings->groups,
               "Print the queue's groups instead: the messages of each, and which one locks it");
  command.flag("--json", settings->json, "Print one JSON object per line");
  command.notes(
      "No count, timeout or order changes: consumers do not notice. Works with Stanchion only,\n"
      "and not with --strict. Credentials and region come from the environment, as for the AWS\n"
      "CLI; with accounts, you need permission to receive from the queue.\n"
      "Example:\n"
      "  stanchion peek --queue-url http://127.0.0.1:9324/000000000000/orders --state InFlight");
}

}  // namespace stanchion::cli
