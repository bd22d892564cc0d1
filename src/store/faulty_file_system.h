// For tests: a file system for RocksDB that counts what is changed, and at a chosen step is full
// from then on, or loses power.
//
// When power is lost the process is killed, after everything that was not synced was taken back:
// bytes behind the last sync of their file, and names made since the last sync of their directory.
// A rename makes the names before it durable, as journaling file systems do.
#pragma once

#include <rocksdb/file_system.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <utility>

namespace stanchion::store {

enum class Fault { kNone, kNoSpace, kPowerLoss };

class FaultyFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  using IOStatus = rocksdb::IOStatus;
  using IOOptions = rocksdb::IOOptions;
  using IODebugContext = rocksdb::IODebugContext;

  FaultyFileSystem() : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  const char* Name() const override { return "FaultyFileSystem"; }

  // The fault happens at the `at`-th change from now on, counted from 1.
  void arm(Fault fault, std::uint64_t at) {
    const std::lock_guard lock(mutex_);
    fault_ = fault;
    left_ = at;
    happened_ = false;
    victim_.clear();
  }
  void disarm() { arm(Fault::kNone, 0); }

  bool happened() const {
    const std::lock_guard lock(mutex_);
    return happened_;
  }
  // The file of the first change that failed.
  std::string victim() const {
    const std::lock_guard lock(mutex_);
    return victim_;
  }

  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* debug) override {
    const Step step = change(path);
    if (!step.status.ok()) return step.status;
    IOStatus status = target()->NewWritableFile(path, options, file, debug);
    if (status.ok()) created(path, 0, file);
    return status;
  }

  IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* file,
                              IODebugContext* debug) override {
    IOStatus status = target()->ReopenWritableFile(path, options, file, debug);
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
    // A full disk lets files go.
    const Step step = fault() == Fault::kPowerLoss ? change(path) : Step();
    IOStatus status = target()->DeleteFile(path, options, debug);
    const std::lock_guard lock(mutex_);
    synced_.erase(path);
    new_names_.erase(path);
    return status;
  }

  IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* directory,
                        IODebugContext* debug) override {
    IOStatus status = target()->NewDirectory(path, options, directory, debug);
    if (status.ok()) *directory = std::make_unique<Directory>(*this, path, std::move(*directory));
    return status;
  }

 private:
  // A change that may be made, or not. Power is not lost in the middle of one.
  struct Step {
    IOStatus status = IOStatus::OK();
    std::shared_lock<std::shared_mutex> power{};
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
      IOStatus status = target()->Sync(options, debug);
      if (status.ok()) system_.file_synced(path_);
      return status;
    }
    IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
      return Sync(options, debug);
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

  // Called before each change, and kept until it is made.
  Step change(const std::string& path) {
    bool off = false;
    {
      const std::lock_guard lock(mutex_);
      const bool now = fault_ != Fault::kNone && (left_ == 0 || --left_ == 0);
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
  bool happened_ = false;
  std::string victim_;
  std::map<std::string, std::uint64_t> synced_;
  std::set<std::string> new_names_;
};

}  // namespace stanchion::store
