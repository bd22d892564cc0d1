// The stores of a fleet that are copied: from node to node, and by an operator.
#include <utility>

#include "base/bytes.h"
#include "sim/fleet.h"

namespace stanchion::sim {

// A copy of the store of whoever has most.
Status Fleet::copy_store(Machine& machine, ShardIndex shard) {
  if (machine.copying) return end_copy(machine, shard);
  const Machine* best = nullptr;
  for (const auto& other : machines_)
    if (other.get() != &machine && other->process &&
        (best == nullptr || checkpointed(*other, shard) > checkpointed(*best, shard)))
      best = other.get();
  if (best == nullptr) return fail("nobody has a store to copy");
  check_may_be_replaced(machine, shard);
  auto& store = machine.stores[shard.value()];
  store = std::make_shared<store::MemoryStore>(best->stores[shard.value()]->entries());
  world_.trace("{} copies shard {} of {}", machine.name, shard.value(), best->name);
  return {};
}

// F8, and RE4 of fleet/replica.h.
void Fleet::check_may_be_replaced(const Machine& machine, ShardIndex shard) {
  if (machine.other_past.contains(shard))
    throw Violation("F8: a store that has other records than its log is replaced by a copy");
}

// What is copied is what the others have now; they go on while it is under way.
void Fleet::begin_copy(Machine& machine) {
  Copying copying{.sources = {}, .openings = machine.openings};
  for (const auto& other : machines_) {
    if (other.get() == &machine || !other->process) continue;
    Copying::Source source{other->name, other->process->owner, {}};
    for (const auto& store : other->stores)
      source.stores.push_back(std::make_shared<store::MemoryStore>(store->entries()));
    copying.sources.push_back(std::move(source));
  }
  machine.copying = std::move(copying);
}

Status Fleet::end_copy(Machine& machine, ShardIndex shard) {
  const std::size_t i = shard.value();
  const Copying copying = std::move(*std::exchange(machine.copying, std::nullopt));
  const Copying::Source* best = nullptr;
  for (const auto& source : copying.sources)
    if (!network_.are_apart(machine.name, source.name) &&
        (best == nullptr || checkpointed(*source.stores[i]) > checkpointed(*best->stores[i])))
      best = &source;
  if (best == nullptr) return fail("nobody has a store to copy");
  for (const auto& other : machines_)
    if (other->name == best->name && (!other->process || other->process->owner != best->owner)) {
      ++statistics_.broken_copies;
      return fail("who has the store has gone");
    }
  // SF1 of fleet_node/replica_stores.h: whoever asked for the copy has given up.
  if (copying.openings[i] != machine.openings[i]) {
    ++statistics_.broken_copies;
    return fail("somebody has opened the store since");
  }
  check_may_be_replaced(machine, shard);
  // SF2: the process may end when the old one is gone and the new one is not there.
  if (faults_ && troubled_.chance(10)) {
    ++statistics_.broken_copies;
    world_.trace("{} ends while it puts a copy of shard {} into its place", machine.name, i);
    machine.stores[i] = std::make_shared<store::MemoryStore>();
    impaired_for(kAftermath);
    end_soon(machine, machine.process->owner);
    return fail("the process ends");
  }
  machine.stores[i] = best->stores[i];
  world_.trace("{} has copied shard {} of {}", machine.name, i, best->name);
  return {};
}

void Fleet::back_up() {
  Machine& machine = *machines_[static_cast<std::size_t>(operator_.below(machines_.size()))];
  const ShardIndex shard(static_cast<std::uint32_t>(operator_.below(options_.shards)));
  back_up(machine, shard, [](const Status&) {});
}

void Fleet::back_up_owner(ShardIndex shard, const std::function<void(const Status&)>& ended) {
  back_up(owner_of(shard), shard, ended);
}

// The store is copied between two commits, as whoever copies it relies on.
void Fleet::back_up(Machine& machine, ShardIndex shard,
                    const std::function<void(const Status&)>& ended) {
  auto& backup = machine.backups[shard];
  if (!machine.process || !backup.expired()) return;  // One at a time.
  const auto token = std::make_shared<bool>(false);
  backup = token;
  fleet::Node* node = machine.process->node.get();
  const journal::LogOffset end = logs_[shard.value()]->readable_end(world_.now());
  const Position last = logs_[shard.value()]->last_before(end);
  const auto copy = [this, &machine, shard, token, last](Position position) -> Status {
    if (position < last && !lost_an_end_)
      throw Violation("F7: a backup lacks what was there when it began");
    if (checkpointed(machine, shard) != position.value())
      throw Violation("F7: a store is copied that has not what was asked for");
    check_store(machine, shard);
    *token = true;
    return {};
  };
  const auto done = [this, token, ended](const Status& status) {
    if (status && !*token) throw Violation("F7: a backup is complete, but nothing was copied");
    statistics_.backups += status.has_value();
    ended(status);
  };
  node->broker().loop_of(shard).post([node, shard, end, copy, done] {
    if (node->replica(shard) == nullptr) return;
    node->back_up(shard, end, {.copy = copy, .decided = [] {}, .done = done});
  });
}

// The position in the shard's record; see docs/formats.md.
std::uint64_t Fleet::checkpointed(const store::MemoryStore& store) {
  const auto record = store.get(engine::shard_key());
  if (!record || !*record) return 0;
  ByteReader reader(**record);
  reader.u8();
  return reader.u64();
}

}  // namespace stanchion::sim
