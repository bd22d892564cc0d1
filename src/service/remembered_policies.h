// The policies that were evaluated lately, parsed, by their texts. Any thread.
//
//   RP1  What is remembered takes at most bytes_max, by what policy::footprint() says: the policy that
//        was parsed first is forgotten first. One that was forgotten is parsed again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "policy/policy.h"

namespace stanchion::service {

class RememberedPolicies {
 public:
  explicit RememberedPolicies(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Null if the text is no policy.
  std::shared_ptr<const policy::Policy> parsed(const std::string& text);

  std::size_t bytes() const;

 private:
  struct Remembered {
    std::string text;
    policy::Policy policy;
    std::size_t bytes = 0;
  };
  using Pointer = std::shared_ptr<const Remembered>;

  // Tables are searched and changed with the mutex held; texts are hashed, compared and parsed, and
  // policies freed, without it.
  Pointer find(std::uint64_t hash) const;
  Pointer remember(std::uint64_t hash, Pointer made);
  std::vector<Pointer> forget_oldest();

  const std::size_t bytes_max_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::unordered_map<std::uint64_t, Pointer> by_hash_;  // Of two with the same hash, the first one.
  std::deque<std::uint64_t> by_age_;                    // The oldest one first.
  std::size_t bytes_ = 0;
};

}  // namespace stanchion::service
