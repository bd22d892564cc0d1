#include "sim/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "sim/describe.h"

namespace stanchion::sim {

Server::Server(World& world, Auditor& auditor, const ServerOptions& options)
    : world_(world),
      auditor_(auditor),
      options_(options),
      clock_(world),
      steady_(world),
      entropy_(world.random().fork()),
      random_(world.random().fork()),
      histories_(options.shards) {
  for (std::uint32_t i = 0; i < options.shards; ++i)
    stores_.push_back(std::make_shared<store::MemoryStore>());
}

Server::~Server() {
  if (!process_) return;
  world_.forget(process_->owner);
  world_.leave(process_->time.get());
}

Result<std::unique_ptr<Server::Process>> Server::open() {
  auto process = std::make_unique<Process>();
  process->owner = next_owner_++;
  process->threads.slowness = random_.chance(50) ? 20 : 2000;
  process->root = disk_.root();
  auto data = broker::DataDirectory::open(*process->root, options_.shards);
  if (!data) return std::unexpected(data.error());
  process->data.emplace(std::move(*data));
  for (int i = 0; i < options_.loops; ++i)
    process->loops.push_back(
        std::make_unique<SimLoop>(world_, process->owner, process->threads, i));
  process->background =
      std::make_unique<SimBackground>(world_, process->owner, options_.background_latency);
  const auto open_shard = [&](ShardIndex shard) -> Result<broker::Broker::Storage> {
    auto directory = process->data->shard_directory(shard);
    if (!directory) return std::unexpected(directory.error());
    process->directories.push_back(std::move(*directory));
    auto log = journal::SegmentLog::open(*process->directories.back(), {shard, options_.shards},
                                         options_.segments, entropy_, world_.wall());
    if (!log) return std::unexpected(log.error());
    statistics_.torn_tails += (*log)->recovery().torn_bytes > 0;
    // It has synced what it found, and a replay may make checkpoints of that: also if this start
    // fails later.
    History& history = histories_[shard.value()];
    history.durable = std::max(history.durable, (*log)->next_position().value() - 1);
    broker::Broker::Storage storage;
    const bool apart = !options_.commit_latencies.empty();
    storage.journal = std::make_unique<SimJournal>(
        world_, process->owner, std::move(*log), histories_[shard.value()],
        apart ? options_.commit_latencies[shard.value()] : options_.commit_latency, apart,
        [this, shard] { return checkpointed(shard.value()); });
    if (options_.has_store)
      storage.store =
          std::make_shared<SimStore>(stores_[shard.value()], store_faults_, world_.random().fork());
    return storage;
  };
  process->time = std::make_unique<os::Timekeeper>(clock_, steady_);
  auto opened = broker::Broker::open({.shards = process->data->shard_count(),
                                      .strict = false,
                                      .keeping = options_.keeping,
                                      .memory = options_.memory,
                                      .decision_messages = options_.decision_messages,
                                      .parallel_recovery = false},
                                     open_shard, *process->time, entropy_);
  if (!opened) return std::unexpected(opened.error());
  process->broker = std::move(*opened);
  return process;
}

bool Server::has_unreadable_queues(const Process& process) const {
  for (std::uint32_t i = 0; i < options_.shards; ++i)
    if (process.broker->shard(ShardIndex(i)).engine().has_unreadable()) return true;
  return false;
}

// Checks that recovery found a prefix of what was appended, including everything that was durable.
void Server::verify(Process& process) {
  for (std::uint32_t i = 0; i < options_.shards; ++i) {
    History& history = histories_[i];
    const broker::Shard& shard = process.broker->shard(ShardIndex(i));
    const std::uint64_t found = shard.journal().next_position().value() - 1;
    if (found < history.durable)
      throw Violation(fmt::format("J1: shard {} came back with {} records; {} were durable", i,
                                  found, history.durable));
    const std::uint64_t loaded = shard.keeper().loaded_position().value();
    if (loaded > history.durable)
      throw Violation(fmt::format("J5: shard {} has a checkpoint of {} records; {} were durable", i,
                                  loaded, history.durable));
    if (found > history.records.size() || found != loaded + shard.records_replayed())
      throw Violation(
          fmt::format("J1: shard {} came back with {} records, {} of them in its checkpoint, and "
                      "replayed {}; {} were ever appended",
                      i, found, loaded, shard.records_replayed(), history.records.size()));
    statistics_.recoveries_from_store += loaded > 0;
    shard.engine().for_each_queue([&](const engine::Queue& queue) {
      statistics_.cold_boots += !queue.stock().residency().cold().empty();
    });
    history.records.resize(static_cast<std::size_t>(found));
    history.durable = found;
    process.replayed.push_back(std::make_unique<engine::Engine>(engine::Options{ShardIndex(i)}));
    process.replayed_records.push_back(0);
    shard.engine().check_invariants();
  }
}

void Server::boot_soon() {
  if (boot_scheduled_) return;
  boot_scheduled_ = true;
  world_.schedule(random_.between<Micros>(1, 3000) * kMillisecond, kWorldOwner, [this] {
    boot_scheduled_ = false;
    boot();
  });
}

void Server::begin_time() {
  if (options_.wall_jumps && random_.chance(30)) {
    const auto seconds = random_.pick<std::int64_t>({-86'400, -7200, -7200, -60, -1, 1, 70, 600});
    world_.move_wall(seconds * 1000);
    world_.trace("the wall clock is off by {} s at the start", seconds);
  }
  const Instant last = process_->broker->last_recorded();
  process_->time->begin(last);
  process_->last_time = process_->time->peek();
  if (process_->last_time.now < last) throw Violation("J8: time begins before the last record");
  world_.join(process_->time.get());
  auditor_.time_began();
}

void Server::watch_time() {
  if (!process_) return;
  constexpr Duration kRounding(2);
  const os::TimeReading now = process_->time->peek();
  const os::TimeReading before = std::exchange(process_->last_time, now);
  const Duration passed = now.now - before.now;
  const Duration steady = now.steady - before.steady;
  if (passed < Duration(0) || passed < steady - steady / os::Timekeeper::kSlowerBy - kRounding ||
      passed > steady + steady / os::Timekeeper::kFasterBy + kRounding)
    throw Violation(
        fmt::format("J8: time moved by {} ms in {} ms", passed.count(), steady.count()));
}

void Server::boot() {
  CHECK(process_ == nullptr, "one process at a time");
  if (damage_wanted_) try_damage();
  if (crash_in_recovery_) {
    crash_in_recovery_ = false;
    faulty_ = true;
    if (random_.chance(70)) {
      disk_.power_off_after(random_.below(40));
    } else {
      store_faults_.reads_fail = true;
    }
  }
  auto opened = open();
  // A start that cannot read which messages of a queue are delayed sets that queue aside. Nothing
  // here damages a store for good, so such a start is treated as one that was refused.
  if (opened && has_unreadable_queues(**opened)) opened = fail("a queue cannot be read");
  if (!opened) {
    world_.trace("boot failed: {}", opened.error().message);
    if (!faulty_ && !store_faults_.failed)
      throw Violation("J2: recovery was refused: " + opened.error().message);
    store_faults_.failed = false;
    ++statistics_.crashes_in_recovery;
    clear_disk_faults();
    disk_.crash(random_.next());
    return boot_soon();
  }
  process_ = std::move(*opened);
  ++statistics_.boots;
  stopping_ = false;
  verify(*process_);
  begin_time();
  compare_with_replay();
  world_.trace("boot: {} records in shard 0", histories_[0].records.size());
  std::vector<broker::Loop*> loops;
  for (auto& loop : process_->loops) loops.push_back(loop.get());
  // Nothing here damages a store, so a queue that is set aside is as bad as a dead process.
  process_->broker->watch_damage(
      [this](const QueueRef&, const Failure& failure) { on_fatal(failure); });
  process_->broker->start(
      std::move(loops), *process_->background,
      [process = process_.get()] { process->started = true; },
      [this](const Failure& failure) { on_fatal(failure); });
}

// Bits flip on the platter while the server is down. The next start must report that, or not be
// harmed.
void Server::try_damage() {
  damage_wanted_ = false;
  const std::uint32_t shard = static_cast<std::uint32_t>(random_.below(options_.shards));
  const std::string folder = fmt::format("shard-{:03}", shard);
  auto root = disk_.root();
  auto directory = root->open_directory(folder);
  if (!directory) return;
  const auto names = (*directory)->list();
  if (!names) return;
  std::vector<std::string> segments;
  for (const std::string& name : *names)
    if (name.ends_with(".segment")) segments.push_back(name);
  if (segments.size() < 2) return;
  segments.pop_back();
  const std::string path = folder + "/" + random_.pick(segments);
  const std::string original = disk_.content(path).value();
  std::string damaged = original;
  const std::size_t at = static_cast<std::size_t>(random_.below(damaged.size()));
  damaged[at] = static_cast<char>(damaged[at] ^ (1 << random_.below(8)));
  disk_.put(path, damaged);
  ++statistics_.damages;
  {
    auto opened = open();
    if (opened) {
      for (std::uint32_t i = 0; i < options_.shards; ++i)
        if (const broker::Shard& found = (*opened)->broker->shard(ShardIndex(i));
            found.keeper().loaded_position().value() + found.records_replayed() <
            histories_[i].durable)
          throw Violation(
              fmt::format("J3: {} was damaged at {} and records were lost silently", path, at));
    } else {
      ++statistics_.damages_refused;
      world_.trace("damage was refused: {}", opened.error().message);
    }
  }
  disk_.restart_process();
  disk_.put(path, original);
}

void Server::compare_with_replay() {
  if (!process_) return;
  for (std::uint32_t i = 0; i < options_.shards; ++i) {
    const broker::Shard& shard = process_->broker->shard(ShardIndex(i));
    engine::Engine& replayed = *process_->replayed[i];
    std::size_t& done = process_->replayed_records[i];
    for (; done < histories_[i].records.size(); ++done) {
      const auto record = parse_record(histories_[i].records[done]);
      if (!record) throw Violation("J4: a record cannot be read: " + record.error().message);
      replayed.advance(record->at);
      for (const Fact& fact : record->facts) replayed.apply(fact, record->at);
    }
    shard.engine().check_invariants();
    replayed.check_invariants();
    replayed.advance(shard.now());
    // What falls due at the very instant of a decision happens when the clock is next read.
    if (shard.engine().next_deadline() <= shard.now() || shard.engine().stalled()) continue;
    if (replayed.fingerprint() != fingerprint_of(i))
      throw Violation(fmt::format("J4: shard {} is not what its {} records say", i, done));
    world_.mix(replayed.fingerprint());
    ++statistics_.replays_compared;
  }
}

// A hash of the whole state, in memory and in the store.
std::uint64_t Server::fingerprint_of(std::uint32_t shard) const {
  return process_->broker->shard(ShardIndex(shard))
      .engine()
      .fingerprint([&](const KeyRange& range) {
        const auto scan = [&](const KeyRange& keys, const auto& visit) {
          return stores_[shard]->scan(keys, visit);
        };
        auto found = engine::Engine::read({.range = range}, scan);
        if (!found) throw Violation("J6: a message in the store cannot be read");
        return std::move(*found);
      });
}

// The position in the shard's record; see docs/formats.md.
std::uint64_t Server::checkpointed(std::uint32_t shard) const {
  const auto record = stores_[shard]->get(engine::shard_key());
  if (!record || !*record) return 0;
  ByteReader reader(**record);
  reader.u8();
  return reader.u64();
}

void Server::count_keeping() {
  for (std::uint32_t i = 0; i < options_.shards; ++i) {
    const broker::Keeper& keeper = process_->broker->shard(ShardIndex(i)).keeper();
    statistics_.checkpoints += keeper.checkpoints();
    statistics_.cold_reads += keeper.reads();
  }
}

CallNo Server::call(Request request, Answered answered) {
  const CallNo number = auditor_.submitted(request);
  world_.trace("call {}: {}", number, describe(request));
  pending_[number].answered = std::move(answered);
  const Micros way = static_cast<Micros>(random_.below(2000));
  world_.schedule(way, kWorldOwner, [this, number, request = std::move(request)]() mutable {
    deliver(number, std::move(request));
  });
  return number;
}

void Server::deliver(CallNo number, Request request) {
  const auto found = pending_.find(number);
  if (found == pending_.end()) return;
  if (!takes_calls()) {
    auto answered = std::move(found->second.answered);
    pending_.erase(found);
    auditor_.never_happened(number);
    world_.trace("call {}: nobody listens", number);
    return answered(nullptr);
  }
  SimLoop& loop = *process_->loops[static_cast<std::size_t>(random_.below(process_->loops.size()))];
  found->second.loop = &loop;
  broker::Task submit = [this, number, &loop, request = std::move(request)]() mutable {
    const broker::Submission submission =
        process_->broker->submit(loop, std::move(request), [this, number, &loop](Reply reply) {
          CHECK(closing_ || loop.is_current(), "an answer comes back on the loop that asked");
          respond(number, std::move(reply));
        });
    if (const auto still = pending_.find(number); still != pending_.end())
      still->second.submission = submission;
  };
  loop.run(submit);
}

void Server::respond(CallNo number, Reply reply) {
  const auto found = pending_.find(number);
  if (found == pending_.end() || found->second.responded)
    throw Violation(
        fmt::format("A9: call {} was answered twice, or after it was taken back", number));
  if (closing_) return;  // Its connection is gone.
  found->second.responded = true;
  // From here on the answer is on the network and survives the process.
  const Micros way = static_cast<Micros>(random_.below(2000));
  world_.schedule(way, kWorldOwner, [this, number, reply = std::move(reply)] {
    auto node = pending_.extract(number);
    if (node.mapped().vanished) {
      // The client is gone: nobody knows what was received.
      auditor_.in_doubt(number);
      world_.trace("call {}: answered nobody", number);
      return;
    }
    world_.trace("call {}: {}", number, describe(reply));
    auditor_.replied(number, reply);
    node.mapped().answered(&reply);
  });
}

bool Server::vanish(CallNo number) {
  const auto found = pending_.find(number);
  if (found == pending_.end() || !found->second.submission || found->second.responded ||
      found->second.vanished)
    return false;
  ++statistics_.cancels;
  found->second.vanished = true;
  world_.trace("call {}: its client goes away", number);
  const broker::Submission submission = *found->second.submission;
  broker::Task cancel = [this, submission] { process_->broker->cancel(submission); };
  found->second.loop->run(cancel);
  // A receive that was parked is never answered now; one that had been served is answered soon.
  world_.schedule(3 * kSecond, process_->owner, [this, number] {
    const auto still = pending_.find(number);
    if (still == pending_.end() || still->second.responded) return;
    pending_.erase(still);
    auditor_.never_happened(number);
  });
  return true;
}

void Server::lose_calls() {
  std::vector<CallNo> lost;
  for (const auto& [number, pending] : pending_)
    if (pending.loop != nullptr && !pending.responded) lost.push_back(number);
  for (const CallNo number : lost) {
    auto node = pending_.extract(number);
    auditor_.in_doubt(number);
    world_.trace("call {}: lost", number);
    if (node.mapped().vanished) continue;
    // The client notices a little later.
    world_.schedule(
        random_.between<Micros>(1, 100) * kMillisecond, kWorldOwner,
        [answered = std::move(node.mapped().answered)]() mutable { answered(nullptr); });
  }
}

void Server::end_process(bool power_lost) {
  if (!process_) return;
  compare_with_replay();
  count_keeping();
  world_.forget(process_->owner);
  lose_calls();
  world_.leave(process_->time.get());
  process_.reset();
  statistics_.failed_stores += std::exchange(store_faults_.failed, false);
  stopping_ = false;
  look_at_health();
  clear_disk_faults();
  if (power_lost) {
    disk_.crash(random_.next());
  } else {
    disk_.restart_process();
  }
  boot_soon();
}

void Server::crash() {
  if (!process_) return;
  ++statistics_.crashes;
  world_.trace("the power goes");
  end_process(true);
}

void Server::crash_within(std::uint64_t operations) {
  if (!process_) return;
  faulty_ = true;
  disk_.power_off_after(operations);
}

void Server::kill() {
  if (!process_) return;
  ++statistics_.process_deaths;
  world_.trace("the process is killed");
  end_process(false);
}

void Server::stop() {
  if (!takes_calls()) return;
  stopping_ = true;
  look_at_health();
  world_.trace("the server is asked to stop");
  process_->broker->drain();
  world_.schedule(random_.between<Micros>(0, 200) * kMillisecond, process_->owner, [this] {
    ++statistics_.clean_stops;
    closing_ = true;
    const Status closed = process_->broker->close();
    closing_ = false;
    world_.trace("the server stops: {}", closed ? "cleanly" : closed.error().message);
    if (!closed && !faulty_) throw Violation("J2: a clean stop failed: " + closed.error().message);
    if (closed)
      for (const History& history : histories_)
        if (history.durable != history.records.size())
          throw Violation("J1: a clean stop left records that are not durable");
    end_process(!closed);
  });
}

void Server::on_fatal(const Failure& failure) {
  world_.trace("fatal: {}", failure.message);
  if (!faulty_ && !store_faults_.failed)
    throw Violation("J2: the disk failed without a fault: " + failure.message);
  if (process_->dying) return;
  process_->dying = true;
  look_at_health();
  const bool power_lost = random_.chance(50);
  // Other threads go on for a moment until the process has ended.
  world_.schedule(random_.between<Micros>(0, 500), process_->owner, [this, power_lost] {
    ++(power_lost ? statistics_.crashes : statistics_.process_deaths);
    end_process(power_lost);
  });
}

void Server::fail_sync(std::uint64_t n) {
  if (!process_) return;
  ++statistics_.failed_syncs;
  faulty_ = store_faults_.failing = true;
  disk_.fail_sync(n);
}

void Server::fail_write(std::uint64_t n) {
  if (!process_) return;
  ++statistics_.failed_writes;
  faulty_ = store_faults_.failing = true;
  disk_.fail_write(n);
}

void Server::fail_store() {
  if (!process_) return;
  store_faults_.failing = store_faults_.reads_fail = true;
}

void Server::fill_disk(std::uint64_t bytes_left) {
  if (histories_[0].records.empty()) return;  // A directory must be created before it can be full.
  ++statistics_.full_disks;
  full_ = store_faults_.full = true;
  look_at_health();
  disk_.set_capacity(disk_.used() + bytes_left);
  world_.trace("the disk is full");
}

void Server::free_disk() {
  if (!full_) return;
  full_ = store_faults_.full = false;
  disk_.set_capacity(std::uint64_t{1} << 60);
  world_.trace("the disk has space again");
  // The server checks for space once a second.
  full_until_ = world_.now() + 5 * kSecond;
  world_.schedule(5 * kSecond, kWorldOwner, [this] { look_at_health(); });
}

void Server::look_at_health() {
  auditor_.impaired(full_ || world_.now() < full_until_ || stopping_ ||
                    (process_ && process_->dying));
  auditor_.disk_full(full_ || world_.now() < full_until_);
  auditor_.failing(process_ && process_->dying);
}

void Server::move_time(std::int64_t millis) {
  if (!process_) return;
  process_->time->advance(Duration(millis));
  time_has_passed(true);
}

void Server::time_has_passed(bool tell) {
  if (!tell || !takes_calls()) return;
  SimLoop& loop = *process_->loops.front();
  broker::Task move = [this, &loop] { process_->broker->time_was_moved(loop, [] {}); };
  loop.run(move);
}

void Server::end_of_faults() {
  free_disk();
  damage_wanted_ = crash_in_recovery_ = false;
  clear_disk_faults();
}

void Server::clear_disk_faults() {
  faulty_ = store_faults_.failing = store_faults_.reads_fail = false;
  disk_.fail_sync(0);
  disk_.fail_write(0);
  disk_.power_off_after(std::uint64_t{1} << 60);
}

std::uint64_t Server::fingerprint() const {
  return disk_.fingerprint();
}

}  // namespace stanchion::sim
