#include "tests/scenario/runner.h"

#include <fmt/format.h>

#include <stdexcept>

namespace stanchion::scenario {
namespace {

using engine::TestWorld;

QueueRef queue_of(Arguments& arguments) {
  return TestWorld::ref(arguments.bare("a queue"));
}

// Attributes by name; dlq=<queue>:<count> is short for a RedrivePolicy.
StringMap attributes_of(Arguments& arguments) {
  StringMap out;
  if (const auto dlq = arguments.take("dlq")) {
    const auto parts = split_list(*dlq, ':');
    out["RedrivePolicy"] = fmt::format(R"({{"deadLetterTargetArn":"{}","maxReceiveCount":{}}})",
                                       TestWorld::ref(parts.at(0)).arn(), parts.at(1));
  }
  for (Word& word : arguments.take_prefixed("")) out[word.name] = word.value;
  return out;
}

StringMap tags_of(Arguments& arguments) {
  StringMap out;
  for (Word& word : arguments.take_prefixed("tag:")) out[word.name] = word.value;
  return out;
}

OutgoingMessage message_of(Arguments& arguments) {
  OutgoingMessage message;
  message.body = arguments.take("body");
  message.delay_seconds = arguments.take_number("delay");
  message.group_id = arguments.take("group");
  message.deduplication_id = arguments.take("dedup");
  for (Word& word : arguments.take_prefixed("attr:")) {
    MessageAttribute& attribute = message.attributes.emplace_back();
    attribute.name = word.name;
    const std::size_t colon = word.value.find(':');
    attribute.data_type = word.value.substr(0, colon);
    auto& field = attribute.data_type->starts_with("Binary") ? attribute.binary_value
                                                             : attribute.string_value;
    if (colon != std::string::npos) field = word.value.substr(colon + 1);
  }
  if (auto trace = arguments.take("trace")) {
    MessageAttribute& attribute = message.system_attributes.emplace_back();
    attribute.name = "AWSTraceHeader";
    attribute.data_type = "String";
    attribute.string_value = std::move(trace);
  }
  return message;
}

std::optional<std::string> arn_of(std::optional<std::string> queue) {
  if (!queue || queue->find(':') != std::string::npos) return queue;
  return TestWorld::ref(*queue).arn();
}

}  // namespace

Runner::Runner() : world_(std::make_unique<TestWorld>()), start_(world_->now()) {}

const std::string& Runner::Aliases::of(const std::string& value) {
  const auto [found, added] = names_.try_emplace(value);
  if (added) {
    found->second = fmt::format("{}{}", letter_, names_.size());
    values_[found->second] = value;
  }
  return found->second;
}

// Anything that is not an alias stands for itself.
std::string Runner::Aliases::value_of(const std::string& alias) const {
  const auto found = values_.find(alias);
  return found == values_.end() ? alias : found->second;
}

std::string Runner::Aliases::replace_in(std::string text) const {
  for (const auto& [value, name] : names_) {
    const std::size_t at = text.find(value);
    if (at != std::string::npos) text.replace(at, value.size(), name);
  }
  return text;
}

std::vector<std::string> Runner::run(std::string_view line) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string verb(line.substr(0, space));
  Arguments arguments(line.substr(space));
  bool is_directive = true;
  Lines reply = run_directive(verb, arguments, is_directive);
  if (!is_directive) {
    shown_ = split_list(arguments.take("show").value_or(""), ',');
    reply = ask(request_of(verb, arguments));
  }
  if (!arguments.done())
    throw std::runtime_error(fmt::format("{} does not take {}={}", verb,
                                         arguments.words().front().name,
                                         arguments.words().front().value));
  world_->engine().check_invariants();
  return reply;
}

