// A simulated fleet: nodes with stores and clocks of their own, the logs of the shards, the control
// log, and everything that can go wrong with them.
//
//   a client's call ─▶ any node ─▶ (the network) ─▶ the owner of the shard ─▶ its log ─▶ answer
//
// Nodes die, lose power, are cut off, and are paused for any time: then they are zombies, which go
// on where they were and do not know that they were replaced. The logs lose acknowledgements and
// take entries twice.
//
//   F1  Replicas of a shard that have read as much have the same state.
//   F2  After the faults every shard has an owner, and every replica catches up.
//   F3  A store contains what the records up to its checkpoint say.
//   F4  No node meets an entry of a format that it cannot read, although all are upgraded one after
//       the other, each when it boots again.
//   F5  Nodes do not take a log from each other without end.
//   F6  An owner writes behind the records that are in its log.
//   F7  A backup ends, and copies a store that has just what it was asked for.
//   F8  A store that is known to have other records than its log is not replaced by a copy.
//   F9  After the faults every transfer is settled.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fleet/node.h"
#include "sim/auditor.h"
#include "sim/fleet_links.h"
#include "sim/service.h"
#include "sim/shared_log.h"
#include "sim/sim_loop.h"
#include "sim/sim_store.h"
#include "sim/world.h"

namespace stanchion::sim {

struct FleetOptions {
  int nodes = 3;
  std::uint32_t shards = 2;
  int loops = 1;
  broker::KeeperOptions keeping{};
  engine::MemoryOptions memory{};
  std::size_t decision_messages = limits::kDecisionMessagesMax;  // See engine::Options.
  Micros background_latency = 2 * kMillisecond;
  Duration write_timeout = fleet::kWriteTimeout;
  Duration skew_max{0};             // How far the clocks of the nodes are apart at most.
  std::uint64_t operator_seed = 0;  // Of what the operator does, and of when the log is compacted.
  LogTrouble trouble{};
  std::uint64_t trouble_seed = 0;
  bool slow_copies = false;  // Things happen while a store is copied.
  FleetRules rules{};
};

class Fleet final : public Service {
 public:
  struct Statistics {
    std::uint64_t boots = 0, kills = 0, lost_disks = 0, pauses = 0, cuts = 0, drains = 0, moves = 0,
                  promotions = 0, losses = 0, releases = 0, copies = 0, refusals = 0, forwarded = 0,
                  held = 0, unknown = 0, comparisons = 0, given_up = 0, damages = 0, backups = 0,
                  partition_cuts = 0, pair_cuts = 0, stale_brokers = 0, litter = 0, fatal = 0,
                  broken_copies = 0, struck = 0, clocks = 0, removed_stores = 0, isolations = 0,
                  later_entries = 0;

    void add(const Statistics& other);
  };

  Fleet(World& world, Auditor& auditor, const FleetOptions& options);
  ~Fleet() override;

  void boot_all();
  bool takes_calls() const override { return true; }
  CallNo call(Request request, Answered answered) override;
  bool vanish(CallNo call) override;

