#include "engine/routing.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "engine/rules/list_page.h"
#include "engine/task_handle.h"

namespace stanchion::engine {

std::optional<QueueRef> home_of(const Request& request) {
  return std::visit(
      [](const auto& r) -> std::optional<QueueRef> {
        using R = std::remove_cvref_t<decltype(r)>;
        if constexpr (std::is_same_v<R, StartMessageMoveTask> ||
                      std::is_same_v<R, ListMessageMoveTasks>) {
          return r.source_arn ? parse_queue_arn(*r.source_arn) : std::nullopt;
        } else if constexpr (std::is_same_v<R, CancelMessageMoveTask>) {
          const auto handle =
              r.task_handle ? parse_task_handle(*r.task_handle) : std::optional<TaskHandle>();
          return handle ? std::optional(handle->source) : std::nullopt;
        } else if constexpr (std::is_same_v<R, ListQueues> || std::is_same_v<R, StanchionAdvice>) {
          return std::nullopt;
        } else {
          return r.queue;
        }
      },
      request);
}

Needs needs_of(const Request& request) {
  Needs needs;
  if (const auto* create = std::get_if<CreateQueue>(&request)) {
    needs.target = redrive_target(create->attributes);
  } else if (const auto* set = std::get_if<SetQueueAttributes>(&request)) {
    needs.target = redrive_target(set->attributes);
  } else if (const auto* start = std::get_if<StartMessageMoveTask>(&request)) {
    if (start->source_arn) needs.dead_letter_queue = parse_queue_arn(*start->source_arn);
    if (start->destination_arn) needs.target = parse_queue_arn(*start->destination_arn);
  }
  return needs;
}

Reply merge_lists(std::vector<Reply> parts, std::optional<std::int64_t> max_results) {
  QueueListResult all;
  bool more = false;
  for (Reply& part : parts) {
    if (!part) return std::move(part);
    auto& list = std::get<QueueListResult>(*part);
    more = more || list.next_token;
    std::ranges::move(list.queues, std::back_inserter(all.queues));
  }
  std::ranges::sort(all.queues);
  const auto page = page_of(max_results, std::nullopt);
  cut_to_page(all, *page);
  if (more && !all.next_token) all.next_token = to_base64(all.queues.back().name);
  return all;
}

}  // namespace stanchion::engine
