#include "sim/describe.h"

#include <fmt/format.h>

namespace stanchion::sim {
namespace {

// Bodies begin with their tag; the rest is filler.
std::string_view tag_of(std::string_view body) {
  return body.substr(0, body.find('.'));
}

std::string short_handle(const std::optional<std::string>& handle) {
  if (!handle) return "-";
  return handle->substr(handle->size() - std::min<std::size_t>(handle->size(), 8));
}

std::string describe(const OutgoingMessage& m) {
  std::string text(tag_of(m.body.value_or("")));
  if (m.group_id) text += fmt::format(" group {}", *m.group_id);
  if (m.deduplication_id) text += fmt::format(" dedup {}", m.deduplication_id->substr(0, 12));
  if (m.delay_seconds) text += fmt::format(" delay {}", *m.delay_seconds);
  return text;
}

std::string describe(const StringMap& map) {
  std::string text;
  for (const auto& [key, value] : map) text += fmt::format(" {}={}", key, value);
  return text;
}

struct RequestText {
  std::string operator()(const SendMessage& r) const {
    return fmt::format("{} {}", r.queue.name, describe(r.message));
  }
  std::string operator()(const SendMessageBatch& r) const {
    std::string text = r.queue.name;
    for (const auto& entry : r.entries) text += fmt::format(" [{}]", describe(entry.message));
    return text;
  }
  std::string operator()(const ReceiveMessage& r) const {
    std::string text =
        fmt::format("{} most {} visibility {} wait {} attempt {}", r.queue.name,
                    r.max_number_of_messages.value_or(1), r.visibility_timeout.value_or(-1),
                    r.wait_time_seconds.value_or(0), r.attempt_id.value_or("-"));
    for (const std::string& position : r.positions) text += " chosen " + short_handle(position);
    return text;
  }
  std::string operator()(const DeleteMessage& r) const {
    return fmt::format("{} {}", r.queue.name, short_handle(r.receipt_handle));
  }
  std::string operator()(const DeleteMessageBatch& r) const {
    std::string text = r.queue.name;
    for (const auto& entry : r.entries) text += " " + short_handle(entry.receipt_handle);
    return text;
  }
  std::string operator()(const ChangeMessageVisibility& r) const {
    return fmt::format("{} {} to {}", r.queue.name, short_handle(r.receipt_handle),
                       r.visibility_timeout.value_or(-1));
  }
  std::string operator()(const ChangeMessageVisibilityBatch& r) const {
    std::string text = r.queue.name;
    for (const auto& entry : r.entries)
      text += fmt::format(" {} to {}", short_handle(entry.receipt_handle),
                          entry.visibility_timeout.value_or(-1));
    return text;
  }
  std::string operator()(const CreateQueue& r) const {
    return r.queue.name + describe(r.attributes);
  }
  std::string operator()(const SetQueueAttributes& r) const {
    return r.queue.name + describe(r.attributes);
  }
  std::string operator()(const StartMessageMoveTask& r) const {
    return fmt::format("{} to {} at {}/s", r.source_arn.value_or("-"),
                       r.destination_arn.value_or("-"), r.max_messages_per_second.value_or(0));
  }
  std::string operator()(const ListMessageMoveTasks& r) const { return r.source_arn.value_or("-"); }
  std::string operator()(const auto& r) const {
    if constexpr (requires { r.queue.name; }) return r.queue.name;
    return {};
  }
};

struct ReplyText {
  std::string operator()(const SentMessage& r) const {
    return fmt::format("{} seq {}", r.id.text(), r.sequence_number.value_or(Seq()).value());
  }
  std::string operator()(const SendMessageBatchResult& r) const {
    std::string text;
    for (const auto& entry : r.successful) text += fmt::format("[{}] ", (*this)(entry.message));
    return text + fmt::format("{} failed", r.failed.size());
  }
  std::string operator()(const ReceiveMessageResult& r) const {
    std::string text = fmt::format("{} messages", r.messages.size());
    for (const auto& m : r.messages)
      text += fmt::format(" [{} receive {} handle {} seq {}]", tag_of(m.content->body()),
                          m.receive_count, short_handle(m.receipt_handle),
                          m.sequence_number.value_or(Seq()).value());
    return text;
  }
  std::string operator()(const StanchionPeekResult& r) const {
    std::string text = fmt::format("{} messages", r.messages.size());
    for (const auto& m : r.messages)
      text += fmt::format(" [{} state {} receive {} position {}]", tag_of(m.content->body()),
                          static_cast<int>(m.state), m.receive_count, short_handle(m.position));
    return text + (r.next_token ? " …" : "");
  }
  std::string operator()(const BatchResult& r) const {
    return fmt::format("{} done, {} failed", r.successful.size(), r.failed.size());
  }
  std::string operator()(const QueueAttributesResult& r) const {
    std::string text;
    for (const auto& [key, value] : r.attributes)
      if (key.starts_with("Approximate")) text += fmt::format("{} {} ", key.substr(11), value);
    return text;
  }
  std::string operator()(const QueueListResult& r) const {
    std::string text;
    for (const QueueRef& queue : r.queues) text += queue.name + " ";
    return text;
  }
  std::string operator()(const ListMessageMoveTasksResult& r) const {
    std::string text;
    for (const auto& task : r.tasks)
      text += fmt::format("[status {} moved {} of {}] ", static_cast<int>(task.status), task.moved,
                          task.to_move);
    return text;
  }
  std::string operator()(const auto&) const { return "ok"; }
};

}  // namespace

std::string describe(const Request& request) {
  return fmt::format("{} {}", name_of(action_of(request)), std::visit(RequestText{}, request));
}

std::string describe(const Reply& reply) {
  if (!reply) return "refused: " + reply.error().message.substr(0, 100);
  return std::visit(ReplyText{}, *reply);
}

}  // namespace stanchion::sim
