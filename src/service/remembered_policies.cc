#include "service/remembered_policies.h"

#include <utility>

#include "base/digest.h"

namespace stanchion::service {
namespace {

// Of the tables, for each policy.
constexpr std::size_t kEntryBytes = 128;

}  // namespace

std::shared_ptr<const policy::Policy> RememberedPolicies::parsed(const std::string& text) {
  const auto policy_of = [](Pointer one) {
    const policy::Policy* policy = &one->policy;
    return std::shared_ptr<const policy::Policy>(std::move(one), policy);
  };
  const std::uint64_t hash = xxh3_64(text);
  if (Pointer known = find(hash); known && known->text == text) return policy_of(std::move(known));
  auto policy = policy::parse_policy(text);
  if (!policy) return nullptr;
  const std::size_t bytes =
      kEntryBytes + sizeof(Remembered) + text.size() + policy::footprint(*policy);
  auto made = std::make_shared<const Remembered>(Remembered{text, *std::move(policy), bytes});
  return policy_of(remember(hash, std::move(made)));
}

std::size_t RememberedPolicies::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

RememberedPolicies::Pointer RememberedPolicies::find(std::uint64_t hash) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_hash_.find(hash);
  return found == by_hash_.end() ? nullptr : found->second;
}

RememberedPolicies::Pointer RememberedPolicies::remember(std::uint64_t hash, Pointer made) {
  std::vector<Pointer> forgotten;
  const std::lock_guard lock(mutex_);
  // Another thread may have parsed it meanwhile.
  if (!by_hash_.try_emplace(hash, made).second) return made;
  by_age_.push_back(hash);
  bytes_ += made->bytes;
  forgotten = forget_oldest();
  return made;
}

std::vector<RememberedPolicies::Pointer> RememberedPolicies::forget_oldest() {
  std::vector<Pointer> forgotten;
  while (bytes_ > bytes_max_) {
    const auto oldest = by_hash_.find(by_age_.front());
    by_age_.pop_front();
    bytes_ -= oldest->second->bytes;
    forgotten.push_back(std::move(oldest->second));
    by_hash_.erase(oldest);
  }
  return forgotten;
}

}  // namespace stanchion::service
