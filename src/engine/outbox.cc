#include "engine/outbox.h"

#include <algorithm>

#include "base/check.h"

namespace stanchion::engine {

void Outbox::add(TransferNo number, Departure departure) {
  CHECK(number >= next_, "transfer numbers only grow");
  next_ = number.next();
  under_way_.emplace(number, std::move(departure));
}

Departure* Outbox::find(TransferNo number) {
  const auto found = under_way_.find(number);
  return found == under_way_.end() ? nullptr : &found->second;
}

Departure Outbox::take(TransferNo number) {
  auto node = under_way_.extract(number);
  CHECK(!node.empty(), "a departure is settled once");
  return std::move(node.mapped());
}

bool Inbox::has(ShardIndex source, TransferNo number) const {
  const auto found = sources_.find(source);
  if (found == sources_.end()) return false;
  return number < found->second.settled_below || found->second.accepted.contains(number);
}

void Inbox::accept(ShardIndex shard, TransferNo number, TransferNo settled_below) {
  Source& source = sources_[shard];
  const bool added = source.accepted.insert(number).second;
  CHECK(added, "a transfer is accepted once");
  source.settled_below = std::max(source.settled_below, settled_below);
  source.accepted.erase(source.accepted.begin(), source.accepted.lower_bound(source.settled_below));
}

std::size_t Inbox::remembered() const {
  std::size_t count = 0;
  for (const auto& [shard, source] : sources_) count += source.accepted.size();
  return count;
}

}  // namespace stanchion::engine
