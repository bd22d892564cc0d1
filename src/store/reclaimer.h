// Gives the space of erased ranges back, on its own thread: whole files at once, the rest later.
//
// A range that was erased is a tombstone in the tree; what it covers stays on disk until files are
// merged. Merging reads and rewrites, so whole files go another way: a file of the bottom level all
// of whose keys lie in erased territory is dropped by name. That is safe whatever lies above it,
// because nothing is older than the bottom level. Nothing may be merged meanwhile: RocksDB would
// let a merge take up a file that is being dropped, and then take the store for damaged
// (facebook/rocksdb#8491). What remains, a file at each edge and the tombstones, is merged once per
// interval.
//
// Where a commit erased many ranges or keys, hardly any file dies as a whole, and merging rewrites
// what is left between them. That is done for all of them together: when half of the store was
// written anew, when the erasing has stopped, or at the latest after kScatteredIntervals.
//
//   RC1  Territory was erased by a commit and no key in it was put since.
//
// Threads: any, each function locks. commit() holds the lock over its ingestion, so that RC1 holds
// when a file is dropped.
#pragma once

#include <rocksdb/db.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "store/batch_plan.h"

namespace stanchion::store {

class Reclaimer {
 public:
  // Takes up what an earlier process did not get to.
  Reclaimer(rocksdb::DB& db, std::chrono::milliseconds interval);
  ~Reclaimer();

  // Applies the changes by `ingest` and keeps RC1; the files that died will be dropped.
  Status commit(std::span<const Change> changes, std::uint64_t bytes,
                const std::function<Status()>& ingest);

  // Space is short: the next pass comes soon, and leaves nothing for later. Any thread.
  void hurry();

  // Everything now. Blocks until done.
  Status run() { return run(true); }

  std::uint64_t files_dropped() const { return files_dropped_.load(); }

 private:
  // From the first key up to, but not including, the second. Ranges do not meet.
  using Territory = std::map<std::string, std::string, std::less<>>;

  // Territory with many small holes, still to be merged.
  struct Scattered {
    std::string begin;
    std::string end;  // Empty: there is none.
    std::uint64_t bytes_committed = 0;
    int intervals = 0;
    bool grew = false;  // In this interval.
  };

  void work();
  // True if there are ranges whose files may be dropped.
  bool note_erased(std::span<const Change> changes);
  void take_scattered_if_due(Territory& territory, bool at_once);
  void find_old_tombstones();
  Status run(bool at_once);
  Status drop_files();                    // With running_ held.
  std::vector<std::string> dead_files();  // With mutex_ held.
  Status merge(const Territory& territory);

  static void add(Territory& territory, std::string_view begin, std::string_view end);
  static constexpr int kScatteredIntervals = 12;

  static void subtract(Territory& territory, std::string_view begin, std::string_view end);
  static void forget(Territory& territory, std::span<const Change> changes);
  static bool covers(const Territory& territory, std::string_view first, std::string_view last);

  rocksdb::DB& db_;
  const std::chrono::milliseconds interval_;
  std::atomic<std::uint64_t> files_dropped_{0};
  std::atomic<bool> canceled_{false};

  std::mutex running_;  // One pass at a time. Taken before mutex_.
  std::mutex mutex_;
  std::condition_variable wake_;
  bool searched_ = false;
  bool stopping_ = false;
  bool dying_ = false;              // There may be files to drop.
  bool hurried_ = false;            // The next pass is to come soon.
  std::optional<Failure> failure_;  // Of dropping one: ends the next commit.
  Territory erased_;                // Files in here may be dropped.
  Territory to_merge_;              // Tombstones in here have not been merged away.
  Scattered scattered_;
  std::thread thread_;
};

}  // namespace stanchion::store
