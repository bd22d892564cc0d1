// The store and the background of a simulated machine.
//
// A commit is an event: it happens as a whole, at some moment after it was requested; a commit
// requested before a crash may not have happened, or have happened without anybody knowing.
#pragma once

#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <utility>

#include "broker/background.h"
#include "sim/random.h"
#include "sim/world.h"
#include "store/memory_store.h"

namespace stanchion::sim {

// What can go wrong with commits now.
struct StoreFaults {
  bool full = false;
  bool failing = false;
  bool reads_fail = false;  // Now and then.
  bool failed = false;      // One failed, and the process does not know it yet, or is about to end.
};

// One process's handle of what is on the disk.
class SimStore final : public store::Store {
 public:
  SimStore(std::shared_ptr<store::MemoryStore> disk, StoreFaults& faults, Random random)
      : disk_(std::move(disk)), faults_(faults), random_(random) {}

  Status commit(const Batch& batch) override;
  Status scan(const KeyRange& range, const store::EntryVisitor& visit) const override {
    if (read_fails()) return fail("the store could not be read", EIO);
    return disk_->scan(range, visit);
  }
  Result<std::optional<std::string>> get(std::string_view key) const override {
    if (read_fails()) return fail("the store could not be read", EIO);
    return disk_->get(key);
  }
  std::uint64_t size_on_disk() const override { return disk_->size_on_disk(); }

 private:
  bool read_fails() const;

  std::shared_ptr<store::MemoryStore> disk_;
  StoreFaults& faults_;
  mutable Random random_;
};

class SimBackground final : public broker::Background {
 public:
  SimBackground(World& world, Owner owner, Micros latency)
      : world_(world), owner_(owner), latency_(latency) {}

  void run(broker::Work work, broker::Task task) override;
  // Copies take up to some seconds: `begins` is called when one does, and its task is run when it has
  // ended.
  void slow_copies(std::function<void()> begins, std::uint64_t seed) {
    copy_begins_ = std::move(begins);
    copying_ = Random(seed);
  }

 private:
  World& world_;
  const Owner owner_;
  const Micros latency_;
  std::function<void()> copy_begins_;
  Random copying_{0};
  std::array<Micros, broker::kKindsOfWork> busy_until_{};  // By kind of work.
};

}  // namespace stanchion::sim
