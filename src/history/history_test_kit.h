// What the tests of the history share: a store that outlives the history on it, and samples.
#pragma once

#include <cerrno>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "history/history.h"
#include "store/memory_store.h"

namespace stanchion::history {

inline constexpr Minute kFirst = 29'000'000 / kMinutesADay * kMinutesADay;  // The first of a day.
inline constexpr std::size_t kPlenty = std::size_t{96} << 20;               // Of room for names.

// A store whose content outlives the history that uses it, and that can be full.
struct Disk {
  store::MemoryStore::Entries entries;
  bool full = false;
};

class TestStore final : public store::Store {
 public:
  explicit TestStore(Disk& disk) : disk_(disk), inner_(disk.entries) {}

  Status commit(const Batch& batch) override {
    if (disk_.full) return fail("no room", ENOSPC);
    RETURN_IF_FAILED(inner_.commit(batch));
    disk_.entries = inner_.entries();
    return {};
  }
  Status scan(const KeyRange& range, const store::EntryVisitor& visit) const override {
    return inner_.scan(range, visit);
  }
  Result<std::optional<std::string>> get(std::string_view key) const override {
    return inner_.get(key);
  }
  std::uint64_t size_on_disk() const override { return inner_.size_on_disk(); }

 private:
  Disk& disk_;
  store::MemoryStore inner_;
};

inline Result<std::vector<Bucket>> read_all(const History& history, const Reading& reading) {
  std::vector<Bucket> buckets;
  const Status status = history.read(reading, [&](const Bucket& one) { buckets.push_back(one); });
  if (!status) return std::unexpected(status.error());
  return buckets;
}

inline Sample deleted_queue(const std::string& account, std::size_t number, std::size_t name_size) {
  Sample sample;
  sample.queue = {account, "us-east-1", std::to_string(number)};
  sample.queue.name.resize(name_size, 'x');
  sample.created = begin_of(kFirst);
  sample.deleted = true;
  sample.totals.sent = sample.totals.sent_bytes = 1;
  return sample;
}

}  // namespace stanchion::history
