// What the auditor checks about queues: that they exist, that their settings read as they were
// written, that their counts add up, and that move tasks move no more messages than there are.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "base/text.h"
#include "broker/admission.h"
#include "sim/auditor.h"

namespace stanchion::sim {
namespace {

template <class T>
concept OnQueue = requires(const T& request) {
  { request.queue } -> std::convertible_to<const QueueRef&>;
};

}  // namespace

void Auditor::write_settings(Call& call, const QueueRef& ref, const StringMap& attributes,
                             bool creating) {
  Queue& target = queue(ref.name);
  const auto number = [&](const char* name, Register<std::int64_t>& setting) {
    if (const auto found = attributes.find(name); found != attributes.end())
      setting.write(call.op, static_cast<std::int64_t>(parse_decimal(found->second).value()));
  };
  number("VisibilityTimeout", target.visibility);
  number("DelaySeconds", target.delay);
  number("MessageRetentionPeriod", target.retention);
  if (const auto scope = attributes.find("DeduplicationScope"); scope != attributes.end())
    target.by_group.write(call.op, scope->second == "messageGroup");
  const auto policy = attributes.find("RedrivePolicy");
  if (policy == attributes.end()) {
    if (creating) target.redrive.write(call.op, std::nullopt, false);
    return;
  }
  if (policy->second.empty()) return target.redrive.write(call.op, std::nullopt);
  const auto parsed = boost::json::parse(policy->second).as_object();
  const auto dead = parse_queue_arn(std::string(parsed.at("deadLetterTargetArn").as_string()));
  const Redrive redrive{dead->name,
                        static_cast<std::uint32_t>(parsed.at("maxReceiveCount").as_int64())};
  target.redrive.write(call.op, redrive);
  queue(redrive.target).sources.insert(target.name);
}

void Auditor::check_existence(const Call& call, const std::string& name) {
  bool possible = false;
  queue(name).exists.possible(call.op->from, call.op->to, [&](bool e) { possible |= e; });
  if (!possible)
    broken("A10", fmt::format("{} succeeded on {}, which does not exist",
                              name_of(action_of(call.request)), name));
}

void Auditor::check_refusal(const Call& call, const Error& error) {
  const Action action = action_of(call.request);
  switch (error.code) {
    case ErrorCode::kServiceUnavailable:
      ++statistics_.refused_full;
      if (!call.impaired && !waited_through_a_jump(call))
        broken("A1",
               fmt::format("{} was refused with 503 though nothing is wrong with the disk: {}",
                           name_of(action), error.message));
      return;
    // A FIFO queue remembers more than memory has room for. The refused call changed nothing, which
    // all other checks hold.
    case ErrorCode::kRequestThrottled: {
      const auto* receive = std::get_if<ReceiveMessage>(&call.request);
      if (!broker::is_send(action) && !(receive != nullptr && receive->attempt_id))
        broken("A10", fmt::format("{} was throttled: {}", name_of(action), error.message));
      return;
    }
    // Its queue is set aside.
    case ErrorCode::kInternalFailure:
      ++statistics_.refused_failing;
      if (!call.failing)
        broken("A10", fmt::format("{} was refused with 500 though the store can be read: {}",
                                  name_of(action), error.message));
      return;
    case ErrorCode::kQueueDoesNotExist: {
      bool missing = false;
      std::visit(
          [&](const auto& r) {
            if constexpr (OnQueue<std::remove_cvref_t<decltype(r)>>)
              queue(r.queue.name).exists.possible(call.op->from, call.op->to, [&](bool e) {
                missing |= !e;
              });
          },
          call.request);
      if (!missing)
        broken("A10", fmt::format("{} was told that its queue does not exist, but it does",
                                  name_of(action)));
      return;
    }
    case ErrorCode::kInvalidParameterValue:
      if (const auto* receive = std::get_if<ReceiveMessage>(&call.request))
        check_refused_choice(call, *receive);
      return;
    case ErrorCode::kQueueNameExists:
    case ErrorCode::kReceiptHandleIsInvalid:
    case ErrorCode::kResourceNotFound:
    case ErrorCode::kInvalidAttributeValue:
      return;
    default:
      broken("A10",
             fmt::format("{} was refused for no good reason: {}", name_of(action), error.message));
  }
}

void Auditor::settle(Call& call, const GetQueueAttributes& r, const ReplyValue& reply) {
  const auto& attributes = std::get<QueueAttributesResult>(reply).attributes;
  Queue& target = queue(r.queue.name);
  const auto check = [&](const char* name, const Register<std::int64_t>& setting) {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return;
    const auto value = static_cast<std::int64_t>(parse_decimal(found->second).value());
    bool possible = false;
    setting.possible(call.op->from, call.op->to, [&](std::int64_t v) { possible |= v == value; });
    if (!possible)
      broken("A10", fmt::format("{} of {} reads {}, which nobody wrote or which was overwritten",
                                name, target.name, value));
  };
  check("VisibilityTimeout", target.visibility);
  check("DelaySeconds", target.delay);
  check("MessageRetentionPeriod", target.retention);
  check_counts(call, target.name, attributes);
}

void Auditor::check_counts(const Call& call, const std::string& name, const StringMap& attributes) {
  std::uint64_t total = 0;
  for (const char* part : {"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible",
                           "ApproximateNumberOfMessagesDelayed"})
    total += parse_decimal(attributes.at(part)).value();
  std::uint64_t least = 0, most = 0;
  for (const Message& message : messages_) {
    if (was_there_before(message, *call.op) && surely_in(message, name, nullptr)) ++least;
    if (possibly_in(message, name) && !(message.gone && *message.gone < call.op->from)) ++most;
  }
  ++statistics_.counts_checked;
  if (total < least || total > most)
    broken("A6", fmt::format("{} says that it has {} messages; it must have between {} and {}",
                             name, total, least, most));
}

void Auditor::settle(Call& call, const ListQueues&, const ReplyValue& reply) {
  const auto& list = std::get<QueueListResult>(reply).queues;
  for (const auto& [name, target] : queues_) {
    bool may_exist = false, may_be_missing = false;
    target.exists.possible(call.op->from, call.op->to,
                           [&](bool e) { (e ? may_exist : may_be_missing) = true; });
    const bool listed = std::ranges::find(list, name, &QueueRef::name) != list.end();
    if (listed ? !may_exist : !may_be_missing)
      broken("A10", fmt::format("{} is {}listed though it {}", name, listed ? "" : "not ",
                                listed ? "does not exist" : "exists"));
  }
}

void Auditor::settle(Call& call, const ListMessageMoveTasks& r, const ReplyValue& reply) {
  const auto source = parse_queue_arn(r.source_arn.value());
  const auto& tasks = std::get<ListMessageMoveTasksResult>(reply).tasks;
  for (const auto& task : tasks)
    if (task.moved > task.to_move)
      broken("A7", fmt::format("a move task of {} moved {} of {} messages", source->name,
                               task.moved, task.to_move));
  for (const auto& task : tasks)
    if (const auto found = cancelled_.find(task.task_handle.value_or(""));
        task.status == MoveTaskStatus::kRunning && found != cancelled_.end() &&
        found->second->before(*call.op))
      broken("A7", fmt::format("a move task of {} was cancelled and runs again", source->name));
  const bool running = std::ranges::any_of(
      tasks, [](const auto& task) { return task.status == MoveTaskStatus::kRunning; });
  if (running) {
    if (draining_) broken("A7", fmt::format("a move task of {} never ends", source->name));
    return;
  }
  // A task that was interrupted may have messages under way.
  if (tasks.empty() || tasks.front().status != MoveTaskStatus::kCompleted) return;
  for (MoveTask& task : queue(source->name).tasks)
    if (task.op->to < call.op->from) task.ended = std::min(task.ended, call.op->to);
}

void Auditor::settle(Call& call, const CancelMessageMoveTask& r, const ReplyValue&) {
  cancelled_.emplace(r.task_handle.value(), call.op);
}

}  // namespace stanchion::sim
