#include "broker/transfer_desk.h"

#include <algorithm>

#include "broker/peers.h"

namespace stanchion::broker {

void TransferDesk::send(Position durable, const engine::Engine& engine, Peers& peers) {
  owner_.check();
  if (held_) return;
  TransferNo end = handed_over_;
  while (may_send(durable)) {
    end = std::max(end, departures_.front().end);
    settled_below_ = std::max(settled_below_, departures_.front().settled_below);
    departures_.pop_front();
  }
  if (end == handed_over_) return;
  hand_over(handed_over_, end, engine, peers);
  handed_over_ = end;
}

void TransferDesk::start_over(std::uint64_t attempt, const engine::Engine& engine, Peers& peers) {
  owner_.check();
  attempt_ = attempt;
  targets_.clear();
  refused_.clear();
  if (!held_) hand_over(TransferNo(1), handed_over_, engine, peers);
}

TransferDesk::Verdicts TransferDesk::take_verdicts(std::size_t most) {
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

void TransferDesk::hand_over(TransferNo from, TransferNo end, const engine::Engine& engine,
                             Peers& peers) {
  for (Transfer& transfer : engine.transfers_from(from)) {
    if (transfer.number >= end) break;
    const ShardIndex target = peers.shard_of(transfer.destination);
    transfer.settled_below = settled_below_;
    transfer.attempt = attempt_;
    transfer.opens_attempt = targets_.insert(target).second;
    peers.deliver(target, std::move(transfer));
  }
}

}  // namespace stanchion::broker
