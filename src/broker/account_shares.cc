#include "broker/account_shares.h"

namespace stanchion::broker {
namespace {

// The part of the budget by which memory changes before the accounts are added up again.
constexpr std::size_t kStepShare = 64;

}  // namespace

void AccountShares::add_up() const {
  accounts_.clear();
  engine_.for_each_queue(
      [&](const engine::Queue& queue) { accounts_[queue.ref.account] += queue.bytes(); });
}

bool AccountShares::exceeds(const std::string& account) const {
  const std::size_t all = engine_.message_bytes() + engine_.structure_bytes();
  const std::size_t step = budget_ / kStepShare;
  if (all > all_ + step || all + step < all_) {
    add_up();
    all_ = all;
  }
  if (!are_several()) return false;
  const auto found = accounts_.find(account);
  return found != accounts_.end() && found->second > budget_ * percent_ / 100;
}

}  // namespace stanchion::broker
