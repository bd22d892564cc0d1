// Policies of queues, as they are collected from the loops of all shards: so many bytes of them,
// because each may have 8 KiB and somebody has to parse them.
//
// add() is called on any loop, take() when all are done.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "model/ids.h"

namespace stanchion::service {

class PolicyTexts {
 public:
  static constexpr std::size_t kBytesMax = 256 * 1024;

  void add(const QueueRef& queue, const std::string& policy) {
    if (policy.empty()) return;
    const std::lock_guard lock(mutex_);
    if (bytes_ + policy.size() > kBytesMax) return;
    bytes_ += policy.size();
    texts_.emplace(queue, policy);
  }

  std::map<QueueRef, std::string> take() { return std::move(texts_); }

 private:
  std::mutex mutex_;
  // Guarded by mutex_:
  std::map<QueueRef, std::string> texts_;
  std::size_t bytes_ = 0;
};

}  // namespace stanchion::service