  // Faults, of a node that the world chooses.
  void kill();
  void pause();
  void pause(std::size_t machine, Micros time) { pause(*machines_[machine], time); }
  void cut();
  void drain();
  void lose_disk();
  // The log of a shard cannot be read for a while.
  void damage();
  // All brokers and nodes fail at once, and the log of the shard comes back without its end.
  // What was acknowledged is gone, so no promises are audited after that.
  void lose_end(ShardIndex shard);
  // The same with everything that was in the log, as if its topic had been made anew.
  void make_log_anew(ShardIndex shard);
  // The log loses its newest records while all nodes run.
  void lose_newest(ShardIndex shard, std::uint64_t records);
  // All brokers and nodes fail at once, and the brokers come back with older disks.
  const SharedLog::Disk& disk_of(ShardIndex shard) const { return logs_[shard.value()]->disk(); }
  void restore_log(ShardIndex shard, const SharedLog::Disk& older);
  // An operator stops all nodes, removes their stores of the shard, and starts them again.
  void remove_stores(ShardIndex shard);
  // No node reaches the logs of the shards, as if Kafka had no quorum.
  void cut_logs(Micros time) {
    impaired_for(time + kSecond);
    for (auto& machine : machines_)
      for (Uplink& uplink : machine->uplinks) uplink.cut_until = world_.now() + time;
  }
  // The same for the others than the one that serves the shard, which all go on.
  void cut_logs_of_standbys(ShardIndex shard, Micros time);
  // The same for the one that serves it.
  void cut_log_of_owner(ShardIndex shard, Micros time);
  // The machine of the node that serves the shard burns, and comes back empty.
  void lose_disk_of_owner(ShardIndex shard);
  // All nodes are stopped and started again, with the newest program.
  void restart_all();
  // A machine has no links with the others for this time, but reads and writes all logs.
  void cut_links(std::size_t machine, Micros time) {
    impaired_for(time);
    network_.cut(machines_[machine]->name, time);
  }
  // A machine does not reach the control log, but all else.
  void cut_control(std::size_t machine, Micros time) {
    impaired_for(time + kAftermath);
    machines_[machine]->control_uplink.cut_until = world_.now() + time;
  }
  // Percent of the verdicts about transfers, from now on.
  void lose_verdicts(unsigned percent) { trouble_.verdicts_lost = percent; }
  // Somebody claims the log of a shard late, serves it for a moment, and gives way.
  void claim_late(ShardIndex shard);
  // A machine reaches some partitions, of the control log and of the shards', and others not.
  void cut_partitions();
  // Two machines have no link with each other for a while; the others have theirs.
  void cut_pair();
  void cut_pair(std::size_t one, std::size_t other, Micros time);
  // A machine has no links for so long that clients, who go by readiness, do not call it any more, and
  // must be served by the others.
  void isolate();
  // A machine reads a log from a broker that leads no longer.
  void read_from_stale_broker();
  // Somebody writes a log who is no node, or an entry is damaged for good: an operator skips it. Or a node
  // of a later release was there, and all others have to be upgraded.
  void litter();
  // A node that has handed a message over is killed before it knows what became of it.
  void strike();
  void set_clock();
  // Something that an operator wants.
  void request_move();
  void back_up();
  void back_up_owner(ShardIndex shard, const std::function<void(const Status&)>& ended);
  void end_of_faults();
  void time_has_passed();  // More than the nodes know of.

  // F1 and F2.
  bool is_whole() const;
  // The same where a log has lost something: whoever has more than it has given the shard up. If nobody
  // serves the shard, that is why, or nobody can read its log: an owner that did not know of the loss
  // has written behind it.
  bool is_settled() const { return is_settled(false); }
  // … or would be but for those that have no store, and ask for a copy for ever: nobody has one that
  // the log, which was trimmed, goes on from.
  bool is_held_back() const { return is_settled(true); }
  bool has_transfers() const;  // F9
  // How many nodes have heard that the log of the shard takes nothing from its owner.
  std::size_t know_of_stall(ShardIndex shard) const;
  std::string describe_replicas() const;
  void compare_replicas();

  Statistics statistics() const;

 private:
  bool is_settled(bool without_copies) const;
  // After a fault, how long its effects may be felt: nodes have to be taken for dead, requests are
  // held, and stores are copied.
  static constexpr Micros kAftermath = 20 * kSecond;
  static constexpr std::uint32_t kDigestFormat = 2;
  static constexpr const char* kTooNew = "its log continues with entries that only a later release";

