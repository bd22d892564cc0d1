// How many queues each account has, over all shards, and how much memory their settings take; and how
// many, and how much, they may. Any thread.
//
// A queue is counted before it is created, so the number is exact. Bytes are counted when something
// was changed: calls that are executed at the same time in several shards may together exceed the
// maximum by what each of them adds.
//
//   QQ1  The sum of all accounts is what each of them has.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/check.h"

namespace stanchion::broker {

// 0: any number.
struct QueueLimits {
  std::uint64_t per_account = 0;
  std::uint64_t bytes_per_account = 0;
  std::uint64_t bytes = 0;  // Of all accounts together.

  bool any() const { return per_account != 0 || bytes_per_account != 0 || bytes != 0; }
};

class QueueQuota {
 public:
  explicit QueueQuota(const QueueLimits& limits) : limits_(limits) {}

  std::uint64_t max() const { return limits_.per_account; }

  // Counts a queue that existed before, even if it is one too many.
  void add(const std::string& account) {
    const std::lock_guard lock(mutex_);
    ++counts_[account].queues;
  }

  // Adds one; false if the account already has the maximum.
  bool take(const std::string& account) {
    const std::lock_guard lock(mutex_);
    Count& count = counts_[account];
    if (limits_.per_account != 0 && count.queues >= limits_.per_account) return false;
    ++count.queues;
    return true;
  }

  void give_back(const std::string& account) {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(account);
    --found->second.queues;
    forget_if_nothing(found);
  }

  // The settings of a queue of the account took `before` bytes, and take `after` now; 0 if there is
  // no queue.
  void change_bytes(const std::string& account, std::uint64_t before, std::uint64_t after) {
    if (before == after) return;
    const std::lock_guard lock(mutex_);
    const auto found = counts_.try_emplace(account).first;
    found->second.bytes += after - before;
    bytes_ += after - before;
    CHECK(found->second.bytes <= bytes_, "QQ1");
    forget_if_nothing(found);
  }

  std::uint64_t bytes_left(const std::string& account) const {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(account);
    const std::uint64_t bytes = found == counts_.end() ? 0 : found->second.bytes;
    const auto left = [](std::uint64_t most, std::uint64_t taken) {
      return most == 0 ? UINT64_MAX : most - std::min(most, taken);
    };
    return std::min(left(limits_.bytes_per_account, bytes), left(limits_.bytes, bytes_));
  }

 private:
  struct Count {
    std::uint64_t queues = 0;
    std::uint64_t bytes = 0;
  };
  using Counts = std::unordered_map<std::string, Count>;

  void forget_if_nothing(Counts::iterator at) {
    if (at->second.queues == 0 && at->second.bytes == 0) counts_.erase(at);
  }

  const QueueLimits limits_;
  mutable std::mutex mutex_;
  Counts counts_;
  std::uint64_t bytes_ = 0;
};

}  // namespace stanchion::broker
