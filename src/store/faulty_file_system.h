// For tests: a file system for RocksDB that counts calls, and at a chosen step is full from then
// on, fails once, returns wrong data once, or loses power.
//
// When power is lost the process is killed, after everything that was not synced was undone: bytes
// after the last sync of their file, and names made since the last sync of their directory. A
// rename makes the names before it durable, as journaling file systems do.
#pragma once

#include <rocksdb/file_system.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

namespace stanchion::store {

enum class Fault {
  kNone,
  kNoSpace,    // From the chosen change on, as long as it is armed.
  kPowerLoss,  // At the chosen change.
  kError,      // The chosen call of any kind fails.
  kShortRead,  // The chosen read returns fewer bytes than the file has.
  kWrongRead,  // The chosen read returns bytes that are not in the file.
};

class FaultyFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  using IOStatus = rocksdb::IOStatus;
  using IOOptions = rocksdb::IOOptions;
  using IODebugContext = rocksdb::IODebugContext;

  FaultyFileSystem() : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  const char* Name() const override { return "FaultyFileSystem"; }

  // The fault happens at the `at`-th step from now on, counted from 1.
  void arm(Fault fault, std::uint64_t at) {
    const std::lock_guard lock(mutex_);
    fault_ = fault;
    left_ = at;
    happened_ = false;
    victim_.clear();
    tables_made_ = 0;
  }
  void disarm() { arm(Fault::kNone, 0); }

  // The free space that is reported, instead of the real one.
  void report_free_space(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    free_space_ = bytes;
  }

  // Whether RocksDB began to write a table by itself since the last arm(), within this time.
  bool wait_for_table(std::chrono::milliseconds at_most) {
    std::unique_lock lock(mutex_);
    return table_made_.wait_for(lock, at_most, [&] { return tables_made_ > 0; });
  }

  // For tests that never lose power, and would otherwise mostly wait for the disk.
  void skip_syncs() { skip_syncs_ = true; }

  bool happened() const {
    const std::lock_guard lock(mutex_);
    return happened_;
  }
  // The file of the first step that failed.
  std::string victim() const {
    const std::lock_guard lock(mutex_);
    return victim_;
  }

  IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* file,
                             IODebugContext* debug) override {
    IOStatus status = look(path);
    if (status.ok()) status = target()->NewSequentialFile(path, options, file, debug);
    if (status.ok()) *file = std::make_unique<SequentialFile>(*this, path, std::move(*file));
    return status;
  }

  IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                               IODebugContext* debug) override {
    IOStatus status = look(path);
    if (status.ok()) status = target()->NewRandomAccessFile(path, options, file, debug);
    if (status.ok()) *file = std::make_unique<RandomAccessFile>(*this, path, std::move(*file));
    return status;
  }

  IOStatus FileExists(const std::string& path, const IOOptions& options,
                      IODebugContext* debug) override {
    IOStatus status = look(path);
    return status.ok() ? target()->FileExists(path, options, debug) : status;
  }
  IOStatus GetChildren(const std::string& path, const IOOptions& options,
                       std::vector<std::string>* names, IODebugContext* debug) override {
    IOStatus status = look(path);
    return status.ok() ? target()->GetChildren(path, options, names, debug) : status;
  }
  IOStatus GetFileSize(const std::string& path, const IOOptions& options, std::uint64_t* size,
                       IODebugContext* debug) override {
    IOStatus status = look(path);
    return status.ok() ? target()->GetFileSize(path, options, size, debug) : status;
  }
  IOStatus CreateDirIfMissing(const std::string& path, const IOOptions& options,
                              IODebugContext* debug) override {
    IOStatus status = look(path);
    return status.ok() ? target()->CreateDirIfMissing(path, options, debug) : status;
  }
  IOStatus LockFile(const std::string& path, const IOOptions& options, rocksdb::FileLock** lock,
                    IODebugContext* debug) override {
    IOStatus status = look(path);
    return status.ok() ? target()->LockFile(path, options, lock, debug) : status;
  }

  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* debug) override {
    note_table(path);
    const Step step = change(path);
    if (!step.status.ok()) return step.status;
    IOStatus status = target()->NewWritableFile(path, options, file, debug);
    if (status.ok()) created(path, 0, file);
    return status;
  }

  IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* file,
                              IODebugContext* debug) override {
    IOStatus status = look(path);
    if (status.ok()) status = target()->ReopenWritableFile(path, options, file, debug);
    if (status.ok()) *file = std::make_unique<WritableFile>(*this, path, std::move(*file));
    return status;
  }

  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions& options,
                    IODebugContext* debug) override {
    const Step step = change(to);
    if (!step.status.ok()) return step.status;
    IOStatus status = target()->LinkFile(from, to, options, debug);
    const std::lock_guard lock(mutex_);
    if (status.ok()) {
      synced_[to] = synced_[from];
      new_names_.insert(to);
    }
    return status;
  }

  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* debug) override {
    const Step step = change(to);
    if (!step.status.ok()) return step.status;
    IOStatus status = target()->RenameFile(from, to, options, debug);
    const std::lock_guard lock(mutex_);
    if (status.ok()) {
      synced_[to] = synced_[from];
      synced_.erase(from);
      new_names_.clear();
    }
    return status;
  }

  IOStatus DeleteFile(const std::string& path, const IOOptions& options,
                      IODebugContext* debug) override {
    // On a full disk, files can still be removed.
    const Step step = fault() == Fault::kNoSpace ? Step() : change(path);
    if (!step.status.ok()) return step.status;
    IOStatus status = target()->DeleteFile(path, options, debug);
    const std::lock_guard lock(mutex_);
    synced_.erase(path);
    new_names_.erase(path);
    return status;
  }

  IOStatus GetFreeSpace(const std::string& path, const IOOptions& options, std::uint64_t* bytes,
                        IODebugContext* debug) override {
    {
      const std::lock_guard lock(mutex_);
      if (free_space_) {
        *bytes = *free_space_;
        return IOStatus::OK();
      }
    }
    return target()->GetFreeSpace(path, options, bytes, debug);
  }

  IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* directory,
                        IODebugContext* debug) override {
    IOStatus status = look(path);
    if (status.ok()) status = target()->NewDirectory(path, options, directory, debug);
    if (status.ok()) *directory = std::make_unique<Directory>(*this, path, std::move(*directory));
    return status;
  }

 private:
  // A change that may happen or not. Power is not lost in the middle of one.
  struct Step {
    IOStatus status = IOStatus::OK();
    std::shared_lock<std::shared_mutex> power{};
  };

  class SequentialFile final : public rocksdb::FSSequentialFileOwnerWrapper {
   public:
    SequentialFile(FaultyFileSystem& system, std::string path,
                   std::unique_ptr<rocksdb::FSSequentialFile> file)
        : FSSequentialFileOwnerWrapper(std::move(file)), system_(system), path_(std::move(path)) {}

    IOStatus Read(std::size_t size, const IOOptions& options, rocksdb::Slice* result, char* scratch,
                  IODebugContext* debug) override {
      return system_.read(path_, result, scratch,
                          [&] { return target()->Read(size, options, result, scratch, debug); });
    }

   private:
    FaultyFileSystem& system_;
    std::string path_;
  };

  class RandomAccessFile final : public rocksdb::FSRandomAccessFileOwnerWrapper {
   public:
    RandomAccessFile(FaultyFileSystem& system, std::string path,
                     std::unique_ptr<rocksdb::FSRandomAccessFile> file)
        : FSRandomAccessFileOwnerWrapper(std::move(file)),
          system_(system),
          path_(std::move(path)) {}

    IOStatus Read(std::uint64_t offset, std::size_t size, const IOOptions& options,
                  rocksdb::Slice* result, char* scratch, IODebugContext* debug) const override {
      return system_.read(path_, result, scratch, [&] {
        return target()->Read(offset, size, options, result, scratch, debug);
      });
    }
    IOStatus MultiRead(rocksdb::FSReadRequest* requests, std::size_t count,
                       const IOOptions& options, IODebugContext* debug) override {
      return FSRandomAccessFile::MultiRead(requests, count, options, debug);
    }
    IOStatus Prefetch(std::uint64_t offset, std::size_t size, const IOOptions& options,
                      IODebugContext* debug) override {
      IOStatus status = system_.look(path_);
      return status.ok() ? target()->Prefetch(offset, size, options, debug) : status;
    }

   private:
    FaultyFileSystem& system_;
    std::string path_;
  };

  class WritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    WritableFile(FaultyFileSystem& system, std::string path,
                 std::unique_ptr<rocksdb::FSWritableFile> file)
        : FSWritableFileOwnerWrapper(std::move(file)), system_(system), path_(std::move(path)) {}

    IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                    IODebugContext* debug) override {
      const Step step = system_.change(path_);
      if (!step.status.ok()) return step.status;
      return target()->Append(data, options, debug);
    }
    IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                    const rocksdb::DataVerificationInfo& /*info*/, IODebugContext* debug) override {
      return Append(data, options, debug);
    }
    IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
      const Step step = system_.change(path_);
      if (!step.status.ok()) return step.status;
      if (system_.skip_syncs_) return target()->Flush(options, debug);
      IOStatus status = target()->Sync(options, debug);
      if (status.ok()) system_.file_synced(path_);
      return status;
    }
    IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
      return Sync(options, debug);
    }
    IOStatus RangeSync(std::uint64_t offset, std::uint64_t size, const IOOptions& options,
                       IODebugContext* debug) override {
      IOStatus status = system_.look(path_);
      return status.ok() ? target()->RangeSync(offset, size, options, debug) : status;
    }
    IOStatus Truncate(std::uint64_t size, const IOOptions& options,
                      IODebugContext* debug) override {
      IOStatus status = system_.look(path_);
      return status.ok() ? target()->Truncate(size, options, debug) : status;
    }
    // An open file is closed all the same, as by close(2).
    IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
      IOStatus status = system_.look(path_);
      IOStatus closed = target()->Close(options, debug);
      return status.ok() ? closed : status;
    }

   private:
    FaultyFileSystem& system_;
    std::string path_;
  };

  class Directory final : public rocksdb::FSDirectoryWrapper {
   public:
    Directory(FaultyFileSystem& system, std::string path,
              std::unique_ptr<rocksdb::FSDirectory> directory)
        : FSDirectoryWrapper(std::move(directory)), system_(system), path_(std::move(path)) {}

    IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
      const Step step = system_.change(path_);
      if (!step.status.ok()) return step.status;
      if (system_.skip_syncs_) return IOStatus::OK();
      IOStatus status = FSDirectoryWrapper::Fsync(options, debug);
      if (status.ok()) system_.directory_synced(path_);
      return status;
    }
    IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                                 const rocksdb::DirFsyncOptions& /*which*/) override {
      return Fsync(options, debug);
    }

   private:
    FaultyFileSystem& system_;
    std::string path_;
  };

  void note_table(const std::string& path) {
    if (!path.ends_with(".sst") || path.find("/incoming/") != std::string::npos) return;
    const std::lock_guard lock(mutex_);
    ++tables_made_;
    table_made_.notify_all();
  }

  void created(const std::string& path, std::uint64_t size,
               std::unique_ptr<rocksdb::FSWritableFile>* file) {
    *file = std::make_unique<WritableFile>(*this, path, std::move(*file));
    const std::lock_guard lock(mutex_);
    synced_[path] = size;
    new_names_.insert(path);
  }

  void file_synced(const std::string& path) {
    const std::lock_guard lock(mutex_);
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(path, error);
    if (!error) synced_[path] = size;
  }

  void directory_synced(const std::string& path) {
    const std::lock_guard lock(mutex_);
    std::erase_if(new_names_, [&](const std::string& name) {
      return std::filesystem::path(name).parent_path() == std::filesystem::path(path);
    });
  }

  Fault fault() const {
    const std::lock_guard lock(mutex_);
    return fault_;
  }

  // Counts down to a fault that happens once. REQUIRES: mutex_ is held.
  bool is_struck(const std::string& path) {
    if (left_ == 0 || --left_ > 0) return false;
    happened_ = true;
    victim_ = path;
    return true;
  }

  // Called before calls that change nothing.
  IOStatus look(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (fault_ != Fault::kError || !is_struck(path)) return IOStatus::OK();
    return IOStatus::IOError("While looking at " + path, "Input/output error");
  }

  template <typename Read>
  IOStatus read(const std::string& path, rocksdb::Slice* result, char* scratch,
                const Read& target) {
    IOStatus status = look(path);
    if (status.ok()) status = target();
    const std::lock_guard lock(mutex_);
    const bool lies = fault_ == Fault::kShortRead || fault_ == Fault::kWrongRead;
    if (!status.ok() || !lies || result->empty() || !is_struck(path)) return status;
    if (fault_ == Fault::kShortRead) {
      *result = rocksdb::Slice(result->data(), result->size() / 2);
    } else {
      std::memmove(scratch, result->data(), result->size());
      scratch[result->size() / 2] ^= 0x10;
      *result = rocksdb::Slice(scratch, result->size());
    }
    return status;
  }

  // Called before each change; the returned lock is held until the change is made.
  Step change(const std::string& path) {
    bool off = false;
    {
      const std::lock_guard lock(mutex_);
      if (fault_ == Fault::kError && is_struck(path))
        return {IOStatus::IOError("While writing " + path, "Input/output error")};
      const bool lasting = fault_ == Fault::kNoSpace || fault_ == Fault::kPowerLoss;
      const bool now = lasting && (left_ == 0 || --left_ == 0);
      if (now && fault_ == Fault::kNoSpace) {
        if (!happened_) victim_ = path;
        happened_ = true;
        return {IOStatus::NoSpace("While writing " + path, "No space left on device")};
      }
      off = now;
    }
    if (off) lose_power();
    return {IOStatus::OK(), std::shared_lock(power_)};
  }

  [[noreturn]] void lose_power() {
    const std::unique_lock off(power_);
    const std::lock_guard lock(mutex_);
    std::error_code error;
    for (const auto& [path, size] : synced_) {
      if (std::filesystem::file_size(path, error) > size && !error)
        std::filesystem::resize_file(path, size, error);
    }
    for (const std::string& name : new_names_) std::filesystem::remove(name, error);
    std::raise(SIGKILL);
    ::_exit(1);
  }

  std::shared_mutex power_;
  mutable std::mutex mutex_;
  Fault fault_ = Fault::kNone;
  std::uint64_t left_ = 0;
  bool skip_syncs_ = false;
  bool happened_ = false;
  std::string victim_;
  std::optional<std::uint64_t> free_space_;
  std::uint64_t tables_made_ = 0;
  std::condition_variable table_made_;
  std::map<std::string, std::uint64_t> synced_;
  std::set<std::string> new_names_;
};

}  // namespace stanchion::store
