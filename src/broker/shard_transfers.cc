#include "broker/shard_transfers.h"

#include <algorithm>

#include "broker/peers.h"

namespace stanchion::broker {
namespace {

// So many attempts of an owner have numbers below those of the next one.
constexpr int kAttemptBits = 24;

}  // namespace

void ShardTransfers::send(Position durable, engine::Engine& engine, Peers& peers) {
  owner_.check();
  if (held_) return;
  for (; is_next_durable(durable); departures_.pop_front()) {
    may_go_ = std::max(may_go_, departures_.front().end);
    settled_below_ = std::max(settled_below_, departures_.front().settled_below);
  }
  hand_over(engine, peers);
}

void ShardTransfers::start_over(SourceEpoch epoch, engine::Engine& engine, Peers& peers) {
  owner_.check();
  epoch_ = epoch;
  attempt_ = (epoch.value() << kAttemptBits) + ++attempts_made_;
  targets_.clear();
  refused_.clear();
  handed_over_ = TransferNo(1);
  if (!held_) hand_over(engine, peers);
}

ShardTransfers::Verdicts ShardTransfers::take_verdicts(std::size_t most) {
  owner_.check();
  Verdicts verdicts;
  const auto take = [&](std::deque<TransferNo>& from, std::vector<TransferNo>& into) {
    const auto end = from.begin() + static_cast<std::ptrdiff_t>(std::min(most, from.size()));
    into.assign(from.begin(), end);
    from.erase(from.begin(), end);
    most -= into.size();
  };
  take(accepted_, verdicts.accepted);
  take(refused_, verdicts.refused);
  return verdicts;
}

void ShardTransfers::hand_over(engine::Engine& engine, Peers& peers) {
  while (auto transfer = engine.hand_over(handed_over_, may_go_)) {
    const ShardIndex target = peers.shard_of(transfer->destination);
    transfer->settled_below = settled_below_;
    transfer->attempt = attempt_;
    transfer->opens_attempt = targets_.insert(target).second;
    peers.deliver(target, std::move(*transfer), epoch_);
  }
}

}  // namespace stanchion::broker
