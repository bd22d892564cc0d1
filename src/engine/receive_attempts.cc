#include "engine/receive_attempts.h"

namespace stanchion::engine {

const ReceiveAttempt* ReceiveAttempts::find(std::string_view id) const {
  const auto found = attempts_.find(id);
  return found == attempts_.end() ? nullptr : &found->second;
}

void ReceiveAttempts::remember(const std::string& id, ReceiveAttempt attempt) {
  const auto found = attempts_.find(id);
  if (found == attempts_.end() || found->second.expires != attempt.expires)
    order_.push_back({attempt.expires, id});
  attempts_.insert_or_assign(id, std::move(attempt));
}

void ReceiveAttempts::expire(Instant now) {
  while (!order_.empty() && order_.front().expires <= now) {
    const auto found = attempts_.find(order_.front().id);
    if (found != attempts_.end() && found->second.expires <= now) attempts_.erase(found);
    order_.pop_front();
  }
}

void ReceiveAttempts::clear() {
  attempts_.clear();
  order_.clear();
}

}  // namespace stanchion::engine
