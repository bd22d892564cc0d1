// Reclaims the space of erased ranges, on its own thread: whole files at once, the rest later. And
// merges small files that lie side by side (see small_files.h), which RocksDB would leave alone
// because they overlap nothing.
//
// An erased range is a tombstone in the tree; the entries that it covers stay on disk until files
// are merged. Merging reads and rewrites, so whole files are handled differently: a file of the
// bottom level all of whose keys lie in erased territory is dropped by name. That is safe whatever
// lies above it, because nothing is older than the bottom level. No merge may run meanwhile:
// RocksDB would let a merge begin on a file that is being dropped, and then consider the store
// damaged (facebook/rocksdb#8491). What remains, a file at each edge and the tombstones, is merged
// once per interval.
//
// Where a commit erased many ranges or keys, hardly any file is erased as a whole, and merging
// rewrites what is left between them. That is done for all of them together: when half of the store
// has been rewritten, when the erasing has stopped, or at the latest after kScatteredIntervals.
//
// A failed pass, as on a full disk, is retried soon and then less and less often: there may be no
// further commit that would ask for it.
//
//   RC1  Territory was erased by a commit and no key in it has been put since.
//   RC2  After kCrowdMin commits, and at begin(), its crowds of small files are merged:
//        their number does not grow with the number of commits.
//
// Threads: any; each function locks. commit() holds the lock during its ingestion, so that RC1
// holds when a file is dropped.
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
#include "store/guarded_file_system.h"

namespace stanchion::store {

class Reclaimer {
 public:
  Reclaimer(rocksdb::DB& db, GuardedFileSystem& files, std::chrono::milliseconds interval);
  ~Reclaimer();

  // Passes come from now on. Finds the erased ranges that an earlier process did not get to reclaim.
  void begin();

  // Applies the changes by `ingest` and keeps RC1; files that are now erased as a whole will be
  // dropped.
  Status commit(std::span<const Change> changes, std::uint64_t bytes,
                const std::function<Status()>& ingest);

  // Space is short: the next pass comes soon and does everything. Any thread.
  void hurry();

  // Reclaims everything and merges small files now. Blocks until done.
  Status run() { return run(true); }

  std::uint64_t files_dropped() const { return files_dropped_.load(); }

 private:
  // From the first key up to, but not including, the second. Ranges do not overlap.
  using Territory = std::map<std::string, std::string, std::less<>>;

  // Territory with many small holes, still to be merged.
  struct Scattered {
    std::string begin;
    std::string end;  // Empty: there is none.
    std::uint64_t bytes_committed = 0;
    int intervals = 0;
    bool grew = false;  // In this interval.
  };

  using Moment = std::chrono::steady_clock::time_point;

  void work();
  Moment next_pass(Moment regular) const;  // With mutex_ held.
  // True if there are ranges whose files may be dropped.
  bool note_erased(std::span<const Change> changes);
  void take_scattered_if_due(Territory& territory, bool at_once);
  void find_old_tombstones();
  Status run(bool at_once);
  Status drop_files();                    // With running_ held.
  std::vector<std::string> dead_files();  // With mutex_ held.
  Status merge(const Territory& territory);
  Status merge_crowds();  // With running_ held.

  static void add(Territory& territory, std::string_view begin, std::string_view end);
  static constexpr int kScatteredIntervals = 12;

  static void subtract(Territory& territory, std::string_view begin, std::string_view end);
  static void forget(Territory& territory, std::span<const Change> changes);
  static bool covers(const Territory& territory, std::string_view first, std::string_view last);

  rocksdb::DB& db_;
  GuardedFileSystem& files_;
  const std::chrono::milliseconds interval_;
  std::atomic<std::uint64_t> files_dropped_{0};
  std::atomic<bool> canceled_{false};

  std::mutex running_;  // One pass at a time. Taken before mutex_.
  std::mutex mutex_;
  std::condition_variable wake_;
  bool begun_ = false;
  bool searched_ = false;
  bool stopping_ = false;
  bool dying_ = false;              // There may be files to drop.
  bool hurried_ = false;            // The next pass is to come soon.
  std::size_t commits_;             // Since somebody looked for crowds.
  int failures_ = 0;                // Failed passes, one after another.
  Moment last_pass_{};              // When the last pass ended.
  std::optional<Failure> failure_;  // The failure of dropping a file: makes the next commit fail.
  Territory erased_;                // Files in here may be dropped.
  Territory to_merge_;              // Tombstones in here have not been merged away.
  Scattered scattered_;
  std::thread thread_;
};

}  // namespace stanchion::store
