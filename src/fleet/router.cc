#include "fleet/router.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "broker/admission.h"
#include "fleet/limits.h"
#include "model/action.h"

namespace stanchion::fleet {
namespace {

Reply nobody_serves() {
  return refuse(ErrorCode::kServiceUnavailable,
                "No node serves this queue at the moment. This request changed nothing. Try again "
                "in a moment.");
}

// In place of a guard that nobody here understands.
class NoEntry final : public broker::RequestGuard {
 public:
  std::optional<Error> check(const broker::GuardedQueue*) override {
    return Error{ErrorCode::kServiceUnavailable,
                 "The node that serves this queue cannot check who may use it."};
  }
  std::string pack() const override { return "?"; }
};

bool only_reads(const Request& request) {
  return traits_of(action_of(request)).effect == Effect::kReads;
}

}  // namespace

Router::Router(std::uint32_t shards, Transport& transport, os::Time& time, OnLost on_lost,
               broker::UnpackGuard unpack, std::uint64_t process)
    : transport_(transport),
      time_(time),
      on_lost_(std::move(on_lost)),
      unpack_(std::move(unpack)),
      routes_(shards),
      next_id_(process) {}

Router::~Router() {
  *alive_ = false;
}

void Router::start(broker::Broker& broker) {
  broker_ = &broker;
}

void Router::set_owner(ShardIndex shard, const NodeName& owner) {
  Route& route = routes_[shard.value()];
  if (route.owner != owner) route.changed = time_.read().steady;
  route.here = false;
  route.owner = owner;
  release_held(shard);
  if (!route.sent.empty()) arm(shard);
}

void Router::serve_here(ShardIndex shard) {
  Route& route = routes_[shard.value()];
  route.here = true;
  route.owner.clear();
  route.changed = time_.read().steady;
  release_held(shard);
  if (!route.sent.empty()) arm(shard);
}

void Router::release_held(ShardIndex shard) {
  Route& route = routes_[shard.value()];
  if (!route.here && route.owner.empty()) return;
  for (PendingRequest& pending : std::exchange(route.held, {}))
    send_or_hold(shard, std::move(pending));
}

void Router::submit(ShardIndex shard, Request&& request, const engine::Neighbours& neighbours,
                    broker::Ticket ticket, broker::Respond respond, broker::Guard guard) {
  send_or_hold(shard, {.request = std::move(request),
                       .needs = {},
                       .neighbours = neighbours,
                       .ticket = ticket,
                       .respond = std::move(respond),
                       .guard = std::move(guard),
                       .packed_guard = {},
                       .then = nullptr,
                       .began = time_.read().steady});
}

void Router::contribute(ShardIndex shard, const engine::Needs& needs, engine::Neighbours neighbours,
                        Contributed then) {
  send_or_hold(shard, {.request = std::nullopt,
                       .needs = needs,
                       .neighbours = std::move(neighbours),
                       .ticket = {},
                       .respond = nullptr,
                       .guard = nullptr,
                       .packed_guard = {},
                       .then = std::move(then),
                       .began = time_.read().steady});
}

void Router::send_or_hold(ShardIndex shard, PendingRequest pending) {
  Route& route = routes_[shard.value()];
  pending.sent = time_.read().steady;
  if (route.here) return run_here(shard, std::move(pending));
  if (route.owner.empty()) return hold(shard, std::move(pending));
  const std::uint64_t id = next_id_.fetch_add(1, std::memory_order_relaxed);
  Frame frame = pending.request
                    ? Frame(Forward{id, shard, *pending.request, pending.neighbours,
                                    pending.guard ? pending.guard->pack() : pending.packed_guard})
                    : Frame(Ask{id, shard, pending.needs, pending.neighbours});
  const NodeName to = route.owner;
  route.sent.emplace(id, Route::Sent{to, std::move(pending)});
  if (transport_.send(to, std::move(frame))) {
    ++statistics_.forwarded;
    return;
  }
  // RO1: it was certainly not executed.
  if (auto unsent = take_sent(shard, id, to)) hold(shard, std::move(*unsent));
}

void Router::run_here(ShardIndex shard, PendingRequest pending) {
  if (!pending.request)
    return broker_->contribute_here(shard, std::move(pending.needs), std::move(pending.neighbours),
                                    std::move(pending.then));
  // It may have moved on by the time that it is its turn, and is then held again.
  Request copy = *pending.request;
  const engine::Neighbours neighbours = pending.neighbours;
  if (pending.guard) pending.packed_guard = pending.guard->pack();
  broker::Guard guard = pending.guard ? std::move(pending.guard) : unpack(pending.packed_guard);
  auto waiting = std::make_shared<PendingRequest>(std::move(pending));
  broker_->submit_here(
      shard, std::move(copy), neighbours,
      [this, shard, waiting, alive = alive_](Reply reply) {
        if (!*alive) return;
        if (!reply && reply.error().code == ErrorCode::kShardHasMoved)
          return hold_again(shard, std::move(*waiting));
        waiting->respond(std::move(reply));
      },
      std::move(guard));
}

broker::Guard Router::unpack(const std::string& packed) const {
  if (packed.empty()) return nullptr;
  if (unpack_) return unpack_(packed);
  return std::make_unique<NoEntry>();
}

// A receive that was parked at a former owner has waited for a part of its time, and is held from
// now on. One that came back at once was not: it is held no longer than others, or an owner that is
// alive and serves nothing would send it back for ever.
void Router::hold_again(ShardIndex shard, PendingRequest pending) {
  const SteadyInstant now = time_.read().steady;
  const auto parked = std::chrono::floor<std::chrono::seconds>(now - pending.sent).count();
  if (auto* receive = pending.request ? std::get_if<ReceiveMessage>(&*pending.request) : nullptr;
      receive != nullptr && parked > 0 && receive->wait_time_seconds.value_or(0) > 0) {
    receive->wait_time_seconds = std::max<std::int64_t>(0, *receive->wait_time_seconds - parked);
    pending.began = now;
  }
  hold(shard, std::move(pending));
}

void Router::hold(ShardIndex shard, PendingRequest pending) {
  Route& route = routes_[shard.value()];
  if (route.held.size() >= kHeldMax || time_.read().steady - pending.began > kHeldFor)
    return give_up(std::move(pending));
  ++statistics_.held;
  route.held.push_back(std::move(pending));
  if (route.held.size() == 1) arm(shard);
}

void Router::arm(ShardIndex shard) {
  Route& route = routes_[shard.value()];
  if (!route.alarm)
    route.alarm = broker_->loop_of(shard).make_alarm([this, shard] { on_alarm(shard); });
  route.alarm->set(kTryAgain);
}

// A node that was replaced while it is paused answers nothing, and its connections stay.
void Router::forget_old_owners(ShardIndex shard, SteadyInstant now) {
  const Route& route = routes_[shard.value()];
  if (now - route.changed < kLastWords) return;
  const NodeName owner = route.owner;
  fail_sent(shard, [&](const NodeName& to) { return to != owner; });
}

void Router::on_alarm(ShardIndex shard) {
  Route& route = routes_[shard.value()];
  const SteadyInstant now = time_.read().steady;
  std::deque<PendingRequest> held = std::exchange(route.held, {});
  for (PendingRequest& pending : held) {
    if (now - pending.began > kHeldFor) {
      give_up(std::move(pending));
    } else {
      route.held.push_back(std::move(pending));
    }
  }
  release_held(shard);
  forget_old_owners(shard, now);
  const bool waits_for_old = std::ranges::any_of(
      route.sent, [&](const auto& entry) { return entry.second.to != route.owner; });
  if (!route.held.empty() || waits_for_old) route.alarm->set(kTryAgain);
}

void Router::give_up(PendingRequest pending) {
  ++statistics_.given_up;
  if (pending.request) return pending.respond(nobody_serves());
  pending.then(std::move(pending.neighbours), false);
}

void Router::cancel(ShardIndex shard, broker::Ticket ticket) {
  Route& route = routes_[shard.value()];
  const auto is_it = [&](const PendingRequest& pending) {
    return pending.request && pending.ticket == ticket;
  };
  std::erase_if(route.held, is_it);
  for (auto it = route.sent.begin(); it != route.sent.end(); ++it) {
    if (!is_it(it->second.pending)) continue;
    transport_.send(it->second.to, Cancel{it->first, shard});
    route.sent.erase(it);
    return;
  }
}

void Router::deliver(ShardIndex shard, Transfer transfer, SourceEpoch epoch) {
  const NodeName& owner = routes_[shard.value()].owner;
  if (!owner.empty()) transport_.send(owner, Deliver{shard, std::move(transfer), epoch});
}

void Router::tell_verdict(ShardIndex shard, const Settlement& settlement) {
  const NodeName& owner = routes_[shard.value()].owner;
  if (!owner.empty()) transport_.send(owner, Verdict{shard, settlement});
}

void Router::take(const NodeName& from, Frame frame) {
  std::visit(
      [&](auto& one) {
        const ShardIndex shard = one.shard;
        if (shard.value() >= routes_.size()) return;
        broker_->loop_of(shard).post([this, from, one = std::move(one), alive = alive_]() mutable {
          if (*alive) take_one(from, std::move(one));
        });
      },
      frame);
}

void Router::take_one(const NodeName& from, Forward frame) {
  Route& route = routes_[frame.shard.value()];
  const auto key = std::pair(from, frame.id);
  route.remote_requests.try_emplace(key);
  const broker::Submission submission = broker_->submit_here(
      frame.shard, std::move(frame.request), frame.neighbours,
      [this, key, shard = frame.shard, alive = alive_](Reply reply) {
        // RO4: otherwise the connection broke, and who is connected now is another.
        if (!*alive || routes_[shard.value()].remote_requests.erase(key) == 0) return;
        // Whoever cannot be answered has learned that the connection broke.
        transport_.send(key.first, Answered{key.second, shard, std::move(reply)});
      },
      unpack(frame.guard));
  // It may have been refused at once.
  if (const auto remote = route.remote_requests.find(key); remote != route.remote_requests.end())
    remote->second = submission;
}

std::optional<Router::PendingRequest> Router::take_sent(ShardIndex shard, std::uint64_t id,
                                                        const NodeName& from) {
  Route& route = routes_[shard.value()];
  const auto found = route.sent.find(id);
  if (found == route.sent.end() || found->second.to != from) return std::nullopt;
  PendingRequest pending = std::move(found->second.pending);
  route.sent.erase(found);
  return pending;
}

void Router::take_one(const NodeName& from, Answered frame) {
  auto pending = take_sent(frame.shard, frame.id, from);
  if (!pending) return;  // Its client has gone, or it was given up.
  if (!frame.reply && frame.reply.error().code == ErrorCode::kShardHasMoved)
    return hold_again(frame.shard, std::move(*pending));
  pending->respond(std::move(frame.reply));
}

void Router::take_one(const NodeName& from, Cancel frame) {
  Route& route = routes_[frame.shard.value()];
  auto remote = route.remote_requests.extract(std::pair(from, frame.id));
  if (!remote.empty()) broker_->cancel(remote.mapped());
}

void Router::take_one(const NodeName& from, Ask frame) {
  broker_->contribute_here(
      frame.shard, std::move(frame.needs), std::move(frame.neighbours),
      [this, from, id = frame.id, shard = frame.shard](engine::Neighbours neighbours, bool known) {
        transport_.send(from, Told{id, shard, std::move(neighbours), known});
      });
}

void Router::take_one(const NodeName& from, Told frame) {
  auto pending = take_sent(frame.shard, frame.id, from);
  if (!pending) return;
  if (!frame.known) return hold(frame.shard, std::move(*pending));
  pending->then(std::move(frame.neighbours), true);
}

void Router::take_one(const NodeName&, Deliver frame) {
  broker_->deliver_here(frame.shard, std::move(frame.transfer), frame.epoch);
}

void Router::take_one(const NodeName&, Verdict frame) {
  broker_->tell_verdict_here(frame.shard, frame.settlement);
}

void Router::connection_broke(const NodeName& node) {
  for (std::uint32_t i = 0; i < routes_.size(); ++i)
    broker_->loop_of(ShardIndex(i)).post([this, i, node, alive = alive_] {
      if (*alive) connection_broke(ShardIndex(i), node);
    });
}

// RO1: what may have been executed is not made again. The client is told so.
void Router::fail_sent(ShardIndex shard, const std::function<bool(const NodeName&)>& to) {
  Route& route = routes_[shard.value()];
  std::vector<PendingRequest> broken;
  for (auto it = route.sent.begin(); it != route.sent.end();) {
    if (!to(it->second.to)) {
      ++it;
      continue;
    }
    broken.push_back(std::move(it->second.pending));
    it = route.sent.erase(it);
  }
  for (PendingRequest& pending : broken) {
    if (!pending.request || only_reads(*pending.request)) {
      hold(shard, std::move(pending));
      continue;
    }
    ++statistics_.unknown;
    pending.respond(broker::outcome_is_unknown());
  }
}

void Router::connection_broke(ShardIndex shard, const NodeName& node) {
  fail_sent(shard, [&](const NodeName& to) { return to == node; });
  Route& route = routes_[shard.value()];
  // Nobody hears the answers to its requests any more.
  std::vector<broker::Submission> orphans;
  for (auto it = route.remote_requests.begin(); it != route.remote_requests.end();) {
    if (it->first.first != node) {
      ++it;
      continue;
    }
    orphans.push_back(it->second);
    it = route.remote_requests.erase(it);
  }
  for (const broker::Submission& orphan : orphans) broker_->cancel(orphan);
}

}  // namespace stanchion::fleet
