#include "worker/named_queues.h"

#include <utility>

namespace stanchion::worker {
namespace {

constexpr const char* kFifo = ".fifo";

}  // namespace

std::string with_suffix(const std::string& queue_name, const std::string& suffix) {
  if (!queue_name.ends_with(kFifo)) return queue_name + suffix;
  return queue_name.substr(0, queue_name.size() - std::string(kFifo).size()) + suffix + kFifo;
}

client::Outcome<std::string> NamedQueues::find_or_make(const QueueRecipe& recipe) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = urls_.find(recipe.name);
    if (known != urls_.end()) return known->second;
  }
  auto found = look_up(recipe);
  if (!found) return found;
  const std::lock_guard lock(mutex_);
  urls_[recipe.name] = *found;
  return found;
}

void NamedQueues::forget(const std::string& queue_url) {
  const std::lock_guard lock(mutex_);
  std::erase_if(urls_, [&](const auto& known) { return known.second == queue_url; });
}

client::Outcome<std::string> NamedQueues::look_up(const QueueRecipe& recipe) {
  auto found = client_.get_queue_url({.queue_name = recipe.name});
  if (found) return std::move(found->queue_url);
  if (found.error().code != "QueueDoesNotExist") return found.error();
  return make(recipe);
}

client::Outcome<std::string> NamedQueues::make(const QueueRecipe& recipe) {
  client::CreateQueueRequest request{.queue_name = recipe.name, .attributes = recipe.attributes};
  if (recipe.name.ends_with(kFifo)) request.attributes["FifoQueue"] = "true";
  if (recipe.max_receive_count > 0) {
    // A dead-letter queue is a queue without one of its own.
    auto dead = look_up({.name = recipe.dead_letter_name.empty() ? with_suffix(recipe.name, "-dead")
                                                                 : recipe.dead_letter_name,
                         .attributes = {{"MessageRetentionPeriod", "1209600"}},
                         .max_receive_count = 0});
    if (!dead) return dead;
    auto attributes =
        client_.get_queue_attributes({.queue_url = *dead, .attribute_names = {"QueueArn"}});
    if (!attributes) return attributes.error();
    request.attributes["RedrivePolicy"] =
        R"({"deadLetterTargetArn":")" + attributes->attributes["QueueArn"] +
        R"(","maxReceiveCount":")" + std::to_string(recipe.max_receive_count) + "\"}";
  }
  auto made = client_.create_queue(std::move(request));
  if (made) return std::move(made->queue_url);
  if (made.error().code != "QueueNameExists" && made.error().code != "QueueAlreadyExists")
    return made.error();
  // Somebody else has just made it, with other attributes.
  auto found = client_.get_queue_url({.queue_name = recipe.name});
  if (!found) return found.error();
  return std::move(found->queue_url);
}

}  // namespace stanchion::worker
