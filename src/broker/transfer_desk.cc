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
    departures_.pop_front();
  }
  if (end == handed_over_) return;
  for (Transfer& transfer : engine.transfers_from(handed_over_)) {
    if (transfer.number >= end) break;
    const ShardIndex target = peers.shard_of(transfer.destination);
    peers.deliver(target, std::move(transfer));
  }
  handed_over_ = end;
}

}  // namespace stanchion::broker
