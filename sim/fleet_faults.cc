// What goes wrong in a fleet, and what its operator does.
#include <algorithm>
#include <utility>

#include "sim/fleet.h"

namespace stanchion::sim {

void Fleet::kill() {
  Machine& machine = some_machine();
  if (!machine.process) return;
  ++statistics_.kills;
  world_.trace("{} is killed", machine.name);
  impaired_for(kAftermath);
  end_process(machine);
}

// The machine burns, and comes back empty.
void Fleet::lose_disk() {
  if (!is_whole()) return;
  burn(some_machine());
}

void Fleet::lose_disk_of_owner(ShardIndex shard) {
  burn(owner_of(shard));
}

void Fleet::burn(Machine& machine) {
  ++statistics_.lost_disks;
  world_.trace("{} loses its disk", machine.name);
  impaired_for(kAftermath);
  end_process(machine);
  for (auto& store : machine.stores) store = std::make_shared<store::MemoryStore>();
  machine.other_past.clear();
}

Fleet::Machine& Fleet::owner_of(ShardIndex shard) {
  for (const auto& machine : machines_) {
    const fleet::Replica* replica =
        machine->process ? machine->process->node->replica(shard) : nullptr;
    if (replica != nullptr && replica->serving()) return *machine;
  }
  throw Violation(fmt::format("nobody serves shard {}", shard.value()));
}

void Fleet::cut_logs_of_standbys(ShardIndex shard, Micros time) {
  const Machine& owner = owner_of(shard);
  impaired_for(time + kSecond);
  for (const auto& machine : machines_)
    if (machine.get() != &owner) machine->uplinks[shard.value()].cut_until = world_.now() + time;
}

void Fleet::cut_log_of_owner(ShardIndex shard, Micros time) {
  impaired_for(time + kSecond);
  owner_of(shard).uplinks[shard.value()].cut_until = world_.now() + time;
}

void Fleet::pause() {
  Machine& machine = some_machine();
  if (!machine.process || world_.is_paused(machine.process->owner)) return;
  const Micros time =
      random_.pick<Micros>({50 * kMillisecond, kSecond, 2 * kSecond, 4 * kSecond, 30 * kSecond}) +
      static_cast<Micros>(random_.below(kSecond));
  pause(machine, time);
}

void Fleet::pause(const Machine& machine, Micros time) {
  ++statistics_.pauses;
  world_.trace("{} is paused for {} ms", machine.name, time / kMillisecond);
  impaired_for(time + kAftermath);
  world_.pause(machine.process->owner, time);
}

void Fleet::cut() {
  Machine& machine = some_machine();
  ++statistics_.cuts;
  const Micros time = random_.pick<Micros>({100 * kMillisecond, 2 * kSecond, 10 * kSecond}) +
                      static_cast<Micros>(random_.below(kSecond));
  world_.trace("{} is cut off for {} ms", machine.name, time / kMillisecond);
  impaired_for(time + kAftermath);
  // The logs may be out of reach, the other nodes, or both; and of the logs some, if another broker
  // leads the rest.
  const std::uint64_t what = random_.below(3);
  const std::uint64_t logs = what == 0 ? 0 : 1 + random_.below(3);
  const auto cut_until = [&](Uplink& uplink) {
    uplink.cut_until = std::max(uplink.cut_until, world_.now() + time);
  };
  if (logs == 1 || logs == 2) cut_until(machine.control_uplink);
  if (logs == 1 || logs == 3) std::ranges::for_each(machine.uplinks, cut_until);
  if (what != 1) network_.cut(machine.name, time);
}

// Other brokers lead other partitions.
void Fleet::cut_partitions() {
  Machine& machine = *machines_[static_cast<std::size_t>(troubled_.below(machines_.size()))];
  ++statistics_.partition_cuts;
  std::vector<Uplink*> uplinks{&machine.control_uplink};
  for (Uplink& uplink : machine.uplinks) uplinks.push_back(&uplink);
  for (Uplink* uplink : uplinks) {
    if (!troubled_.chance(40)) continue;
    const Micros time = troubled_.pick<Micros>({100 * kMillisecond, 2 * kSecond, 10 * kSecond}) +
                        static_cast<Micros>(troubled_.below(kSecond));
    world_.trace("{} does not reach partition {} for {} ms", machine.name,
                 uplink == uplinks.front() ? -1 : uplink - machine.uplinks.data(),
                 time / kMillisecond);
    impaired_for(time + kAftermath);
    uplink->cut_until = std::max(uplink->cut_until, world_.now() + time);
  }
}

void Fleet::cut_pair() {
  const auto one = static_cast<std::size_t>(troubled_.below(machines_.size()));
  const auto other = (one + 1 + troubled_.below(machines_.size() - 1)) % machines_.size();
  const Micros time = troubled_.pick<Micros>({100 * kMillisecond, 3 * kSecond, 20 * kSecond}) +
                      static_cast<Micros>(troubled_.below(kSecond));
  cut_pair(one, other, time);
}

void Fleet::cut_pair(std::size_t one, std::size_t other, Micros time) {
  ++statistics_.pair_cuts;
  world_.trace("{} and {} have no link for {} ms", machines_[one]->name, machines_[other]->name,
               time / kMillisecond);
  impaired_for(time + kAftermath);
  network_.cut(machines_[one]->name, machines_[other]->name, time, troubled_);
}

void Fleet::isolate() {
  Machine& machine = *machines_[static_cast<std::size_t>(troubled_.below(machines_.size()))];
  const Micros time = troubled_.between<Micros>(30, 90) * kSecond;
  // Of two nodes any may be the one that goes on. The first programs say nothing of links.
  const bool can_tell = std::ranges::all_of(
      machines_, [](const auto& each) { return each->format >= kDigestFormat && each->process; });
  if (machines_.size() < 3 || !can_tell || world_.now() < isolated_until_) return;
  ++statistics_.isolations;
  world_.trace("{} has no links for {} ms", machine.name, time / kMillisecond);
  isolated_until_ = world_.now() + time + kAftermath;
  machine.isolated_from = world_.now() + kAftermath / 2;
  machine.isolated_until = world_.now() + time;
  impaired_for(kAftermath);
  network_.cut(machine.name, time);
  world_.schedule(time, kWorldOwner, [this] { impaired_for(kAftermath); });
}

void Fleet::read_from_stale_broker() {
  Machine& machine = *machines_[static_cast<std::size_t>(troubled_.below(machines_.size()))];
  const auto shard = static_cast<std::size_t>(troubled_.below(options_.shards));
  Uplink& uplink = machine.uplinks[shard];
  const std::uint64_t end = logs_[shard]->end().value();
  const Micros time = troubled_.between<Micros>(50, 3000) * kMillisecond;
  ++statistics_.stale_brokers;
  uplink.stale_until = world_.now() + time;
  uplink.stale_end = journal::LogOffset(end - std::min(end, 1 + troubled_.below(30)));
  world_.trace("{} reads shard {} from a broker that has it up to {} of {}, for {} ms",
               machine.name, shard, uplink.stale_end.value(), end, time / kMillisecond);
  // Who has given up tries again within twice the time.
  impaired_for(2 * time + 4 * kSecond + kAftermath);
}

void Fleet::litter() {
  const ShardIndex shard(static_cast<std::uint32_t>(troubled_.below(options_.shards)));
  SharedLog::Entry entry;
  const bool is_damaged = troubled_.chance(30);
  const bool may_be_later = is_damaged && options_.rules.has_latest_faults();
  if (may_be_later && later_.chance(40)) return litter_of_a_later_release(shard);
  entry.litter = is_damaged ? SharedLog::Litter::kDamaged : SharedLog::Litter::kStrange;
  const journal::LogOffset at = logs_[shard.value()]->append(std::move(entry), world_.now());
  ++statistics_.litter;
  world_.trace("there is litter in shard {} at {}{}", shard.value(), at.value(),
               is_damaged ? ", which looks like an entry" : "");
  if (!is_damaged) return;
  const Micros noticed = troubled_.between<Micros>(1, 8000) * kMillisecond;
  impaired_for(noticed + kAftermath);
  world_.schedule(noticed, kWorldOwner, [this, shard, at] {
    world_.trace("an operator skips {} of shard {}", at.value(), shard.value());
    impaired_for(kAftermath);
    control_.append(fleet::Skip{.shard = shard, .offset = at.value(), .by = {}});
  });
}

// It was there for a moment, and may have taken the shard. Nobody else can say what its entry is worth,
// so an operator upgrades all, one after the other.
void Fleet::litter_of_a_later_release(ShardIndex shard) {
  SharedLog& log = *logs_[shard.value()];
  SharedLog::Entry entry;
  entry.litter = SharedLog::Litter::kLater;
  entry.format = newest_met_ = newest_format_ + 1;
  entry.head.writer = later_.next() | 1;
  const bool is_claim = later_.chance(50);
  entry.head.kind = is_claim ? journal::LogEntryKind::kClaim : journal::LogEntryKind::kBarrier;
  entry.head.epoch = is_claim ? log.epoch().next() : log.epoch();
  entry.head.first = log.next();
  const journal::LogOffset at = log.append(std::move(entry), world_.now());
  ++statistics_.litter;
  ++statistics_.later_entries;
  world_.trace("a node of a later release has written to shard {} at {}{}", shard.value(),
               at.value(), is_claim ? ", a claim" : "");
  const Micros noticed = later_.between<Micros>(1, 8000) * kMillisecond;
  impaired_for(noticed + kAftermath);
  world_.schedule(noticed, kWorldOwner, [this, format = newest_met_] { upgrade(format); });
}

// Not before all were heard of; see choose_program().
void Fleet::upgrade(std::uint32_t format) {
  const auto behind = std::ranges::find_if(
      machines_, [&](const auto& machine) { return machine->format < format; });
  if (behind == machines_.end()) return;
  impaired_for(kAftermath);
  newest_format_ = std::max(newest_format_, format);
  if (are_all_known() && (*behind)->process) {
    world_.trace("an operator upgrades {}", (*behind)->name);
    end_process(**behind);
  }
  world_.schedule(later_.between<Micros>(1, 3) * kSecond, kWorldOwner,
                  [this, format] { upgrade(format); });
}

void Fleet::strike() {
  strike_when_something_leaves(200);
}

void Fleet::strike_when_something_leaves(int looks) {
  Machine* const machine = faults_ ? sender() : nullptr;
  if (machine == nullptr) {
    if (looks > 0 && faults_)
      world_.schedule(3 * kMillisecond, kWorldOwner,
                      [this, looks] { strike_when_something_leaves(looks - 1); });
    return;
  }
  ++statistics_.struck;
  world_.trace("{} is killed while something leaves it", machine->name);
  impaired_for(kAftermath);
  end_process(*machine);
}

// Within what clocks may differ by.
void Fleet::set_clock() {
  if (options_.skew_max == Duration(0)) return;
  Machine& machine = *machines_[static_cast<std::size_t>(troubled_.below(machines_.size()))];
  const auto most = static_cast<std::uint64_t>(options_.skew_max.count());
  ++statistics_.clocks;
  machine.clock->set_skew(Duration(static_cast<std::int64_t>(troubled_.below(most + 1))));
}

void Fleet::damage() {
  SharedLog& log = *logs_[static_cast<std::size_t>(random_.below(logs_.size()))];
  ++statistics_.damages;
  const Micros time = random_.between<Micros>(100, 6000) * kMillisecond;
  // Who has given up tries again within twice the time.
  impaired_for(2 * time + 2 * kSecond + kAftermath);
  log.damage(world_.now() + time);
}

void Fleet::lose_end(ShardIndex shard) {
  lost_an_end_ = true;
  logs_[shard.value()]->lose_behind_first();
  restart_all();
}

void Fleet::make_log_anew(ShardIndex shard) {
  lost_an_end_ = true;
  logs_[shard.value()]->make_anew();
  restart_all();
}

void Fleet::lose_newest(ShardIndex shard, std::uint64_t records) {
  lost_an_end_ = true;
  SharedLog& log = *logs_[shard.value()];
  const std::uint64_t there = log.next().value() - 1;
  log.lose_behind(Position(there - std::min(there, records)));
}

void Fleet::restore_log(ShardIndex shard, const SharedLog::Disk& older) {
  lost_an_end_ = true;
  logs_[shard.value()]->restore(older);
  restart_all();
}

void Fleet::remove_stores(ShardIndex shard) {
  restart_all();
  for (const auto& machine : machines_) {
    machine->stores[shard.value()] = std::make_shared<store::MemoryStore>();
    machine->other_past.erase(shard);
  }
}

void Fleet::restart_all() {
  for (const auto& machine : machines_) {
    end_process(*machine);
    boot_soon(*machine);
  }
}

// Its shards go to others; then it is stopped, as in an upgrade.
void Fleet::drain() {
  Machine& machine = some_machine();
  if (!machine.process || world_.is_paused(machine.process->owner)) return;
  ++statistics_.drains;
  world_.trace("{} is drained", machine.name);
  impaired_for(kAftermath);
  SimLoop& loop = *machine.process->loops.front();
  broker::Task drain = [&machine] { machine.process->node->drain(); };
  loop.run(drain);
  world_.schedule(random_.between<Micros>(1, 5) * kSecond, machine.process->owner,
                  [this, &machine, owner = machine.process->owner] {
                    world_.schedule(1, kWorldOwner, [this, &machine, owner] {
                      if (machine.process && machine.process->owner == owner) end_process(machine);
                    });
                  });
}

void Fleet::claim_late(ShardIndex shard) {
  SharedLog& log = *logs_[shard.value()];
  log.append({{.kind = journal::LogEntryKind::kClaim,
               .epoch = log.epoch().next(),
               .writer = random_.next() | 1,
               .first = log.next()},
              {}},
             world_.now());
  for (const auto& machine : machines_) {
    const fleet::Replica* replica = machine->process->node->replica(shard);
    if (replica == nullptr || replica->serving()) continue;
    fleet::Beat beat;
    beat.node = machine->name;
    beat = std::get<fleet::Beat>(control_.last(fleet::control_key(beat)));
    beat.reached[shard].service = random_.next() | 1;
    return control_.append(beat);
  }
}

void Fleet::request_move() {
  const Machine& machine = *machines_[static_cast<std::size_t>(operator_.below(machines_.size()))];
  const ShardIndex shard(static_cast<std::uint32_t>(operator_.below(options_.shards)));
  fleet::ControlRecord record;
  switch (operator_.below(3)) {
    case 0: {
      const bool on = drained_.insert(machine.name).second;
      if (!on) drained_.erase(machine.name);
      world_.trace("{} is to be drained: {}", machine.name, on);
      record = fleet::Drain{machine.name, on};
      break;
    }
    case 1:
      world_.trace("shard {} is to be moved to {}", shard.value(), machine.name);
      record =
          fleet::Move{.id = operator_.next() | 1, .shard = shard, .to = machine.name, .by = {}};
      break;
    default:
      if (machine.process) return;
      world_.trace("{} is forgotten", machine.name);
      record = fleet::Forget{machine.name};
  }
  ++statistics_.moves;
  impaired_for(kAftermath);
  control_.append(std::move(record));
}

void Fleet::time_has_passed() {
  impaired_for(kAftermath);
}

void Fleet::end_of_faults() {
  faults_ = false;
  if (trouble_.is_felt()) impaired_for(kAftermath);
  trouble_ = {.one_under_way = trouble_.one_under_way, .clock_is_behind = trouble_.clock_is_behind};
  // Whoever has met an entry of a later format is upgraded at last.
  if (options_.rules.meets_newer)
    for (const auto& machine : machines_)
      if (machine->format < kDigestFormat) end_process(*machine);
  for (const fleet::NodeName& name : std::exchange(drained_, {}))
    control_.append(fleet::Drain{name, false});
}

}  // namespace stanchion::sim
