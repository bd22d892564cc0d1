// Replies as lines of text.
#include <fmt/format.h>

#include <algorithm>

#include "tests/scenario/runner.h"

namespace stanchion::scenario {
namespace {

std::string hex_of(const std::optional<Md5>& md5) {
  return md5 ? to_hex(as_text(*md5)) : std::string();
}

std::string seconds_since(Instant start, Instant t) {
  const std::int64_t millis = (t - start).count();
  if (millis % 1000 == 0) return fmt::format("{}s", millis / 1000);
  return fmt::format("{}ms", millis);
}

}  // namespace

Runner::Lines Runner::ask(const Request& request) {
  const Reply reply = world_->ask(request);
  return reply ? print(*reply) : Lines{print(reply.error())};
}

std::string Runner::print(const Error& error) const {
  const std::string_view code = info_of(error.code).query_code;
  return printable(fmt::format("{}: {}", code, receipts_.replace_in(error.message)));
}

std::string Runner::print(const SentMessage& message) {
  std::string line = messages_.of(message.id.text());
  if (message.sequence_number)
    line += fmt::format(" seq={}", format_sequence_number(*message.sequence_number));
  if (message.attributes_md5) line += " attributes-md5=" + hex_of(message.attributes_md5);
  if (message.system_attributes_md5) line += " system-md5=" + hex_of(message.system_attributes_md5);
  return line;
}

std::string Runner::print(const ReceivedMessage& message) {
  const Content& content = *message.content;
  std::string line = fmt::format("{} {} {}", messages_.of(content.id().text()),
                                 receipts_.of(message.receipt_handle), printable(content.body()));
  const auto show = [&](std::string_view name, std::string value) {
    if (std::ranges::find(shown_, name) != shown_.end()) line += fmt::format(" {}={}", name, value);
  };
  show("count", fmt::format("{}", message.receive_count));
  show("group", std::string(content.group()));
  show("dedup", messages_.replace_in(std::string(content.deduplication_id())));
  show("seq", message.sequence_number ? format_sequence_number(*message.sequence_number) : "");
  show("sent", seconds_since(start_, content.sent()));
  show("first", seconds_since(start_, message.first_received));
  show("source", std::string(content.source_arn()));
  show("sender", std::string(content.sender()));
  show("trace", std::string(content.trace_header()));
  std::string attributes;
  for (const AttributeView& a : content.attributes())
    attributes += fmt::format("[{} {} {}]", a.name, a.data_type, printable(a.value));
  show("attributes", attributes);
  return line;
}

Runner::Lines Runner::print(const ReceiveMessageResult& result) {
  Lines lines;
  for (const ReceivedMessage& message : result.messages) lines.push_back(print(message));
  if (!lines.empty()) return lines;
  const auto wait = std::chrono::duration_cast<std::chrono::seconds>(result.wait).count();
  return {wait == 0 ? "nothing" : fmt::format("nothing, may wait {}s", wait)};
}

std::string Runner::print(const ListMessageMoveTasksResult::Task& task) {
  static constexpr std::string_view kStatus[] = {"?",          "RUNNING",   "COMPLETED",
                                                 "CANCELLING", "CANCELLED", "FAILED"};
  std::string line = std::string(kStatus[static_cast<std::size_t>(task.status)]);
  line += fmt::format(" {}/{}", task.moved, task.to_move);
  if (task.task_handle) line += " " + tasks_.of(*task.task_handle);
  line += " from=" + task.source_arn;
  if (task.destination_arn) line += " to=" + *task.destination_arn;
  if (task.max_messages_per_second) line += fmt::format(" rate={}", *task.max_messages_per_second);
  if (task.failure_reason) line += " because=" + *task.failure_reason;
  return line + " started=" + seconds_since(start_, task.started);
}

Runner::Lines Runner::print(const ReplyValue& value) {
  Lines lines;
  const auto failures = [&](const std::vector<BatchFailure>& failed) {
    for (const BatchFailure& f : failed) lines.push_back(f.id + ": " + print(f.error));
  };
  const auto pairs = [&](const StringMap& map) {
    for (const auto& [name, text] : map) lines.push_back(printable(name + "=" + text));
    if (map.empty()) lines.push_back("none");
  };
  std::visit(
      [&](const auto& v) {
        using V = std::remove_cvref_t<decltype(v)>;
        if constexpr (std::is_same_v<V, NoResult>) {
          lines.push_back("ok");
        } else if constexpr (std::is_same_v<V, QueueUrlResult>) {
          lines.push_back(v.queue.name);
        } else if constexpr (std::is_same_v<V, QueueListResult>) {
          for (const QueueRef& queue : v.queues) lines.push_back(queue.name);
          if (v.queues.empty()) lines.push_back("none");
          if (v.next_token) lines.push_back("token=" + *v.next_token);
        } else if constexpr (std::is_same_v<V, QueueAttributesResult>) {
          pairs(v.attributes);
        } else if constexpr (std::is_same_v<V, QueueTagsResult>) {
          pairs(v.tags);
        } else if constexpr (std::is_same_v<V, SentMessage>) {
          lines.push_back(print(v));
        } else if constexpr (std::is_same_v<V, SendMessageBatchResult>) {
          for (const auto& s : v.successful) lines.push_back(s.id + ": " + print(s.message));
          failures(v.failed);
        } else if constexpr (std::is_same_v<V, ReceiveMessageResult>) {
          lines = print(v);
        } else if constexpr (std::is_same_v<V, BatchResult>) {
          for (const std::string& id : v.successful) lines.push_back(id + ": ok");
          failures(v.failed);
        } else if constexpr (std::is_same_v<V, StartMessageMoveTaskResult>) {
          lines.push_back(tasks_.of(v.task_handle));
        } else if constexpr (std::is_same_v<V, CancelMessageMoveTaskResult>) {
          lines.push_back(fmt::format("moved {}", v.moved));
        } else if constexpr (std::is_same_v<V, ListMessageMoveTasksResult>) {
          for (const auto& task : v.tasks) lines.push_back(print(task));
          if (v.tasks.empty()) lines.push_back("none");
        } else {
          lines.push_back("not a reply of SQS");  // No script asks for an extension.
        }
      },
      value);
  return lines;
}

}  // namespace stanchion::scenario
