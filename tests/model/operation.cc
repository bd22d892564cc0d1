#include "tests/model/operation.h"

#include <fmt/format.h>

namespace stanchion::reference {
namespace {

constexpr std::array<std::string_view, 6> kSettingNames{
    "ContentBasedDeduplication", "DeduplicationScope", "DelaySeconds",
    "MessageRetentionPeriod",    "RedrivePolicy",      "VisibilityTimeout"};

constexpr std::array<std::string_view, 25> kKindNames{
    "create",  "delete-queue", "purge",      "set",         "get",
    "send",    "send-batch",   "receive",    "delete",      "delete-batch",
    "change",  "change-batch", "start-move", "cancel-move", "list-moves",
    "peek",    "peek-page",    "choose",     "tick",        "restart",
    "deliver", "settle",       "checkpoint", "durable",     "evict"};

std::string describe(const Pick& pick) {
  static constexpr std::array<std::string_view, 5> kNames{"own", "any", "garbage", "forged",
                                                          "missing"};
  std::string text = fmt::format("receipt={}", kNames[static_cast<std::size_t>(pick.kind)]);
  if (pick.kind != Pick::Kind::kGarbage && pick.kind != Pick::Kind::kMissing)
    text += fmt::format("[-{}]", pick.back + 1);
  if (pick.timeout) text += fmt::format(" timeout={}s", *pick.timeout);
  return text;
}

std::string describe(const Outgoing& message) {
  std::string text = message.body == 0 ? "no-body" : fmt::format("body-{}", message.body);
  if (message.delay) text += fmt::format(" delay={}s", *message.delay);
  if (message.group) text += fmt::format(" group=g{}", *message.group);
  if (message.deduplication) text += fmt::format(" dedup=d{}", *message.deduplication);
  return text;
}

std::string describe_duration(std::int64_t millis) {
  if (millis % 1000 != 0) return fmt::format("{}ms", millis);
  return fmt::format("{}s", millis / 1000);
}

// Copies of `operation`, each with one element of a list left out.
template <class List>
void without_each(std::vector<Operation>& out, const Operation& operation, List Operation::*list) {
  for (std::size_t i = 0; i < (operation.*list).size(); ++i) {
    Operation copy = operation;
    (copy.*list).erase((copy.*list).begin() + static_cast<std::ptrdiff_t>(i));
    out.push_back(std::move(copy));
  }
}

template <class Change>
void changed(std::vector<Operation>& out, const Operation& operation, Change&& change) {
  Operation copy = operation;
  change(copy);
  out.push_back(std::move(copy));
}

void with_fewer_parts(std::vector<Operation>& out, const Operation& operation) {
  without_each(out, operation, &Operation::settings);
  const bool batch = operation.kind == Operation::Kind::kSendBatch ||
                     operation.kind == Operation::Kind::kDeleteBatch ||
                     operation.kind == Operation::Kind::kChangeBatch;
  if (operation.kind == Operation::Kind::kChoose && operation.picks.size() > 1)
    without_each(out, operation, &Operation::picks);
  if (!batch) return;
  without_each(out, operation, &Operation::messages);
  without_each(out, operation, &Operation::picks);
  if (operation.messages.size() + operation.picks.size() != 1) return;
  changed(out, operation, [](Operation& o) {
    using enum Operation::Kind;
    o.kind = o.kind == kSendBatch ? kSend : o.kind == kDeleteBatch ? kDelete : kChange;
    o.ids = Operation::Ids::kGood;
  });
}

void with_simpler_messages(std::vector<Operation>& out, const Operation& operation) {
  for (std::size_t i = 0; i < operation.messages.size(); ++i) {
    const Outgoing& message = operation.messages[i];
    if (message.delay) changed(out, operation, [&](Operation& o) { o.messages[i].delay.reset(); });
    if (message.group) changed(out, operation, [&](Operation& o) { o.messages[i].group.reset(); });
    if (message.group.value_or(0) > 1)
      changed(out, operation, [&](Operation& o) { o.messages[i].group = 1; });
    if (message.deduplication)
      changed(out, operation, [&](Operation& o) { o.messages[i].deduplication.reset(); });
  }
  for (std::size_t i = 0; i < operation.picks.size(); ++i)
    if (operation.picks[i].back > 0)
      changed(out, operation, [&](Operation& o) { o.picks[i].back = 0; });
}

void with_smaller_numbers(std::vector<Operation>& out, const Operation& operation) {
  if (operation.visibility) changed(out, operation, [](Operation& o) { o.visibility.reset(); });
  if (operation.attempt) changed(out, operation, [](Operation& o) { o.attempt.reset(); });
  if (operation.rate) changed(out, operation, [](Operation& o) { o.rate.reset(); });
  if (operation.target) changed(out, operation, [](Operation& o) { o.target.reset(); });
  if (operation.most) changed(out, operation, [](Operation& o) { o.most.reset(); });
  if (operation.full) changed(out, operation, [](Operation& o) { o.full = false; });
  if (operation.steps > 1) changed(out, operation, [](Operation& o) { o.steps = 1; });
  for (const std::int64_t less : {operation.amount / 1000 * 1000, operation.amount / 2})
    if (less < operation.amount) changed(out, operation, [&](Operation& o) { o.amount = less; });
}

}  // namespace

QueueRef ref_of(std::string_view name) {
  return {"000000000000", "us-east-1", std::string(name)};
}

QueueRef ref_of(int queue) {
  return ref_of(kQueueNames[static_cast<std::size_t>(queue)]);
}

std::string Setting::name() const {
  return std::string(kSettingNames[static_cast<std::size_t>(kind)]);
}

std::string Setting::text() const {
  switch (kind) {
    case Kind::kContentBasedDeduplication:
      return value != 0 ? "true" : "false";
    case Kind::kDeduplicationScope:
      return value != 0 ? "messageGroup" : "queue";
    case Kind::kRedrivePolicy:
      if (value == 0) return "";
      return fmt::format(R"({{"deadLetterTargetArn":"{}","maxReceiveCount":{}}})",
                         ref_of(target).arn(), value);
    case Kind::kDelaySeconds:
    case Kind::kMessageRetentionPeriod:
    case Kind::kVisibilityTimeout:
      return fmt::to_string(value);
  }
  return "";
}

OutgoingMessage Outgoing::request() const {
  OutgoingMessage message;
  if (body != 0) message.body = fmt::format("body-{}", body);
  message.delay_seconds = delay;
  if (group) message.group_id = *group == 0 ? "" : fmt::format("g{}", *group);
  if (deduplication) message.deduplication_id = fmt::format("d{}", *deduplication);
  return message;
}

std::string Operation::describe() const {
  std::string text(kKindNames[static_cast<std::size_t>(kind)]);
  if (kind == Kind::kTick) {
    text += " " + describe_duration(amount);
    return steps == 1 ? text : text + fmt::format(" in {} steps", steps);
  }
  if (kind == Kind::kRestart || kind == Kind::kCheckpoint || kind == Kind::kDurable) return text;
  if (kind == Kind::kDeliver || kind == Kind::kSettle || kind == Kind::kEvict)
    return text + fmt::format(" {}", amount);
  text += fmt::format(" {}", kQueueNames[static_cast<std::size_t>(queue)]);
  if (kind == Kind::kPeek) text += fmt::format(" choice={}", amount);
  for (const Setting& setting : settings)
    text += fmt::format(
        " {}={}", setting.name(),
        setting.kind == Setting::Kind::kRedrivePolicy && setting.value != 0
            ? fmt::format("{}×{}", kQueueNames[static_cast<std::size_t>(setting.target)],
                          setting.value)
            : setting.text());
  for (const Outgoing& message : messages) text += " {" + reference::describe(message) + "}";
  for (const Pick& pick : picks) text += " {" + reference::describe(pick) + "}";
  if (most) text += fmt::format(" max={}", *most);
  if (visibility) text += fmt::format(" visibility={}s", *visibility);
  if (attempt) text += fmt::format(" attempt=a{}", *attempt);
  if (full) text += " while the disk is full";
  if (target) text += fmt::format(" to {}", kQueueNames[static_cast<std::size_t>(*target)]);
  if (rate) text += fmt::format(" rate={}/s", *rate);
  if (ids == Ids::kRepeated) text += " with a repeated id";
  if (ids == Ids::kForbidden) text += " with a forbidden id";
  return text;
}

std::string Sequence::describe() const {
  std::string text = strict ? "strict\n" : "";
  text += fmt::format("chunks of {}\n", chunk_messages);
  text += fmt::format("decisions of {}\n", decision_messages);
  for (const Operation& operation : operations) text += operation.describe() + "\n";
  return text;
}

std::vector<Operation> simpler(const Operation& operation) {
  std::vector<Operation> out;
  with_fewer_parts(out, operation);
  with_simpler_messages(out, operation);
  with_smaller_numbers(out, operation);
  return out;
}

}  // namespace stanchion::reference