Runner::Lines Runner::run_directive(const std::string& verb, Arguments& arguments, bool& known) {
  if (verb == "tick") return world_->tick(parse_duration(arguments.bare("a duration"))), Lines();
  if (verb == "jump") return world_->jump(parse_duration(arguments.bare("a duration"))), Lines();
  if (verb == "strict") return world_ = std::make_unique<TestWorld>(true), Lines();
  if (verb == "hold") {
    const std::string what = arguments.bare("transfers or settlements");
    world_->set_road(what == "transfers" ? TestWorld::Road::kClosed
                                         : TestWorld::Road::kNotSettling);
    return {};
  }
  if (verb == "release") return world_->set_road(TestWorld::Road::kOpen), Lines();
  if (verb == "restart") {
    if (!world_->restart()) throw std::runtime_error("replay gives another state");
    return {};
  }
  if (verb == "fill") return fill(arguments);
  if (verb == "take") return take(arguments, false);
  if (verb == "consume") return take(arguments, true);
  if (verb == "counts") return counts(arguments);
  known = false;
  return {};
}

// Many sends without a reply for each; groups=N spreads them over the groups g0 to g<N-1>.
Runner::Lines Runner::fill(Arguments& arguments) {
  SendMessage request{queue_of(arguments), "", {}};
  const std::int64_t count = std::stoll(arguments.bare("a count"));
  const auto groups = arguments.take_number("groups");
  request.message = message_of(arguments);
  const bool fifo = is_fifo_name(request.queue.name);
  if (!request.message.body) request.message.body = "x";
  for (std::int64_t i = 0; i < count; ++i) {
    if (groups) request.message.group_id = fmt::format("g{}", i % *groups);
    if (fifo) request.message.deduplication_id = fmt::format("fill-{}", ++filled_);
    world_->get<SentMessage>(request);
  }
  return {};
}

// Receives this many and prints their groups.
Runner::Lines Runner::take(Arguments& arguments, bool then_delete) {
  ReceiveMessage request;
  request.queue = queue_of(arguments);
  const std::int64_t count = std::stoll(arguments.bare("a count"));
  request.visibility_timeout = arguments.take_number("visibility");
  std::map<std::string, std::int64_t> by_group;
  std::int64_t taken = 0;
  while (taken < count) {
    request.max_number_of_messages = std::min<std::int64_t>(10, count - taken);
    const auto result = world_->get<ReceiveMessageResult>(request);
    if (result.messages.empty()) break;
    for (const ReceivedMessage& message : result.messages) {
      ++by_group[std::string(message.content->group())];
      ++taken;
      if (then_delete) world_->get<NoResult>(DeleteMessage{request.queue, message.receipt_handle});
    }
  }
  std::string line = fmt::format("{}", taken);
  constexpr std::size_t kGroupsToList = 10;
  if (by_group.size() > kGroupsToList)
    return {fmt::format("{} of {} groups", taken, by_group.size())};
  for (const auto& [group, n] : by_group)
    if (!group.empty()) line += fmt::format(" {}:{}", group, n);
  return {line};
}

Runner::Lines Runner::counts(Arguments& arguments) {
  world_->engine().advance(world_->now());
  const engine::Queue* queue = world_->engine().find(queue_of(arguments));
  if (queue == nullptr) throw std::runtime_error("no such queue");
  const engine::Counts& counts = queue->counts();
  std::string line = fmt::format("visible={} in-flight={} delayed={}", counts.visible,
                                 counts.in_flight, counts.delayed);
  if (!queue->fifo() && queue->lane_count() > 0)
    line += fmt::format(" tenants={} noisy={}", queue->lane_count(), queue->noisy_lane_count());
  return {line};
}

