// Gives the space of erased ranges back, on a thread of its own.
//
// A range that was erased is a tombstone in the tree; what it covers stays on disk until files are
// merged. Merging reads and rewrites, so whole files go another way: a file of the bottom level all
// of whose keys lie in erased territory is dropped by name. That is safe whatever lies above it,
// because nothing is older than the bottom level. What remains, a file at each edge and the
// tombstones, is merged once per interval.
//
//   R1  Territory was erased by a commit and no key in it was put since.
//
// Threads: any, each function locks. commit() holds the lock over its ingestion, so that R1 holds
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

  // Applies the changes by `ingest` and keeps R1. Files that died are dropped soon afterwards.
  Status commit(std::span<const Change> changes, const std::function<Status()>& ingest);

  // Everything now. Blocks until done.
  Status run();

  std::uint64_t files_dropped() const { return files_dropped_.load(); }

 private:
  // From the first key up to, but not including, the second. Ranges do not meet.
  using Territory = std::map<std::string, std::string, std::less<>>;

  void work();
  void find_old_tombstones();
  Status drop_files();
  Status merge(const Territory& territory);

  static void add(Territory& territory, std::string_view begin, std::string_view end);
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
  bool stopping_ = false;
  bool dropping_due_ = false;
  Territory erased_;    // Files in here may be dropped.
  Territory to_merge_;  // Tombstones in here have not been merged away.
  std::thread thread_;
};

}  // namespace stanchion::store
