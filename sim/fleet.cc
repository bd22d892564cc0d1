#include "sim/fleet.h"

#include <fmt/format.h>

#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "sim/describe.h"
#include "sim/store_check.h"

namespace stanchion::sim {
namespace {

// Once the longest pauses of the node that took a request, and of the one that serves its queue, are
// over one after the other, nothing that was asked before happens any more.
constexpr Micros kPauseMax = 31 * kSecond;
constexpr Micros kDoubtful = 2 * kPauseMax + 10 * kSecond;

// More than there ever are: counting them must not matter.
constexpr std::uint32_t kQueuesMax = 1'000;

bool is_unknown(const Reply& reply) {
  return !reply && reply.error().code == ErrorCode::kInternalFailure;
}

}  // namespace

void Fleet::Statistics::add(const Statistics& other) {
  for (const auto member :
       {&Statistics::boots,          &Statistics::kills,          &Statistics::lost_disks,
        &Statistics::pauses,         &Statistics::cuts,           &Statistics::drains,
        &Statistics::moves,          &Statistics::promotions,     &Statistics::losses,
        &Statistics::releases,       &Statistics::copies,         &Statistics::refusals,
        &Statistics::forwarded,      &Statistics::held,           &Statistics::unknown,
        &Statistics::comparisons,    &Statistics::given_up,       &Statistics::damages,
        &Statistics::backups,        &Statistics::partition_cuts, &Statistics::pair_cuts,
        &Statistics::stale_brokers,  &Statistics::litter,         &Statistics::fatal,
        &Statistics::broken_copies,  &Statistics::struck,         &Statistics::clocks,
        &Statistics::removed_stores, &Statistics::isolations,     &Statistics::later_entries})
    this->*member += other.*member;
}

Fleet::Fleet(World& world, Auditor& auditor, const FleetOptions& options)
    : world_(world),
      auditor_(auditor),
      options_(options),
      steady_(world),
      entropy_(world.random().fork()),
      random_(world.random().fork()),
      operator_(options.operator_seed),
      troubled_(options.trouble_seed),
      later_(options.trouble_seed + 2),
      trouble_(options.trouble),
      network_(world, options.rules, trouble_, options.trouble_seed + 1) {
  for (std::uint32_t i = 0; i < options.shards; ++i) logs_.push_back(std::make_unique<SharedLog>());
  for (int i = 0; i < options.nodes; ++i) {
    auto machine = std::make_unique<Machine>();
    machine->name = fmt::format("n{}", i + 1);
    machine->zone = fmt::format("z{}", i % 3 + 1);
    const auto most = static_cast<std::uint64_t>(options.skew_max.count());
    machine->clock = std::make_unique<WorldClock>(
        world, Duration(static_cast<std::int64_t>(random_.below(most + 1))));
    for (std::uint32_t shard = 0; shard < options.shards; ++shard)
      machine->stores.push_back(std::make_shared<store::MemoryStore>());
    machine->uplinks.resize(options.shards);
    machine->openings.resize(options.shards);
    machine->skipped.resize(options.shards);
    machines_.push_back(std::move(machine));
  }
}

Fleet::~Fleet() {
  for (auto& machine : machines_) {
    if (!machine->process) continue;
    world_.leave(machine->process->time.get());
    machine->process.reset();
  }
}

void Fleet::boot_all() {
  for (auto& machine : machines_) boot(*machine);
  impaired_for(kAftermath);
}

// Machines begin with a program that reads the first format, and are upgraded when they boot again;
// not before all were heard of, since nobody can wait for a node that it does not know.
void Fleet::choose_program(Machine& machine) const {
  const bool is_upgraded = machine.format > 0 && are_all_known();
  machine.format = is_upgraded ? newest_format_ : std::max(machine.format, 1u);
}

bool Fleet::are_all_known() const {
  return std::ranges::all_of(machines_, [&](const auto& other) {
    fleet::Beat beat;
    beat.node = other->name;
    return control_.has(fleet::control_key(beat));
  });
}

fleet::NodeOptions Fleet::node_options(const Machine& machine) const {
  return {.name = machine.name,
          .zone = machine.zone,
          .address = machine.name,
          .format = machine.format,
          .shards = options_.shards,
          .queues = {.per_account = kQueuesMax},
          .keeping = options_.keeping,
          .memory = options_.memory,
          .decision_messages = options_.decision_messages,
          .write_timeout = options_.write_timeout,
          .hand_over_again = options_.rules.hands_over_again ? broker::Patience().hand_over_again
                                                             : Duration(std::chrono::hours(1'000))};
}

fleet::Node::Outside Fleet::outside_of(Machine& machine, Owner owner) {
  const auto open = [this, &machine, owner](ShardIndex shard) -> Result<fleet::Replica::Storage> {
    const std::size_t i = shard.value();
    check_store(machine, shard);
    ++machine.openings[i];
    const SharedLogJournal::Site site{
        .format = machine.format,
        .trouble = &trouble_,
        .seed = troubled_.next(),
        .is_skipped = [&skipped = machine.skipped[i]](journal::LogOffset at) {
          return skipped.contains(at.value());
        }};
    return fleet::Replica::Storage{
        std::make_unique<SharedLogJournal>(world_, owner, *logs_[i], machine.uplinks[i],
                                           options_.rules, site),
        std::make_shared<SimStore>(machine.stores[i], machine.faults, world_.random().fork()),
        machine.other_past.contains(shard)};
  };
  const auto copy = [this, &machine](ShardIndex shard) { return copy_store(machine, shard); };
  const auto not_copied = [this, &machine](ShardIndex shard, const Failure& why) {
    world_.trace("{} cannot copy shard {}: {}", machine.name, shard.value(), why.message);
  };
  const auto note_past = [&machine](ShardIndex shard, bool is_other) {
    is_other ? (void)machine.other_past.insert(shard) : (void)machine.other_past.erase(shard);
    return Status();
  };
  const auto looked_around = [&machine](const fleet::ControlState& state,
                                        const fleet::Node::Outside::Replicas&) {
    for (std::uint32_t i = 0; i < state.shard_count(); ++i)
      machine.skipped[i] = state.shard(ShardIndex(i)).skipped;
  };
  const auto gave_up = [this, &machine](ShardIndex shard, const Failure& why) {
    world_.trace("{} gives up shard {}: {}", machine.name, shard.value(), why.message);
    statistics_.fatal += why.message == SharedLogJournal::kFatal;
    const bool may_be_removed = options_.trouble_seed != 0 && !lost_an_end_;
    if (may_be_removed && why.message.starts_with("its store had other records"))
      return remove_store(machine, shard);
    if (!may_give_up(why))
      throw Violation(fmt::format("F1: {} has given up shard {}: {}", machine.name, shard.value(),
                                  why.message));
  };
  return {.open = open,
          .copy_store = copy,
          .not_copied = not_copied,
          .note_past = note_past,
          .gave_up = gave_up,
          .said =
              [this, &machine](ShardIndex shard, const std::string& what) {
                world_.trace("shard {} {} by {}", shard.value(), what, machine.name);
              },
          .looked_around = looked_around,
          .failed =
              [&machine](const Failure& why) {
                throw Violation(fmt::format("F1: {} has failed: {}", machine.name, why.message));
              }};
}

// Who reads from a broker that has not got everything yet takes the end of the log for lost.
bool Fleet::may_give_up(const Failure& why) const {
  if (options_.rules.meets_newer || lost_an_end_ || why.message == "an entry is damaged")
    return true;
  const bool looks_lost = why.message == "the store is ahead of its log" ||
                          why.message.starts_with("this node has seen the records up to");
  const bool is_behind = why.message.starts_with(kTooNew) && newest_met_ > kDigestFormat;
  return options_.trouble_seed != 0 &&
         (looks_lost || is_behind || why.message == SharedLogJournal::kFatal);
}

// Its broker was behind for so long that the log was trimmed meanwhile. The log has lost nothing, so an
// operator may do as docs/fleet.md says.
void Fleet::remove_store(Machine& machine, ShardIndex shard) {
  ++statistics_.removed_stores;
  impaired_for(5 * kSecond + kAftermath);
  world_.schedule(5 * kSecond, kWorldOwner, [this, &machine, shard] {
    world_.trace("an operator removes the store of shard {} of {}", shard.value(), machine.name);
    impaired_for(kAftermath);
    end_process(machine);
    machine.stores[shard.value()] = std::make_shared<store::MemoryStore>();
    machine.other_past.erase(shard);
  });
}

// The process may be in the middle of something.
void Fleet::end_soon(Machine& machine, Owner owner) {
  world_.schedule(1, kWorldOwner, [this, &machine, owner] {
    if (machine.process && machine.process->owner == owner) end_process(machine);
  });
}

void Fleet::boot(Machine& machine) {
  CHECK(!machine.process, "one process at a time");
  machine.booting = false;
  choose_program(machine);
  ++statistics_.boots;
  control_.compact(static_cast<std::size_t>(operator_.below(control_.size() + 1)));
  auto process = std::make_unique<Process>();
  process->owner = next_owner_++;
  process->threads.slowness = random_.chance(50) ? 20 : 2000;
  for (int i = 0; i < options_.loops; ++i)
    process->loops.push_back(
        std::make_unique<SimLoop>(world_, process->owner, process->threads, i));
  process->background =
      std::make_unique<SimBackground>(world_, process->owner, options_.background_latency);
  process->time = std::make_unique<os::Timekeeper>(*machine.clock, steady_);
  process->time->begin(Instant());
  if (options_.slow_copies)
    process->background->slow_copies([this, &machine] { begin_copy(machine); }, troubled_.next());
  process->control =
      std::make_unique<SimControlLog>(world_, process->owner, control_, machine.control_uplink,
                                      trouble_, troubled_.next(), options_.rules);
  process->transport = std::make_unique<SimTransport>(
      network_, machine.name, machine.format > 1 && options_.rules.tells_links);
  process->node = std::make_unique<fleet::Node>(
      node_options(machine), *process->control, *process->transport, *process->time, entropy_,
      *process->background, outside_of(machine, process->owner));
  world_.trace("{} boots", machine.name);
  machine.process = std::move(process);
  Process& running = *machine.process;
  world_.join(running.time.get());
  auditor_.time_began();
  std::vector<broker::Loop*> loops;
  for (auto& loop : running.loops) loops.push_back(loop.get());
  running.node->start(std::move(loops));
  fleet::Node* const node = running.node.get();
  network_.listen(machine.name,
                  {.owner = running.owner,
                   .take = [node](const fleet::NodeName& from,
                                  fleet::Frame frame) { node->take(from, std::move(frame)); },
                   .broke = [node](const fleet::NodeName& other) { node->connection_broke(other); },
                   .made = [node] { node->connection_made(); }});
}

void Fleet::check_store(const Machine& machine, ShardIndex shard) {
  if (lost_an_end_) return;  // The fleet itself has to notice.
  sim::check_store(*machine.stores[shard.value()], shard, options_.memory,
                   logs_[shard.value()]->history());
}

void Fleet::impaired_for(Micros time) {
  impaired_until_ = std::max(impaired_until_, world_.now() + time);
  auditor_.impaired(true);
  world_.schedule(time, kWorldOwner, [this] {
    if (world_.now() >= impaired_until_ && !trouble_.is_felt()) auditor_.impaired(false);
  });
}

// Another one than that which has no links.
Fleet::Machine& Fleet::ready_machine() {
  const auto ready = std::ranges::find_if(machines_, [this](const auto& machine) {
    return machine->process && !is_isolated(*machine);
  });
  return ready == machines_.end() ? *machines_.front() : **ready;
}

Fleet::Machine& Fleet::some_machine() {
  return *machines_[static_cast<std::size_t>(random_.below(machines_.size()))];
}

void Fleet::count(const Process& process) {
  for (std::uint32_t i = 0; i < options_.shards; ++i) {
    const fleet::Replica* replica = process.node->replica(ShardIndex(i));
    if (replica == nullptr) continue;
    const auto& counted = replica->statistics();
    statistics_.promotions += counted.promotions;
    statistics_.losses += counted.losses;
    statistics_.releases += counted.releases;
    statistics_.copies += counted.copies;
    statistics_.refusals += counted.refusals;
    statistics_.given_up += counted.given_up;
  }
  const auto& routed = process.node->router().statistics();
  statistics_.forwarded += routed.forwarded;
  statistics_.held += routed.held;
  statistics_.unknown += routed.unknown;
}

Fleet::Statistics Fleet::statistics() const {
  Fleet& self = const_cast<Fleet&>(*this);
  const Statistics before = statistics_;
  for (const auto& machine : machines_)
    if (machine->process) self.count(*machine->process);
  return std::exchange(self.statistics_, before);
}

void Fleet::end_process(Machine& machine) {
  if (!machine.process) return;
  count(*machine.process);
  world_.leave(machine.process->time.get());
  network_.hang_up(machine.name);
  machine.copying.reset();
  auto process = std::move(machine.process);
  std::vector<CallNo> lost;
  for (const auto& [number, pending] : pending_)
    if (pending.machine == &machine && !pending.responded) lost.push_back(number);
  // Whatever the process says while it goes is not heard.
  for (const CallNo number : lost) pending_[number].responded = true;
  const Owner owner = process->owner;
  process.reset();
  world_.forget(owner);
  for (const CallNo number : lost) {
    const Micros noticed = random_.between<Micros>(1, 100) * kMillisecond;
    world_.schedule(noticed, kWorldOwner, [this, number] { answer(number, nullptr); });
  }
  boot_soon(machine);
}

void Fleet::boot_soon(Machine& machine) {
  if (std::exchange(machine.booting, true)) return;
  world_.schedule(random_.between<Micros>(1, 8000) * kMillisecond, kWorldOwner,
                  [this, &machine] { boot(machine); });
}

std::size_t Fleet::know_of_stall(ShardIndex shard) const {
  std::size_t knowing = 0;
  for (const auto& machine : machines_)
    if (machine->process)
      for (const auto& [name, node] : machine->process->node->state().nodes())
        knowing += node.beat.stalled.contains(shard);
  return knowing;
}

std::string Fleet::describe_replicas() const {
  std::string text;
  for (std::uint32_t i = 0; i < options_.shards; ++i) {
    text += fmt::format("\n    shard {}:", i);
    for (const auto& machine : machines_) {
      const fleet::Replica* replica =
          machine->process ? machine->process->node->replica(ShardIndex(i)) : nullptr;
      const auto reached = replica == nullptr ? std::nullopt : replica->reached();
      text += fmt::format(" {} {}", machine->name,
                          !machine->process    ? "does not run"
                          : replica == nullptr ? "has no replica"
                          : replica->serving() ? "serves"
                          : reached            ? "follows"
                          : !replica->why_given_up().empty()
                              ? fmt::format("has given up ({})", replica->why_given_up())
                              : "is on its way");
      if (reached) text += fmt::format(" at {}", reached->applied.value());
      const auto backup = machine->backups.find(ShardIndex(i));
      if (backup != machine->backups.end() && !backup->second.expired())
        text += " and is to be backed up";
    }
  }
  return text;
}

// Whether every shard is served by one node, and all replicas have what it has.
bool Fleet::is_whole() const {
  for (std::uint32_t i = 0; i < options_.shards; ++i) {
    std::size_t serving = 0, following = 0;
    Position least(UINT64_MAX), most;
    for (const auto& machine : machines_) {
      const auto backup = machine->backups.find(ShardIndex(i));
      if (backup != machine->backups.end() && !backup->second.expired()) return false;  // F7
      if (!machine->process) return false;
      const fleet::Replica* replica = machine->process->node->replica(ShardIndex(i));
      const auto reached = replica == nullptr ? std::nullopt : replica->reached();
      if (!reached) continue;
      ++(replica->serving() ? serving : following);
      least = std::min(least, reached->applied);
      most = std::max(most, reached->applied);
    }
    const std::size_t replicas = std::min<std::size_t>(3, machines_.size());
    if (serving != 1 || serving + following < replicas || least != most) return false;
  }
  return true;
}

bool Fleet::is_settled(bool without_copies) const {
  for (std::uint32_t i = 0; i < options_.shards; ++i) {
    int serving = 0, doubting = 0, reading = 0, waiting = 0;
    for (const auto& machine : machines_) {
      if (!machine->process) return false;
      const fleet::Replica* replica = machine->process->node->replica(ShardIndex(i));
      if (replica == nullptr || replica->is_closed()) continue;
      waiting += !replica->reached() && replica->why_given_up().empty();
      reading += replica->reached().has_value();
      serving += replica->serving();
      doubting += replica->has_other_past();
    }
    if (waiting > 0 && !(without_copies && serving == 0 && doubting > 0)) return false;
    if (serving > 1 || (serving == 0 && doubting == 0 && reading > 0)) return false;
  }
  return true;
}

bool Fleet::has_transfers() const {
  return sender() != nullptr;
}

// A machine that serves a shard of which something is on its way to another.
Fleet::Machine* Fleet::sender() const {
  for (const auto& machine : machines_)
    for (std::uint32_t i = 0; machine->process && i < options_.shards; ++i) {
      const fleet::Replica* replica = machine->process->node->replica(ShardIndex(i));
      if (replica == nullptr || !replica->serving()) continue;
      const engine::Engine& engine = replica->shard()->engine();
      if (engine.settled_below() < engine.next_transfer()) return machine.get();
    }
  return nullptr;
}

// F1: of those that follow; the owner's time is later.
void Fleet::compare_replicas() {
  for (std::uint32_t i = 0; i < options_.shards; ++i) {
    std::map<std::uint64_t, std::pair<std::uint64_t, std::string>> by_position;
    for (const auto& machine : machines_) {
      if (!machine->process) continue;
      const fleet::Replica* replica = machine->process->node->replica(ShardIndex(i));
      if (replica == nullptr || replica->shard() == nullptr || !replica->following()) continue;
      const engine::Engine& engine = replica->shard()->engine();
      engine.check_invariants();
      // What falls due at the very instant of a record happens with the next one.
      if (engine.next_deadline() <= replica->shard()->now() || engine.stalled()) continue;
      const std::uint64_t position = replica->shard()->applied().value();
      const std::uint64_t fingerprint = engine.fingerprint([&](const KeyRange& range) {
        const auto scan = [&](const KeyRange& keys, const auto& visit) {
          return machine->stores[i]->scan(keys, visit);
        };
        auto found = engine::Engine::read({.range = range}, scan);
        if (!found) throw Violation("F1: a message in a store cannot be read");
        return std::move(*found);
      });
      const std::string who = fmt::format("{}, loaded at {}, at {}", machine->name,
                                          replica->shard()->keeper().loaded_position().value(),
                                          to_millis(replica->shard()->now()));
      const auto [other, is_first] = by_position.emplace(position, std::pair(fingerprint, who));
      if (!is_first) ++statistics_.comparisons;
      if (other->second.first != fingerprint)
        throw Violation(fmt::format("F1: replicas of shard {} differ after {} records: {}; {}", i,
                                    position, other->second.second, who));
    }
  }
}

CallNo Fleet::call(Request request, Answered answered) {
  const CallNo number = auditor_.submitted(request);
  Machine* machine = &some_machine();
  for (int tries = 0; tries < 3 && !machine->process; ++tries) machine = &some_machine();
  if (is_isolated(*machine)) machine = &ready_machine();
  world_.trace("call {} to {}: {}", number, machine->name, describe(request));
  Pending& pending = pending_[number];
  pending.answered = std::move(answered);
  const Micros way = static_cast<Micros>(random_.below(2000));
  if (!machine->process) {
    world_.schedule(way, kWorldOwner, [this, number] {
      auto node = pending_.extract(number);
      auditor_.never_happened(number);
      world_.trace("call {}: nobody listens", number);
      node.mapped().answered(nullptr);
    });
    return number;
  }
  pending.machine = machine;
  world_.schedule(way, machine->process->owner,
                  [this, number, request = std::move(request)]() mutable {
                    deliver(number, std::move(request));
                  });
  return number;
}

void Fleet::deliver(CallNo number, Request request) {
  const auto found = pending_.find(number);
  if (found == pending_.end() || found->second.responded) return;
  Process& process = *found->second.machine->process;
  SimLoop& loop = *process.loops[static_cast<std::size_t>(random_.below(process.loops.size()))];
  found->second.loop = &loop;
  broker::Task submit = [this, number, &process, &loop, request = std::move(request)]() mutable {
    const broker::Submission submission = process.node->broker().submit(
        loop, std::move(request),
        [this, number](Reply reply) { respond(number, std::move(reply)); });
    if (const auto still = pending_.find(number); still != pending_.end())
      still->second.submission = submission;
  };
  loop.run(submit);
}

void Fleet::respond(CallNo number, Reply reply) {
  const auto found = pending_.find(number);
  if (vanished_.contains(number)) return;
  if (found == pending_.end())
    throw Violation(fmt::format("A9: call {} is answered twice", number));
  if (found->second.responded) return;  // Its node has died.
  found->second.responded = true;
  const Micros way = static_cast<Micros>(random_.below(2000));
  world_.schedule(way, kWorldOwner,
                  [this, number, reply = std::move(reply)] { answer(number, &reply); });
}

void Fleet::answer(CallNo number, const Reply* reply) {
  auto node = pending_.extract(number);
  if (node.empty()) return;
  if (reply == nullptr || is_unknown(*reply) || node.mapped().vanished) {
    // A node that is paused may execute it when it goes on, long after this.
    world_.schedule(kDoubtful, kWorldOwner, [this, number] { auditor_.in_doubt(number); });
    world_.trace("call {}: nobody knows", number);
    if (!node.mapped().vanished) node.mapped().answered(nullptr);
    return;
  }
  world_.trace("call {}: {}", number, describe(*reply));
  lost_an_end_ ? auditor_.never_happened(number) : auditor_.replied(number, *reply);
  node.mapped().answered(reply);
}

bool Fleet::vanish(CallNo number) {
  const auto found = pending_.find(number);
  if (found == pending_.end() || !found->second.submission || found->second.responded ||
      found->second.vanished || world_.is_paused(found->second.machine->process->owner))
    return false;
  found->second.vanished = true;
  vanished_.insert(number);
  world_.trace("call {}: its client goes away", number);
  Process& process = *found->second.machine->process;
  broker::Task cancel = [&process, submission = *found->second.submission] {
    process.node->broker().cancel(submission);
  };
  found->second.loop->run(cancel);
  world_.schedule(3 * kSecond, kWorldOwner, [this, number] { answer(number, nullptr); });
  return true;
}

}  // namespace stanchion::sim