Request Runner::request_of(const std::string& verb, Arguments& arguments) {
  if (verb == "create") {
    CreateQueue request{queue_of(arguments), {}, tags_of(arguments)};
    request.attributes = attributes_of(arguments);
    return request;
  }
  if (verb == "drop") return DeleteQueue{queue_of(arguments)};
  if (verb == "url") return GetQueueUrl{queue_of(arguments)};
  if (verb == "purge") return PurgeQueue{queue_of(arguments)};
  if (verb == "get") {
    QueueRef queue = queue_of(arguments);
    return GetQueueAttributes{std::move(queue), arguments.all_bare()};
  }
  if (verb == "set") {
    QueueRef queue = queue_of(arguments);
    return SetQueueAttributes{std::move(queue), attributes_of(arguments)};
  }
  if (verb == "tag") {
    QueueRef queue = queue_of(arguments);
    TagQueue request{std::move(queue), {}};
    for (Word& word : arguments.take_prefixed("")) request.tags[word.name] = word.value;
    return request;
  }
  if (verb == "untag") {
    QueueRef queue = queue_of(arguments);
    return UntagQueue{std::move(queue), arguments.all_bare()};
  }
  if (verb == "tags") return ListQueueTags{queue_of(arguments)};
  if (verb == "permit")
    return AddPermission{queue_of(arguments), arguments.take("label"),
                         split_list(arguments.take("accounts").value_or(""), ','),
                         split_list(arguments.take("actions").value_or(""), ',')};
  if (verb == "revoke") return RemovePermission{queue_of(arguments), arguments.take("label")};
  return list_request_of(verb, arguments);
}

Request Runner::list_request_of(const std::string& verb, Arguments& arguments) {
  if (verb == "queues") {
    const QueueRef any = TestWorld::ref("");
    return ListQueues{any.account, any.region, arguments.take("prefix").value_or(""),
                      arguments.take_number("max"), arguments.take("token")};
  }
  if (verb == "sources")
    return ListDeadLetterSourceQueues{queue_of(arguments), arguments.take_number("max"),
                                      arguments.take("token")};
  return move_request_of(verb, arguments);
}

Request Runner::move_request_of(const std::string& verb, Arguments& arguments) {
  if (verb == "move")
    return StartMessageMoveTask{arn_of(arguments.bare("a source")), arn_of(arguments.take("to")),
                                arguments.take_number("rate")};
  if (verb == "tasks")
    return ListMessageMoveTasks{arn_of(arguments.bare("a source")), arguments.take_number("max")};
  if (verb == "cancel") return CancelMessageMoveTask{tasks_.value_of(arguments.bare("a task"))};
  return message_request_of(verb, arguments);
}

Request Runner::message_request_of(const std::string& verb, Arguments& arguments) {
  QueueRef queue = queue_of(arguments);
  const auto receipt = [&](const std::string& alias) { return receipts_.value_of(alias); };
  if (verb == "send") return SendMessage{std::move(queue), "AIDASENDER", message_of(arguments)};
  if (verb == "send-batch") {
    SendMessageBatch request{std::move(queue), "AIDASENDER", {}};
    for (Arguments& entry : arguments.split()) {
      auto id = entry.take("id");
      request.entries.push_back({std::move(id), message_of(entry)});
      if (!entry.done()) throw std::runtime_error("an entry has a word too many");
    }
    return request;
  }
  if (verb == "receive")
    return ReceiveMessage{std::move(queue),
                          split_list(arguments.take("names").value_or(""), ','),
                          {},
                          arguments.take_number("max"),
                          arguments.take_number("visibility"),
                          arguments.take_number("wait"),
                          arguments.take("attempt"),
                          {}};
  if (verb == "delete")
    return DeleteMessage{std::move(queue), receipt(arguments.bare("a receipt"))};
  if (verb == "delete-batch") {
    DeleteMessageBatch request{std::move(queue), {}};
    for (Word& word : arguments.take_prefixed("")) {
      auto& entry = request.entries.emplace_back();
      entry.id = word.name;
      if (!word.value.empty()) entry.receipt_handle = receipt(word.value);
    }
    return request;
  }
  if (verb == "change")
    return ChangeMessageVisibility{std::move(queue), receipt(arguments.bare("a receipt")),
                                   arguments.take_number("visibility")};
  if (verb == "change-batch") {
    ChangeMessageVisibilityBatch request{std::move(queue), {}};
    for (Word& word : arguments.take_prefixed("")) {
      const auto parts = split_list(word.value, ':');
      auto& entry = request.entries.emplace_back();
      entry.id = word.name;
      if (!parts.empty()) entry.receipt_handle = receipt(parts[0]);
      if (parts.size() > 1) entry.visibility_timeout = std::stoll(parts[1]);
    }
    return request;
  }
  throw std::runtime_error(fmt::format("no such verb: {}", verb));
}

}  // namespace stanchion::scenario
