// A node of a fleet: its replicas of shards, the way to the other nodes, and its part in deciding
// who has what.
//
//   control log ─▶ state ─▶ roles of the replicas, owners for the router
//        ▲                   │
//        └── beats, coordinator's claims, its assignments, releases
//
// What concerns the whole node happens on its first loop; what concerns a shard on that shard's.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "broker/background.h"
#include "broker/broker.h"
#include "broker/loop.h"
#include "fleet/control.h"
#include "fleet/control_log.h"
#include "fleet/limits.h"
#include "fleet/replica.h"
#include "fleet/router.h"
#include "fleet/stalls.h"
#include "fleet/transport.h"
#include "os/entropy.h"
#include "os/timekeeper.h"

namespace stanchion::fleet {

struct NodeOptions {
  NodeName name;
  std::string zone;
  std::string address;
  std::string version{};     // Of the program.
  std::uint32_t format = 0;  // The newest of a shard's log that it reads.
  std::uint32_t shards = 1;
  bool strict = false;
  broker::QueueLimits queues{};
  broker::KeeperOptions keeping{};  // For one shard.
  engine::MemoryOptions memory{};
  std::size_t decision_messages = limits::kDecisionMessagesMax;  // See engine::Options.
  Duration write_timeout = kWriteTimeout;
  std::size_t waiting_bytes = kWaitingBytesMax;  // Of each kind, for one shard.
  Duration hand_over_again = broker::Patience().hand_over_again;
};

class Node {
 public:
  struct Outside {
    std::function<Result<Replica::Storage>(ShardIndex)> open;  // In the background.
    // In the background: replaces the shard's store by a copy of that of another node; and why that
    // could not be done, on the shard's loop. It is tried again.
    std::function<Status(ShardIndex)> copy_store;
    std::function<void(ShardIndex, const Failure&)> not_copied;
    // In the background: whether the shard's store has another past than its log; see Replica.
    std::function<Status(ShardIndex, bool)> note_past;
    // On the shard's loop: it cannot be followed or served here, and is tried again later.
    std::function<void(ShardIndex, const Failure&)> gave_up;
    // On the shard's loop: it was claimed, is served, or is served no longer; see Replica::Outside.
    std::function<void(ShardIndex, const std::string&)> said = [](ShardIndex, const std::string&) {
    };
    // On the first loop: what Stalls has to tell of a shard; the stall is null when it has ended.
    std::function<void(ShardIndex, const Stalls::Change&, const Beat::Stall*)> stalled =
        [](ShardIndex, const Stalls::Change&, const Beat::Stall*) {};
    // On the first loop, now and then: nodes may have come, gone, or got further.
    using Replicas = std::map<ShardIndex, Replica::Figures>;
    std::function<void(const ControlState&, const Replicas&)> looked_around =
        [](const ControlState&, const Replicas&) {};
    std::function<void(const Failure&)> failed;  // The process must end.
    broker::UnpackGuard unpack_guard = {};       // For requests of other nodes.
  };

  // Everything must outlive the node, and the background must end before it.
  Node(NodeOptions options, ControlLog& control, Transport& transport, os::Time& time,
       os::Entropy& entropy, broker::Background& background, Outside outside);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Any thread.
  void start(std::vector<broker::Loop*> loops);
  void take(const NodeName& from, Frame frame) { router_.take(from, std::move(frame)); }
  void connection_broke(const NodeName& node);
  void connection_made() { broker_->hand_over_again(); }

  // On the first loop: gives its shards to others, and takes none any more.
  void drain();

  // On the shard's loop: has what is here of it copied; see Replica::back_up().
  void back_up(ShardIndex shard, journal::LogOffset end, broker::Keeper::Backup backup);

  broker::Broker& broker() { return *broker_; }
  const Router& router() const { return router_; }
  // On the first loop.
  const ControlState& state() const { return state_; }
  const Stalls& stalls() const { return stalls_; }
  // On the first loop: it follows or serves all that it is to have.
  bool is_ready() const;
  // On the shard's loop; nullptr if it was never a replica of it.
  const Replica* replica(ShardIndex shard) const { return replicas_[shard.value()].get(); }

 private:
  struct ShardView {
    AssignmentNo assignment;
    SteadyInstant since{};  // When the assignment was read here.
    Replica::Role role = Replica::Role::kNone;
    std::uint64_t heard_from = 0;   // It may claim when this beat of its own was read; RE3.
    std::optional<NodeName> owner;  // As the router was told; empty: this node.
    std::uint64_t service = 0;      // Of whoever serves it.
    Position dropped;
    AssignmentNo planned;  // As the coordinator.
    SteadyInstant planned_at{};
  };

  void read_control();
  void on_alarm();
  void beat();
  void collect_reached();
  void tell_links(Beat& beat);
  void reconcile();
  void act_as_coordinator(SteadyInstant now);
  void look_at_shard(ShardIndex shard, SteadyInstant now);
  void note_service(const Beat& beat);
  void note_skip(ShardIndex shard);
  void look_at_formats();
  void note_overtaken(ShardIndex shard);
  void note_given_up(ShardIndex shard, const Failure& why);
  void set_given_up(ShardIndex shard, const std::string& why, bool other_past);
  void note_stall(ShardIndex shard, const Replica::Figures& figures);
  void note_role(ShardIndex shard);
  void set_role(ShardIndex shard, Replica::Role role);
  Replica& replica_of(ShardIndex shard);
  void lost(ShardIndex shard, std::string_view why);
  bool may_claim(ShardIndex shard, SteadyInstant now) const;

  const NodeOptions options_;
  ControlLog& control_;
  Transport& transport_;
  os::Time& time_;
  os::Entropy& entropy_;
  broker::Background& background_;
  const Outside outside_;
  const std::uint64_t process_;
  Router router_;
  std::unique_ptr<broker::Broker> broker_;
  std::vector<std::unique_ptr<Replica>> replicas_;  // By shard, each used on its loop.
  broker::Loop* loop_ = nullptr;
  std::atomic<std::uint32_t> format_{1};  // That is written. Set on the first loop.

  // On the first loop.
  ControlState state_;
  std::vector<ShardView> views_;  // By shard.
  std::map<ShardIndex, Beat::Reached> reached_;
  std::map<ShardIndex, Replica::Figures> figures_;  // As of the last beat.
  std::map<ShardIndex, std::string> given_up_;
  std::set<ShardIndex> other_past_;  // Of these; see Beat.
  Stalls stalls_;
  std::uint64_t beats_ = 0;       // Sent.
  std::uint64_t beats_read_ = 0;  // Of these, the last that was read.
  std::unique_ptr<broker::Alarm> alarm_;
  SteadyInstant next_beat_{};
  std::optional<SteadyInstant> claimed_at_;  // To be the coordinator.
  std::uint64_t claims_ = 0;
  bool draining_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace stanchion::fleet
