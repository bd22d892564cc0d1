// What goes wrong in a fleet, and what its operator does.
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
  Machine& machine = some_machine();
  ++statistics_.lost_disks;
  world_.trace("{} loses its disk", machine.name);
  impaired_for(kAftermath);
  end_process(machine);
  for (auto& store : machine.stores) store = std::make_shared<store::MemoryStore>();
  machine.other_past.clear();
}

void Fleet::pause() {
  Machine& machine = some_machine();
  if (!machine.process || world_.is_paused(machine.process->owner)) return;
  ++statistics_.pauses;
  const Micros time =
      random_.pick<Micros>({50 * kMillisecond, kSecond, 2 * kSecond, 4 * kSecond, 30 * kSecond}) +
      static_cast<Micros>(random_.below(kSecond));
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
  if (logs == 1 || logs == 3) cut_until(machine.uplink);
  if (what != 1) network_.cut(machine.name, time);
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
  log.lose_behind(Position(log.next().value() - 1 - records));
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

void Fleet::wish() {
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
  ++statistics_.wishes;
  impaired_for(kAftermath);
  control_.append(std::move(record));
}

void Fleet::time_has_passed() {
  impaired_for(kAftermath);
}

void Fleet::end_of_faults() {
  faults_ = false;
  // Whoever has met an entry of a later format is upgraded at last.
  if (options_.rules.meets_newer)
    for (const auto& machine : machines_)
      if (machine->format < kNewestFormat) end_process(*machine);
  for (const fleet::NodeName& name : std::exchange(drained_, {}))
    control_.append(fleet::Drain{name, false});
}

}  // namespace stanchion::sim
