// The machine on which the broker runs: a disk, one process at a time, and everything that can go
// wrong with either.
//
//   boot ─▶ open, recover, verify ─▶ start ─▶ takes calls ─▶ crash | fatal | stop ─▶ boot …
//
// After every recovery it is checked, independently of the auditor's promises, that the journal
// returned exactly what was appended up to some position at or after the last durable one, that the
// engines' invariants hold, and that the engines equal ones that replay these records.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "broker/broker.h"
#include "broker/data_directory.h"
#include "engine/engine.h"
#include "os/sim_disk.h"
#include "sim/auditor.h"
#include "sim/service.h"
#include "sim/sim_journal.h"
#include "sim/sim_loop.h"
#include "sim/sim_store.h"
#include "sim/world.h"

namespace stanchion::sim {

struct ServerOptions {
  std::uint32_t shards = 1;
  int loops = 1;
  Micros commit_latency = 2 * kMillisecond;
  journal::SegmentOptions segments;
  bool has_store = true;
  broker::KeeperOptions keeping{};
  engine::MemoryOptions memory{};
  std::size_t decision_messages = limits::kDecisionMessagesMax;  // See engine::Options.
  // By shard, instead of commit_latency; then what is appended while a commit is under way is in the
  // next one. Otherwise it is in the one that is about to end.
  std::vector<Micros> commit_latencies{};
  Micros background_latency = 2 * kMillisecond;
  bool wall_jumps = false;  // The clock may have changed when the server is back.
};

class Server final : public Service {
 public:
  struct Statistics {
    std::uint64_t boots = 0, crashes = 0, crashes_in_recovery = 0, process_deaths = 0,
                  clean_stops = 0, failed_syncs = 0, failed_writes = 0, failed_stores = 0,
                  full_disks = 0, damages = 0, damages_refused = 0, cancels = 0, records = 0,
                  replays_compared = 0, torn_tails = 0, checkpoints = 0, recoveries_from_store = 0,
                  cold_reads = 0, cold_boots = 0;
  };

  Server(World& world, Auditor& auditor, const ServerOptions& options);
  ~Server() override;

  void boot();
  bool takes_calls() const override {
    return process_ != nullptr && process_->started && !stopping_;
  }
  CallNo call(Request request, Answered answered) override;
  bool vanish(CallNo call) override;

  // Faults.
  void crash();                                 // Power failure: what was not synced may be lost.
  void crash_within(std::uint64_t operations);  // The same, in the middle of a disk operation.
  void kill();                                  // The process dies, the machine stays up.
  void stop();                                  // A clean stop and a new start.
  void fail_sync(std::uint64_t n);
  void fail_write(std::uint64_t n);
  void fail_store();
  void fill_disk(std::uint64_t bytes_left);
  void free_disk();
  void damage_at_next_boot() { damage_wanted_ = true; }
  void crash_in_next_recovery() { crash_in_recovery_ = true; }
  void time_has_passed(bool tell);      // More than its timers know of.
  void move_time(std::int64_t millis);  // By order.
  void end_of_faults();

  // J8: time never runs back, and has the pace of the steady clock, within the permitted
  // correction.
  void watch_time();

  // Compares every engine with one that replays everything that was appended.
  void compare_with_replay();

  const Statistics& statistics() const { return statistics_; }
  std::uint64_t fingerprint() const;

 private:
  struct Process {
    Owner owner;
    Threads threads;
    std::unique_ptr<os::Directory> root;
    std::optional<broker::DataDirectory> data;
    std::vector<std::unique_ptr<os::Directory>> directories;
    std::vector<std::unique_ptr<SimLoop>> loops;
    std::unique_ptr<SimBackground> background;
    std::unique_ptr<os::Timekeeper> time;
    std::unique_ptr<broker::Broker> broker;
    os::TimeReading last_time;
    std::vector<std::unique_ptr<engine::Engine>> replayed;
    std::vector<std::size_t> replayed_records;
    bool started = false;
    bool dying = false;
  };
  struct Pending {
    Answered answered;
    std::optional<broker::Submission> submission;
    SimLoop* loop = nullptr;
    bool responded = false;
    bool vanished = false;
  };

  Result<std::unique_ptr<Process>> open();
  bool has_unreadable_queues(const Process& process) const;
  void verify(Process& process);
  void deliver(CallNo number, Request request);
  void respond(CallNo number, Reply reply);
  void end_process(bool power_lost);
  void lose_calls();
  void on_fatal(const Failure& failure);
  void try_damage();
  void boot_soon();
  void begin_time();
  void look_at_health();
  void clear_disk_faults();
  std::uint64_t checkpointed(std::uint32_t shard) const;
  void count_keeping();
  std::uint64_t fingerprint_of(std::uint32_t shard) const;

  World& world_;
  Auditor& auditor_;
  const ServerOptions options_;
  WorldClock clock_;
  WorldSteadyClock steady_;
  WorldEntropy entropy_;
  Random random_;
  os::SimDisk disk_;
  std::vector<History> histories_;
  std::vector<std::shared_ptr<store::MemoryStore>> stores_;
  StoreFaults store_faults_;
  std::unique_ptr<Process> process_;
  Owner next_owner_ = 1;
  bool stopping_ = false;
  bool faulty_ = false;  // A fault was set that may occur in any disk operation.
  bool full_ = false;
  Micros full_until_ = 0;  // A lack of space has effects for a while.
  bool closing_ = false;
  bool damage_wanted_ = false;
  bool crash_in_recovery_ = false;
  bool boot_scheduled_ = false;
  std::map<CallNo, Pending> pending_;
  Statistics statistics_;
};

}  // namespace stanchion::sim
