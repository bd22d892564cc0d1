#include "sim/sim_store.h"

#include <algorithm>
#include <cerrno>

namespace stanchion::sim {

Status SimStore::commit(const Batch& batch) {
  if (faults_.full && random_.chance(70)) return fail("the disk is full", ENOSPC);
  if (faults_.failing && random_.chance(30)) {
    faults_.failed = true;
    // Nobody knows whether the commit happened after all.
    if (random_.chance(50)) RETURN_IF_FAILED(disk_->commit(batch));
    return fail("the store could not be written", EIO);
  }
  return disk_->commit(batch);
}

bool SimStore::read_fails() const {
  if (!faults_.reads_fail || !random_.chance(10)) return false;
  faults_.failed = true;
  return true;
}

void SimBackground::run(broker::Work work, broker::Task task) {
  Micros& busy_until = busy_until_[static_cast<std::size_t>(work)];
  const auto takes =
      static_cast<Micros>(world_.random().below(static_cast<std::uint64_t>(latency_) + 1));
  busy_until = std::max(busy_until, world_.now()) + takes;
  // Events at the same moment come in any order; these must keep theirs.
  ++busy_until;
  if (work == broker::Work::kCopy && copy_begins_) {
    world_.schedule(busy_until - world_.now(), owner_, [begins = copy_begins_] { begins(); });
    busy_until += 1 + copying_.between<Micros>(0, 4000) * kMillisecond;
  }
  world_.schedule(busy_until - world_.now(), owner_,
                  [task = std::move(task)]() mutable { task(); });
}

}  // namespace stanchion::sim
