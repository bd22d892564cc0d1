// The store of a server: one RocksDB per shard, written by checkpoints only.
//
//   commit: sorted batch ─▶ <path>/incoming/*.sst ─▶ synced ─▶ read back and compared
//           ─▶ ingested by one record of the manifest ─▶ bounds and counts compared with the plan
//
// RocksDB's write-ahead log and memtable stay empty, because the journal is the log. A process that
// dies before the manifest's record is on disk leaves files that the next open() removes, and no
// trace of the batch; after that, the whole batch is there. docs/adr/0005-store.md says why it is
// done this way and how RocksDB is set up.
//
// Threads: as the contract of Store says. A thread of the store reclaims erased space, and RocksDB
// merges files on a low-priority thread that all stores of the process share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/batch_plan.h"
#include "store/store.h"

namespace rocksdb {
class DB;
class Env;
class Iterator;
class Status;
struct ReadOptions;
}  // namespace rocksdb

namespace stanchion::os {
class Directory;
}

namespace stanchion::store {

class GuardedFileSystem;
class Reclaimer;
class StoreListener;
struct IncomingTable;

enum class Compression { kNone, kLz4, kZstd };

struct RocksOptions {
  // Cache for blocks of data and their indexes, as read by scans.
  std::size_t cache_size = std::size_t{8} << 20;
  // How fast files are merged in the background, so that the journal's syncs do not wait behind it.
  std::uint64_t merge_bytes_per_second = std::uint64_t{48} << 20;
  Compression compression = Compression::kLz4;
  // Erased space is reclaimed this often. Whole files are dropped at once.
  std::chrono::milliseconds reclaim_interval = std::chrono::seconds(20);
  // A new manifest is begun when the old one is so large.
  std::uint64_t manifest_size_max = std::uint64_t{1} << 20;
  // Files are merged and erased space is reclaimed from the start, or from the first commit on:
  // until then a store of a fleet may turn out not to belong to its log, and has to stay as it is.
  bool merges_before_commit = true;
  std::string identity{};       // Written into a new store and compared with an old one's.
  rocksdb::Env* env = nullptr;  // The machine's, unless a test provides its own.
};

// Figures since the store was opened, or current ones.
struct RocksFigures {
  std::uint64_t files = 0;               // Tables, now.
  std::uint64_t live_size = 0;           // Their bytes, now.
  std::uint64_t committed = 0;           // Bytes of tables written by commits.
  std::chrono::nanoseconds verifying{};  // Time that commits took to compare what they wrote.
  std::uint64_t merged = 0;              // Bytes of tables written by merging.
  std::uint64_t files_dropped = 0;       // Files dropped without being read.
  std::uint64_t memory = 0;              // RocksDB's cache and table readers, now.
  std::uint64_t incoming = 0;            // Tables on their way into the store, now.
};

class RocksStore final : public Store {
 public:
  // Opens the store at `path`, creating it (and missing parents) if there is none. Refuses a
  // damaged store, as far as the damage shows without reading all of it, and names the file.
  static Result<std::unique_ptr<RocksStore>> open(const std::string& path,
                                                  const RocksOptions& options = {});

  // Opens an existing store without changing anything, even while a server uses it. Reads see the
  // state of one commit, the last one that had ended. `env`: as in RocksOptions.
  static Result<std::unique_ptr<const RocksStore>> open_read_only(const std::string& path,
                                                                  std::string_view identity = "",
                                                                  rocksdb::Env* env = nullptr);

  // The same for a store with damaged or missing tables: reads that need them fail.
  static Result<std::unique_ptr<const RocksStore>> open_damaged(const std::string& path,
                                                                std::string_view identity = "");

  ~RocksStore() override;

  Status commit(const Batch& batch) override;
  Status scan(const KeyRange& range, const EntryVisitor& visit) const override;
  Result<std::optional<std::string>> get(std::string_view key) const override;
  std::uint64_t size_on_disk() const override;
  std::uint64_t free_space() const override;

  // Creates a store at `path`, which must not exist, with the state of the last commit. Tables are
  // hard links where the file system allows, else copies. Durable and readable on return. Any
  // thread.
  Status backup_to(const std::string& path) const;

  // Reads all tables and compares their checksums.
  Status check_tables() const;

  // Reclaims all erased space and merges small files now, instead of within the interval. Any
  // thread.
  Status reclaim();

  RocksFigures figures() const;

 private:
  RocksStore(std::string path, RocksOptions options);

  enum class Strictness { kWhole, kWhatIsThere };
  static Result<std::unique_ptr<const RocksStore>> open_to_read(const std::string& path,
                                                                std::string_view identity,
                                                                Strictness strictness,
                                                                rocksdb::Env* env);

  Status write_files(const BatchPlan& plan, std::vector<IncomingTable>& tables);
  Status ingest(const std::vector<IncomingTable>& tables);
  Status ready_to_commit();
  std::unique_ptr<rocksdb::Iterator> read(const rocksdb::ReadOptions& options) const;
  rocksdb::Status reread(std::string_view begin, std::string_view end) const;
  bool holds_something(std::string_view begin, std::string_view end) const;

  Status note_committed();

  std::string path_;
  RocksOptions options_;
  std::unique_ptr<os::Directory> directory_;
  std::shared_ptr<GuardedFileSystem> files_;
  std::unique_ptr<rocksdb::Env> env_;
  std::shared_ptr<StoreListener> listener_;
  bool merging_ = false;
  std::unique_ptr<rocksdb::DB> db_;
  std::unique_ptr<Reclaimer> reclaimer_;
  // RocksDB shows ingested files before their sequence number: a read that began in between would
  // see what a commit erased and added, but not what it changed. So a commit holds this alone
  // while it ingests, and reads share it while they begin.
  mutable std::shared_mutex ingesting_;
  std::atomic<std::uint64_t> committed_{0};
  std::atomic<std::int64_t> verifying_{0};  // Nanoseconds.
  std::uint64_t tables_written_ = 0;        // Or tried.
};

// One file of a store, as it was found.
struct FileReport {
  std::string path;
  std::uint64_t size = 0;
  std::uint64_t entries = 0;
  std::string problem;  // Empty: every byte that matters was read and is right.
};

// Whether there is a store at `path`, or what is left of one. A folder in which a first start was
// interrupted, before RocksDB had made a store there, has none: the next start makes one.
Result<bool> has_store(const std::string& path);

// Reads every file of the store at `path` and changes nothing. Tables that no commit refers to any
// more are reported like the others. If the store is in use, files may disappear before they are
// read; those are left out.
Result<std::vector<FileReport>> survey(const std::string& path);

}  // namespace stanchion::store
