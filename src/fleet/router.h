// Takes requests for shards that are served elsewhere to their owners, and those of other nodes to
// the shards here. While a shard has no owner that can be reached, its requests wait.
//
//   submit ─▶ owner connected? ─▶ sent ─▶ answered ─▶ respond
//               │ no           ├─ "has moved": not executed ─▶ held
//               ▼              └─ connection broke ─▶ unknown; reads ─▶ held
//              held ─▶ owner connected, or served here ─▶ sent ─▶ …   (at most kHeldFor, then 503)
//
//   RO1  A request is made again only if it was certainly not executed, or only reads.
//   RO2  Whenever a shard may have another owner, transfers under way to it are handed over again,
//        before any later ones. What is lost all the same, as a verdict for an owner that was not
//        known yet, the source makes good in time: it hands over again what is not settled.
//   RO3  A request's guard goes with it, and is asked by whoever executes it.
//   RO4  An answer is only taken by the process that has asked. The node may have been started again
//        meanwhile: then its process before is not answered, and ids of the two differ.
//
// What concerns a shard happens on its loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "broker/broker.h"
#include "broker/loop.h"
#include "broker/remote_shards.h"
#include "fleet/transport.h"
#include "os/timekeeper.h"

namespace stanchion::fleet {

class Router final : public broker::RemoteShards {
 public:
  using OnLost = std::function<void(ShardIndex, std::string_view)>;

  // `on_lost` is called on the shard's loop. Everything must outlive the router. Without `unpack`
  // requests that have guards are refused. `process` is drawn at each start.
  Router(std::uint32_t shards, Transport& transport, os::Time& time, OnLost on_lost,
         broker::UnpackGuard unpack, std::uint64_t process);
  ~Router() override;

  // Before everything else, once the broker has its loops.
  void start(broker::Broker& broker);

  // On the shard's loop: who owns it, as far as is known; empty: nobody, or this node, which does
  // not serve it yet.
  void set_owner(ShardIndex shard, const NodeName& owner);
  // On the shard's loop: it is served here from now on.
  void serve_here(ShardIndex shard);

  // Any thread.
  void take(const NodeName& from, Frame frame);
  void connection_broke(const NodeName& node);

  void submit(ShardIndex shard, Request&& request, const engine::Neighbours& neighbours,
              broker::Ticket ticket, broker::Respond respond, broker::Guard guard) override;
  void cancel(ShardIndex shard, broker::Ticket ticket) override;
  void contribute(ShardIndex shard, const engine::Needs& needs, engine::Neighbours neighbours,
                  Contributed then) override;
  void lost(ShardIndex shard, std::string_view why) override { on_lost_(shard, why); }
  void deliver(ShardIndex shard, Transfer transfer, SourceEpoch epoch) override;
  void tell_verdict(ShardIndex shard, const Settlement& settlement) override;

  struct Statistics {
    std::atomic<std::uint64_t> forwarded{0}, held{0}, unknown{0}, given_up{0};
  };
  const Statistics& statistics() const { return statistics_; }

 private:
  // A request or a question that is under way.
  struct PendingRequest {
    std::optional<Request> request;  // None: it is a question.
    engine::Needs needs;
    engine::Neighbours neighbours;
    broker::Ticket ticket;
    broker::Respond respond;
    broker::Guard guard;
    std::string packed_guard;  // Of a request whose guard was given away.
    Contributed then;
    SteadyInstant began{};  // Behind kHeldFor from here on it is not held any more.
    SteadyInstant sent{};   // To an owner, or executed here, for the last time.
  };
  struct Route {
    NodeName owner;
    SteadyInstant changed{};  // When the owner last changed.
    bool here = false;
    std::deque<PendingRequest> held;
    struct Sent {
      NodeName to;
      PendingRequest pending;
    };
    std::map<std::uint64_t, Sent> sent;
    // Requests of other nodes that are executed here, by node and their id.
    std::map<std::pair<NodeName, std::uint64_t>, broker::Submission> remote_requests;
    std::unique_ptr<broker::Alarm> alarm;
  };

  void send_or_hold(ShardIndex shard, PendingRequest pending);
  void hold(ShardIndex shard, PendingRequest pending);
  void hold_again(ShardIndex shard, PendingRequest pending);
  void release_held(ShardIndex shard);
  void arm(ShardIndex shard);
  void forget_old_owners(ShardIndex shard, SteadyInstant now);
  void fail_sent(ShardIndex shard, const std::function<bool(const NodeName&)>& to);
  void on_alarm(ShardIndex shard);
  void give_up(PendingRequest pending);
  void run_here(ShardIndex shard, PendingRequest pending);
  broker::Guard unpack(const std::string& packed) const;
  void connection_broke(ShardIndex shard, const NodeName& node);
  void take_one(const NodeName& from, Forward frame);
  void take_one(const NodeName& from, Answered frame);
  void take_one(const NodeName& from, Cancel frame);
  void take_one(const NodeName& from, Ask frame);
  void take_one(const NodeName& from, Told frame);
  void take_one(const NodeName& from, Deliver frame);
  void take_one(const NodeName& from, Verdict frame);
  std::optional<PendingRequest> take_sent(ShardIndex shard, std::uint64_t id, const NodeName& from);

  Transport& transport_;
  os::Time& time_;
  const OnLost on_lost_;
  const broker::UnpackGuard unpack_;
  broker::Broker* broker_ = nullptr;
  std::vector<Route> routes_;  // By shard; each used on the loop of its shard.
  std::atomic<std::uint64_t> next_id_;
  Statistics statistics_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace stanchion::fleet
