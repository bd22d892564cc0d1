// A file system for RocksDB that removes no table any more once writing the manifest failed.
//
// When RocksDB cannot sync the manifest, it takes the commit back and removes its tables; but the
// record may be in the manifest all the same, and then names tables that are gone: the store could
// never be opened again. So they stay, and the next open() removes those that nobody refers to.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>
#include <string>

namespace stanchion::store {

class GuardedFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit GuardedFileSystem(const std::shared_ptr<rocksdb::FileSystem>& target)
      : rocksdb::FileSystemWrapper(target) {}

  const char* Name() const override { return "GuardedFileSystem"; }

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;

  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

 private:
  class Manifest;

  std::atomic<bool> manifest_failed_{false};
};

}  // namespace stanchion::store
