// Actions on queues: their life, attributes, tags, permissions and listings.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "engine/engine.h"
#include "engine/rules/list_page.h"
#include "engine/rules/permissions.h"
#include "model/limits.h"

namespace stanchion::engine {
namespace {

Error settings_take_too_much(const std::string& account) {
  return {
      ErrorCode::kOverLimit,
      fmt::format("With this, the names, attributes, policies and tags of the queues of account "
                  "{} would take more memory than they may take here "
                  "(limits.queue_bytes_per_account, and limits.queue_bytes for all accounts). "
                  "Nothing was changed. Remove tags or policies, or delete queues that are not "
                  "needed.",
                  account)};
}

// Whether the account's quota has room for new settings of a queue. What does not grow is never
// refused, however much there is already.
Answer<void> check_settings(const Queue& queue, const QueueAttributes& attributes,
                            const StringMap& tags, const Neighbours& neighbours) {
  const std::size_t before = Queue::settings_bytes(queue.ref, queue.attributes(), queue.tags);
  const std::size_t after = Queue::settings_bytes(queue.ref, attributes, tags);
  if (after <= before || after - before <= neighbours.settings_bytes_left) return {};
  return std::unexpected(settings_take_too_much(queue.ref.account));
}

}  // namespace

Reply Engine::on(const CreateQueue& request, const Neighbours& neighbours, Decision& decision) {
  const auto fifo = fifo_of_new_queue(request.queue.name, request.attributes);
  if (!fifo) return std::unexpected(fifo.error());
  if (const Queue* existing = find(request.queue)) {
    const auto difference = first_difference(existing->attributes(), request.attributes);
    if (!difference) return std::unexpected(difference.error());
    if (*difference)
      return refuse(ErrorCode::kQueueNameExists,
                    fmt::format("A queue already exists with the same name and a different value "
                                "for attribute {}",
                                **difference));
    return QueueUrlResult{existing->ref};
  }
  if (options_.strict && deleted_.contains(request.queue))
    return refuse(ErrorCode::kQueueDeletedRecently,
                  "You must wait 60 seconds after deleting a queue before you can create another "
                  "with the same name.");
  QueueAttributes defaults;
  defaults.fifo = *fifo;
  auto attributes = with_attributes(defaults, request.attributes);
  if (!attributes) return std::unexpected(attributes.error());
  if (attributes->redrive) {
    const auto allowed =
        check_redrive_target(request.queue, *fifo, *attributes->redrive,
                             request.attributes.find("RedrivePolicy")->second, neighbours.target);
    if (!allowed) return std::unexpected(allowed.error());
  }
  if (const auto ok = check_tags(request.tags); !ok) return std::unexpected(ok.error());
  if (request.tags.size() > limits::kTagsMax)
    return refuse(ErrorCode::kInvalidParameterValue,
                  fmt::format("Too many tags added for queue {}.", request.queue.name));
  if (Queue::settings_bytes(request.queue, *attributes, request.tags) >
      neighbours.settings_bytes_left)
    return std::unexpected(settings_take_too_much(request.queue.account));
  record(QueueCreated{next_queue_, request.queue, std::move(*attributes), request.tags}, decision);
  return QueueUrlResult{request.queue};
}

Reply Engine::on(const DeleteQueue&, Queue& queue, const Neighbours&, Decision& decision) {
  record(QueueDeleted{queue.id}, decision);
  return NoResult{};
}

Reply Engine::on(const PurgeQueue&, Queue& queue, const Neighbours&, Decision& decision) {
  if (options_.strict && queue.last_purge() &&
      decision.now < *queue.last_purge() + limits::kPurgeInterval)
    return refuse(ErrorCode::kPurgeQueueInProgress,
                  fmt::format("Only one PurgeQueue operation on {} is allowed every 60 seconds.",
                              queue.ref.name));
  record(QueuePurged{queue.id}, decision);
  return NoResult{};
}

Reply Engine::on(const GetQueueUrl&, Queue& queue, const Neighbours&, Decision&) {
  return QueueUrlResult{queue.ref};
}

Reply Engine::on(const ListQueues& request, const Neighbours&, Decision&) {
  const auto page = page_of(request.max_results, request.next_token);
  if (!page) return std::unexpected(page.error());
  QueueListResult result;
  QueueRef from{request.account, request.region, std::max(request.prefix, page->after)};
  for (auto it = listing_.lower_bound(from); it != listing_.end(); ++it) {
    const QueueRef& ref = (*it)->ref;
    if (ref.account != request.account || ref.region != request.region) break;
    if (ref.name == page->after) continue;
    if (!ref.name.starts_with(request.prefix) || result.queues.size() > page->size) break;
    result.queues.push_back(ref);
  }
  cut_to_page(result, *page);
  return result;
}

Reply Engine::on(const ListDeadLetterSourceQueues& request, const Neighbours& neighbours,
                 Decision&) {
  if (neighbours.is_home && find(request.queue) == nullptr)
    return refuse(ErrorCode::kQueueDoesNotExist, "The specified queue does not exist.");
  const auto page = page_of(request.max_results, request.next_token);
  if (!page) return std::unexpected(page.error());
  QueueListResult result;
  const auto found = dead_letter_sources_.find(request.queue.arn());
  if (found == dead_letter_sources_.end()) return result;
  // They are all of its own account and region, in order of their names.
  const QueueRef after{request.queue.account, request.queue.region, page->after};
  for (auto it = found->second.upper_bound(after);
       it != found->second.end() && result.queues.size() <= page->size; ++it)
    result.queues.push_back((*it)->ref);
  cut_to_page(result, *page);
  return result;
}

Reply Engine::on(const GetQueueAttributes& request, Queue& queue, const Neighbours&, Decision&) {
  auto attributes = read_attributes(queue, request.attribute_names);
  if (!attributes) return std::unexpected(attributes.error());
  return QueueAttributesResult{std::move(*attributes)};
}

Reply Engine::on(const SetQueueAttributes& request, Queue& queue, const Neighbours& neighbours,
                 Decision& decision) {
  if (request.attributes.empty()) return std::unexpected(missing("Attribute.Name"));
  if (const auto ok = check_fifo_of_queue(queue.fifo(), request.attributes); !ok)
    return std::unexpected(ok.error());
  auto attributes = with_attributes(queue.attributes(), request.attributes);
  if (!attributes) return std::unexpected(attributes.error());
  const auto redrive = request.attributes.find("RedrivePolicy");
  if (redrive != request.attributes.end() && attributes->redrive) {
    const auto allowed = check_redrive_target(queue.ref, queue.fifo(), *attributes->redrive,
                                              redrive->second, neighbours.target);
    if (!allowed) return std::unexpected(allowed.error());
  }
  if (const auto ok = check_settings(queue, *attributes, queue.tags, neighbours); !ok)
    return std::unexpected(ok.error());
  if (!queue.may_set_delay(attributes->delay_seconds, decision.now))
    return refuse(
        ErrorCode::kServiceUnavailable,
        "DelaySeconds also counts for the messages that wait in a FIFO queue, and more of "
        "them would be delayed again than memory has room for. Nothing was changed. Try "
        "again with a shorter delay, later, or with more --memory.");
  decision.blocked = !queue.can_set_delay(attributes->delay_seconds, decision.now);
  touch(queue);
  if (decision.blocked) return NoResult{};
  record(QueueAttributesSet{queue.id, std::move(*attributes)}, decision);
  return NoResult{};
}

Reply Engine::on(const TagQueue& request, Queue& queue, const Neighbours& neighbours,
                 Decision& decision) {
  if (request.tags.empty()) return std::unexpected(missing("Tags"));
  if (const auto ok = check_tags(request.tags); !ok) return std::unexpected(ok.error());
  StringMap all = queue.tags;
  for (const auto& [key, value] : request.tags) all.insert_or_assign(key, value);
  if (all.size() > limits::kTagsMax)
    return refuse(ErrorCode::kInvalidParameterValue,
                  fmt::format("Too many tags added for queue {}.", queue.ref.name));
  if (const auto ok = check_settings(queue, queue.attributes(), all, neighbours); !ok)
    return std::unexpected(ok.error());
  record(QueueTagged{queue.id, request.tags}, decision);
  return NoResult{};
}

Reply Engine::on(const UntagQueue& request, Queue& queue, const Neighbours&, Decision& decision) {
  if (request.tag_keys.empty()) return std::unexpected(missing("TagKeys"));
  // Keys that the queue does not have may be of any size and number, and change nothing.
  QueueUntagged fact{queue.id, {}};
  for (const auto& [key, value] : queue.tags)
    if (std::ranges::find(request.tag_keys, key) != request.tag_keys.end())
      fact.keys.push_back(key);
  if (!fact.keys.empty()) record(fact, decision);
  return NoResult{};
}

Reply Engine::on(const ListQueueTags&, Queue& queue, const Neighbours&, Decision&) {
  return QueueTagsResult{queue.tags};
}

Reply Engine::on(const AddPermission& request, Queue& queue, const Neighbours& neighbours,
                 Decision& decision) {
  auto policy = policy_with_permission(queue, request);
  if (!policy) return std::unexpected(policy.error());
  QueueAttributes attributes = queue.attributes();
  attributes.policy = std::move(*policy);
  if (const auto ok = check_settings(queue, attributes, queue.tags, neighbours); !ok)
    return std::unexpected(ok.error());
  record(QueueAttributesSet{queue.id, std::move(attributes)}, decision);
  return NoResult{};
}

Reply Engine::on(const RemovePermission& request, Queue& queue, const Neighbours&,
                 Decision& decision) {
  auto policy = policy_without_permission(queue, request);
  if (!policy) return std::unexpected(policy.error());
  QueueAttributes attributes = queue.attributes();
  attributes.policy = std::move(*policy);
  record(QueueAttributesSet{queue.id, std::move(attributes)}, decision);
  return NoResult{};
}

}  // namespace stanchion::engine
