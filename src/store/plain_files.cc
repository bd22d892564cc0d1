#include "store/plain_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "os/uninterrupted.h"

namespace stanchion::store {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

// As all other files of a data directory: not for everybody, whatever the umask.
constexpr mode_t kFileMode = 0640;

IOStatus failed(const std::string& doing, const std::string& path, int error) {
  const std::string where = "While " + doing + " " + path;
  const bool full = error == ENOSPC || error == EDQUOT;
  return full ? IOStatus::NoSpace(where, std::strerror(error))
              : IOStatus::IOError(where, std::strerror(error));
}

// RealFile in os/real_directory.cc says why a sync may be repeated after EINTR, and only then.
using os::uninterrupted;

class PlainWritableFile final : public rocksdb::FSWritableFile {
 public:
  PlainWritableFile(std::string path, int descriptor, std::uint64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
  ~PlainWritableFile() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  IOStatus Append(const rocksdb::Slice& data, const IOOptions&, IODebugContext*) override {
    const char* at = data.data();
    std::size_t left = data.size();
    while (left > 0) {
      const ssize_t written = ::pwrite(descriptor_, at, left, static_cast<off_t>(size_));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return failed("writing", path_, errno);
      at += written;
      left -= static_cast<std::size_t>(written);
      size_ += static_cast<std::uint64_t>(written);
    }
    return IOStatus::OK();
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo&, IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Truncate(std::uint64_t size, const IOOptions&, IODebugContext*) override {
    if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0)
      return failed("cutting", path_, errno);
    size_ = size;
    return IOStatus::OK();
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override {
    // The descriptor is closed all the same, whatever close() returns.
    if (::close(std::exchange(descriptor_, -1)) != 0) return failed("closing", path_, errno);
    return IOStatus::OK();
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    if (uninterrupted([&] { return ::fdatasync(descriptor_); }) != 0)
      return failed("syncing", path_, errno);
    return IOStatus::OK();
  }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    if (uninterrupted([&] { return ::fsync(descriptor_); }) != 0)
      return failed("syncing", path_, errno);
    return IOStatus::OK();
  }
  bool IsSyncThreadSafe() const override { return true; }
  std::uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return size_; }
  // Starts writing bytes that a later sync would have to wait for.
  IOStatus RangeSync(std::uint64_t offset, std::uint64_t size, const IOOptions&,
                     IODebugContext*) override {
    const int done = uninterrupted([&] {
      return ::sync_file_range(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(size),
                               SYNC_FILE_RANGE_WRITE);
    });
    if (done != 0 && errno != ENOSYS) return failed("syncing", path_, errno);
    return IOStatus::OK();
  }
  IOStatus InvalidateCache(std::size_t offset, std::size_t size) override {
    // Only a hint.
    ::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(size),
                    POSIX_FADV_DONTNEED);
    return IOStatus::OK();
  }

 private:
  const std::string path_;
  int descriptor_;
  std::uint64_t size_;
};

class PlainDirectory final : public rocksdb::FSDirectory {
 public:
  PlainDirectory(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}
  ~PlainDirectory() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    if (uninterrupted([&] { return ::fsync(descriptor_); }) != 0)
      return failed("syncing", path_, errno);
    return IOStatus::OK();
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override {
    if (::close(std::exchange(descriptor_, -1)) != 0) return failed("closing", path_, errno);
    return IOStatus::OK();
  }

 private:
  const std::string path_;
  int descriptor_;
};

IOStatus open_file(const std::string& path, int flags,
                   std::unique_ptr<rocksdb::FSWritableFile>* file) {
  int descriptor = -1;
  do descriptor = ::open(path.c_str(), flags | O_CREAT | O_WRONLY | O_CLOEXEC, kFileMode);
  while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return failed("opening", path, errno);
  struct stat found {};
  if (::fstat(descriptor, &found) != 0) {
    const int error = errno;
    ::close(descriptor);
    return failed("looking at", path, error);
  }
  *file = std::make_unique<PlainWritableFile>(path, descriptor,
                                              static_cast<std::uint64_t>(found.st_size));
  return IOStatus::OK();
}

// Opening a named pipe would wait for its other end.
IOStatus refuse_irregular(const std::string& path) {
  struct stat found {};
  // What is missing is reported by opening it.
  if (::stat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode)) return IOStatus::OK();
  return IOStatus::IOError("While opening " + path, "it is not a regular file");
}

}  // namespace

IOStatus PlainFileSystem::NewSequentialFile(const std::string& path,
                                            const rocksdb::FileOptions& options,
                                            std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                            IODebugContext* debug) {
  IOStatus status = refuse_irregular(path);
  return status.ok() ? target()->NewSequentialFile(path, options, file, debug) : status;
}

IOStatus PlainFileSystem::NewRandomAccessFile(const std::string& path,
                                              const rocksdb::FileOptions& options,
                                              std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                              IODebugContext* debug) {
  IOStatus status = refuse_irregular(path);
  return status.ok() ? target()->NewRandomAccessFile(path, options, file, debug) : status;
}

IOStatus PlainFileSystem::LockFile(const std::string& path, const IOOptions& options,
                                   rocksdb::FileLock** lock, IODebugContext* debug) {
  // RocksDB would make it readable for everybody. If it is there, it is left alone: closing another
  // descriptor of a file that this process has locked would release the lock.
  const int made = ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, kFileMode);
  if (made >= 0) ::close(made);
  return target()->LockFile(path, options, lock, debug);
}

IOStatus PlainFileSystem::NewWritableFile(const std::string& path, const rocksdb::FileOptions&,
                                          std::unique_ptr<rocksdb::FSWritableFile>* file,
                                          IODebugContext*) {
  return open_file(path, O_TRUNC, file);
}

IOStatus PlainFileSystem::ReopenWritableFile(const std::string& path, const rocksdb::FileOptions&,
                                             std::unique_ptr<rocksdb::FSWritableFile>* file,
                                             IODebugContext*) {
  return open_file(path, O_APPEND, file);
}

IOStatus PlainFileSystem::NewDirectory(const std::string& path, const IOOptions&,
                                       std::unique_ptr<rocksdb::FSDirectory>* directory,
                                       IODebugContext*) {
  int descriptor = -1;
  do descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return failed("opening", path, errno);
  *directory = std::make_unique<PlainDirectory>(path, descriptor);
  return IOStatus::OK();
}

}  // namespace stanchion::store
