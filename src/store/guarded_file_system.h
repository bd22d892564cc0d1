// The file system that RocksDB gets: the machine's, with five additional guarantees.
//
//   G1  A table in `incoming` becomes part of the store only if nothing went wrong with it: every
//       write and every read of it succeeded, and the bytes read are those written. RocksDB's
//       ingestion ignores the status of its iterator (7.8.3): a table whose first or last block
//       could not be read gets wrong bounds, and entries are silently forgotten, or an assertion
//       ends the process. So what was read of a table once stays in memory until it is ingested:
//       after a rehearsal of the ingestion's reads, the real ones succeed. If one fails
//       nevertheless, so does the link into the store, which comes before the manifest.
//   G2  Once writing the manifest has failed, or CURRENT, by which a new one begins to count, no table
//       is removed any more. RocksDB undoes the
//       commit and removes its tables; but the record may be in the manifest all the same, and
//       would then name missing tables: the store could never be opened again. So the tables stay,
//       and the next open() removes those that nothing refers to.
//   G3  A read of a table that failed, or that ended before the file does, is reported to the
//       caller: RocksDB forgets some of them, or fails an assertion. ReadWatch has the reads that
//       failed on its thread, whether RocksDB reports them or not.
//   G4  If a range of a file cannot be synced ahead, the failure is reported by the sync of the
//       file, not before: RocksDB, as Debian builds it, would fail an assertion. The same holds
//       when it cannot find out whether there is an archive of logs, which we never have.
//   G5  While erased space is reclaimed, the disk is reported to have plenty of free space. Once a
//       merge ran out of space, RocksDB merges only if there is room for twice the input, however
//       little of it is left: a full disk would stay full after everything on it was erased. A
//       merge for which there is no room fails by itself and changes nothing.
//
// Any thread.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stanchion::store {

inline constexpr std::string_view kIncoming = "/incoming";

// Failed reads of tables on this thread since this object was made.
class ReadWatch {
 public:
  ReadWatch();
  // `status`, or the failure of a read if `status` is success and a read has failed.
  rocksdb::Status judge(rocksdb::Status status) const;

 private:
  std::uint64_t before_;
};

// Whether this is the error of the last read that failed on this thread.
bool is_failed_read(const rocksdb::Status& status);

class GuardedFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit GuardedFileSystem(const std::shared_ptr<rocksdb::FileSystem>& target)
      : rocksdb::FileSystemWrapper(target) {}

  const char* Name() const override { return "GuardedFileSystem"; }

  // G5 holds as long as this object lives.
  class GivingBack {
   public:
    explicit GivingBack(GuardedFileSystem& files) : files_(files) { ++files_.giving_back_; }
    ~GivingBack() { --files_.giving_back_; }
    GivingBack(const GivingBack&) = delete;
    GivingBack& operator=(const GivingBack&) = delete;

   private:
    GuardedFileSystem& files_;
  };

  // Reads all of a table in `incoming`, from the disk unless the kernel still caches it, and
  // compares it with what was written.
  Status verify(const std::string& path, std::uint64_t size);

  // Tables in `incoming` that are remembered, for G1.
  std::size_t incoming() const;
  // The table was removed, or will never be part of the store.
  void forget(const std::string& path);

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;

  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* debug) override;

  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override;

  rocksdb::IOStatus FileExists(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

  rocksdb::IOStatus LinkFile(const std::string& from, const std::string& to,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override;

  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override;

  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

  rocksdb::IOStatus GetFreeSpace(const std::string& path, const rocksdb::IOOptions& options,
                                 std::uint64_t* bytes, rocksdb::IODebugContext* debug) override;

 private:
  class Table;
  class TableReader;
  class WrittenFile;
  class IncomingFile;
  class IncomingReader;
  class Manifest;
  class SyncedDirectory;

  std::shared_ptr<Table> find(const std::string& path);

  std::atomic<bool> manifest_failed_{false};
  std::atomic<int> giving_back_{0};
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Table>> incoming_;  // By path.
};

}  // namespace stanchion::store
