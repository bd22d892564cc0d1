#include "store/guarded_file_system.h"

#include <utility>

namespace stanchion::store {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class GuardedFileSystem::Manifest final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  Manifest(std::unique_ptr<rocksdb::FSWritableFile> file, std::atomic<bool>& failed)
      : FSWritableFileOwnerWrapper(std::move(file)), failed_(failed) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  IODebugContext* debug) override {
    return watch(target()->Append(data, options, debug));
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info, IODebugContext* debug) override {
    return watch(target()->Append(data, options, info, debug));
  }
  IOStatus Flush(const IOOptions& options, IODebugContext* debug) override {
    return watch(target()->Flush(options, debug));
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    return watch(target()->Sync(options, debug));
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return watch(target()->Fsync(options, debug));
  }

 private:
  IOStatus watch(IOStatus status) {
    if (!status.ok()) failed_ = true;
    return status;
  }

  std::atomic<bool>& failed_;
};

IOStatus GuardedFileSystem::NewWritableFile(const std::string& path,
                                            const rocksdb::FileOptions& options,
                                            std::unique_ptr<rocksdb::FSWritableFile>* file,
                                            IODebugContext* debug) {
  IOStatus status = target()->NewWritableFile(path, options, file, debug);
  if (status.ok() && path.find("/MANIFEST-") != std::string::npos)
    *file = std::make_unique<Manifest>(std::move(*file), manifest_failed_);
  return status;
}

IOStatus GuardedFileSystem::DeleteFile(const std::string& path, const IOOptions& options,
                                       IODebugContext* debug) {
  if (manifest_failed_ && path.ends_with(".sst")) return IOStatus::OK();
  return target()->DeleteFile(path, options, debug);
}

}  // namespace stanchion::store