  struct Process {
    Owner owner;
    Threads threads;
    std::vector<std::unique_ptr<SimLoop>> loops;
    std::unique_ptr<SimBackground> background;
    std::unique_ptr<os::Timekeeper> time;
    std::unique_ptr<SimControlLog> control;
    std::unique_ptr<SimTransport> transport;
    std::unique_ptr<fleet::Node> node;
  };
  // What the others had when a copy began.
  struct Copying {
    struct Source {
      fleet::NodeName name;
      Owner owner;
      std::vector<std::shared_ptr<store::MemoryStore>> stores;
    };
    std::vector<Source> sources;
    std::vector<std::uint64_t> openings;
  };
  struct Machine {
    fleet::NodeName name;
    std::string zone;
    std::unique_ptr<WorldClock> clock;
    std::vector<Uplink> uplinks;  // To the logs of the shards.
    Uplink control_uplink;
    std::vector<std::shared_ptr<store::MemoryStore>> stores;
    std::vector<std::uint64_t> openings;           // Of the stores.
    std::vector<std::set<std::uint64_t>> skipped;  // Offsets of the logs, as the node knows.
    std::optional<Copying> copying;                // While one takes time.
    std::set<ShardIndex> other_past;               // Noted beside the stores.
    StoreFaults faults;
    std::map<ShardIndex, std::weak_ptr<bool>> backups;  // Under way; true: copied.
    std::unique_ptr<Process> process;
    bool booting = false;
    Micros isolated_from = 0, isolated_until = 0;  // See isolate().
    std::uint32_t format = 0;  // The newest that its program reads; see choose_program().
  };
  struct Pending {
    Answered answered;
    Machine* machine = nullptr;  // That took the call.
    SimLoop* loop = nullptr;
    std::optional<broker::Submission> submission;
    bool responded = false;
    bool vanished = false;
  };

  Machine& some_machine();
  bool is_isolated(const Machine& machine) const {
    return machine.isolated_from <= world_.now() && world_.now() < machine.isolated_until;
  }
  Machine& ready_machine();
  Machine& owner_of(ShardIndex shard);
  void burn(Machine& machine);
  void pause(const Machine& machine, Micros time);
  void boot(Machine& machine);
  void choose_program(Machine& machine) const;
  bool are_all_known() const;
  void litter_of_a_later_release(ShardIndex shard);
  void upgrade(std::uint32_t format);
  fleet::NodeOptions node_options(const Machine& machine) const;
  fleet::Node::Outside outside_of(Machine& machine, Owner owner);
  void end_process(Machine& machine);
  void boot_soon(Machine& machine);
  void impaired_for(Micros time);
  Status copy_store(Machine& machine, ShardIndex shard);
  Status end_copy(Machine& machine, ShardIndex shard);
  static void check_may_be_replaced(const Machine& machine, ShardIndex shard);
  void begin_copy(Machine& machine);
  void back_up(Machine& machine, ShardIndex shard, const std::function<void(const Status&)>& ended);
  void end_soon(Machine& machine, Owner owner);
  void remove_store(Machine& machine, ShardIndex shard);
  void strike_when_something_leaves(int looks);
  bool may_give_up(const Failure& why) const;
  Machine* sender() const;
  void check_store(const Machine& machine, ShardIndex shard);
  void deliver(CallNo number, Request request);
  void respond(CallNo number, Reply reply);
  void answer(CallNo number, const Reply* reply);
  void count(const Process& process);
  static std::uint64_t checkpointed(const store::MemoryStore& store);
  std::uint64_t checkpointed(const Machine& machine, ShardIndex shard) const {
    return checkpointed(*machine.stores[shard.value()]);
  }

  World& world_;
  Auditor& auditor_;
  const FleetOptions options_;
  WorldSteadyClock steady_;
  WorldEntropy entropy_;
  Random random_;
  Random operator_;     // A stream of its own.
  Random troubled_;     // Another one.
  Random later_;        // And of what came later.
  LogTrouble trouble_;  // Until the faults end.
  std::set<fleet::NodeName> drained_;
  std::vector<std::unique_ptr<SharedLog>> logs_;
  ControlRecords control_;
  Network network_;
  std::vector<std::unique_ptr<Machine>> machines_;
  Owner next_owner_ = 1;
  Micros impaired_until_ = 0;
  Micros isolated_until_ = 0;                    // One machine at a time.
  std::uint32_t newest_format_ = kDigestFormat;  // Of the programs that machines can boot with.
  std::uint32_t newest_met_ = 0;                 // Of the entries of later releases.
  bool faults_ = true;
  bool lost_an_end_ = false;
  std::map<CallNo, Pending> pending_;
  std::set<CallNo> vanished_;  // Their clients went away: whatever is answered, nobody hears it.
  Statistics statistics_;
};

}  // namespace stanchion::sim
