// What each account takes of a shard's memory. Adding it up visits all queues, so it is done again only
// when memory has changed by a part of the budget.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "engine/engine.h"

namespace stanchion::broker {

class AccountShares {
 public:
  // While memory is full, an account that takes more than this percentage of the budget gives way to
  // the other accounts, if there are any.
  AccountShares(const engine::Engine& engine, std::size_t budget, std::uint32_t percent)
      : engine_(engine), budget_(budget), percent_(percent) {}

  // Whether there are other accounts, and this one takes more than its share.
  bool exceeds(const std::string& account) const;
  // As of the last call of exceeds().
  bool are_several() const { return accounts_.size() > 1; }

 private:
  void add_up() const;

  const engine::Engine& engine_;
  const std::size_t budget_;
  const std::uint32_t percent_;
  mutable std::map<std::string, std::size_t> accounts_;
  mutable std::size_t all_ = 0;  // What they took together, then.
};

}  // namespace stanchion::broker
