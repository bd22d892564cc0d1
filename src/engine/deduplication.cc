#include "engine/deduplication.h"

#include <string>

#include "base/check.h"
#include "model/limits.h"

namespace stanchion::engine {

Hash128 DeduplicationWindow::key_of(DeduplicationScope scope, std::string_view group,
                                    std::string_view deduplication_id) {
  if (scope == DeduplicationScope::kQueue) return xxh3_128(deduplication_id);
  // Ids hold no NUL, so group and id cannot be confused, nor a scoped key with an unscoped one.
  std::string key(group);
  key.push_back('\0');
  key.append(deduplication_id);
  return xxh3_128(key);
}

const DeduplicationWindow::Original* DeduplicationWindow::find(const Hash128& key) const {
  const auto found = originals_.find(key);
  return found == originals_.end() ? nullptr : &found->second;
}

void DeduplicationWindow::remember(const Hash128& key, const Original& original, Instant now) {
  const bool added = originals_.emplace(key, original).second;
  CHECK(added, "a repetition is not sent");
  order_.push_back({key, now + limits::kDeduplicationWindow});
}

void DeduplicationWindow::expire(Instant now) {
  while (!order_.empty() && order_.front().expires <= now) {
    originals_.erase(order_.front().key);
    order_.pop_front();
  }
}

void DeduplicationWindow::clear() {
  originals_.clear();
  order_.clear();
}

}  // namespace stanchion::engine
