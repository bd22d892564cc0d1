#include "store/guarded_file_system.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "store/rocks_setup.h"
#include "store/written_pages.h"

namespace stanchion::store {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

// How much of a table is read at once to verify it.
constexpr std::size_t kVerifiedAtOnce = std::size_t{256} << 10;
constexpr std::size_t kPage = WrittenPages::kPageSize;
static_assert(kVerifiedAtOnce % kPage == 0);

// Of this thread.
struct FailedReads {
  std::uint64_t count = 0;
  IOStatus last = IOStatus::OK();
};
thread_local FailedReads failed_reads;

IOStatus note_failed_read(IOStatus status) {
  ++failed_reads.count;
  failed_reads.last = status;
  return status;
}

bool is_incoming(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash != std::string::npos && std::string_view(path).substr(0, slash).ends_with(kIncoming);
}

// This thread has put a new CURRENT in its place, and has not synced its directory since.
thread_local bool current_is_new = false;

}  // namespace

ReadWatch::ReadWatch() : before_(failed_reads.count) {}

rocksdb::Status ReadWatch::judge(rocksdb::Status status) const {
  return status.ok() && failed_reads.count != before_ ? failed_reads.last : status;
}

bool is_failed_read(const rocksdb::Status& status) {
  return !failed_reads.last.ok() && status.ToString() == failed_reads.last.ToString();
}

// G3.
class GuardedFileSystem::TableReader final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  TableReader(std::unique_ptr<rocksdb::FSRandomAccessFile> file, std::string path,
              std::uint64_t size)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), path_(std::move(path)), size_(size) {}

  IOStatus Read(std::uint64_t offset, std::size_t size, const IOOptions& options, Slice* result,
                char* scratch, IODebugContext* debug) const override {
    IOStatus status = target()->Read(offset, size, options, result, scratch, debug);
    if (!status.ok()) return note_failed_read(std::move(status));
    const std::uint64_t there = offset < size_ ? size_ - offset : 0;
    if (result->size() >= std::min<std::uint64_t>(size, there)) return status;
    return note_failed_read(
        IOStatus::IOError("While reading " + path_, "it became shorter, or a read did"));
  }

  IOStatus MultiRead(rocksdb::FSReadRequest* requests, std::size_t count, const IOOptions& options,
                     IODebugContext* debug) override {
    return rocksdb::FSRandomAccessFile::MultiRead(requests, count, options, debug);
  }

 private:
  const std::string path_;
  const std::uint64_t size_;
};

// What was written to a table in `incoming`, what was read from it, and the first failure.
class GuardedFileSystem::Table {
 public:
  explicit Table(std::string path) : path_(std::move(path)) {}

  IOStatus watch(IOStatus status) {
    if (!status.ok()) {
      const std::lock_guard lock(mutex_);
      if (problem_.ok()) problem_ = status;
    }
    return status;
  }
  IOStatus problem() const {
    const std::lock_guard lock(mutex_);
    return problem_;
  }

  // Fills `into` with whole pages, the last of which may be cut by the end of the file.
  IOStatus read_pages(std::uint64_t offset, std::span<char> into,
                      const rocksdb::FSRandomAccessFile& file, const IOOptions& options,
                      IODebugContext* debug) const {
    Slice got;
    IOStatus status = file.Read(offset, into.size(), options, &got, into.data(), debug);
    if (!status.ok()) return status;
    if (got.size() != into.size())
      return IOStatus::IOError("While reading " + path_, "it ends before what was written does");
    if (!written.matches(offset, view(got)))
      return IOStatus::IOError("While reading " + path_, "this is not what was written");
    if (got.data() != into.data()) std::memcpy(into.data(), got.data(), got.size());
    return status;
  }

  // The same, from memory if it was read before.
  IOStatus read_kept(std::uint64_t offset, std::span<char> into,
                     const rocksdb::FSRandomAccessFile& file, const IOOptions& options,
                     IODebugContext* debug) {
    if (find_kept(offset, into)) return IOStatus::OK();
    IOStatus status = read_pages(offset, into, file, options, debug);
    if (!status.ok()) return status;
    const std::lock_guard lock(mutex_);
    for (std::size_t at = 0; at < into.size(); at += kPage)
      kept_.insert_or_assign(offset + at,
                             std::string(into.data() + at, std::min(kPage, into.size() - at)));
    return status;
  }

  WrittenPages written;

 private:
  bool find_kept(std::uint64_t offset, std::span<char> into) const {
    const std::lock_guard lock(mutex_);
    for (std::size_t at = 0; at < into.size(); at += kPage) {
      const auto page = kept_.find(offset + at);
      if (page == kept_.end()) return false;
      std::ranges::copy(page->second, into.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return true;
  }

  const std::string path_;
  mutable std::mutex mutex_;
  IOStatus problem_ = IOStatus::OK();
  std::map<std::uint64_t, std::string> kept_;  // Pages by offset.
};

// G4.
class GuardedFileSystem::WrittenFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;

  IOStatus RangeSync(std::uint64_t offset, std::uint64_t size, const IOOptions& options,
                     IODebugContext* debug) override {
    IOStatus status = target()->RangeSync(offset, size, options, debug);
    if (!status.ok() && ahead_.ok()) ahead_ = status;
    return IOStatus::OK();
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = target()->Sync(options, debug);
    return status.ok() ? ahead_ : status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = target()->Fsync(options, debug);
    return status.ok() ? ahead_ : status;
  }

 private:
  IOStatus ahead_ = IOStatus::OK();
};

class GuardedFileSystem::IncomingFile final : public WrittenFile {
 public:
  IncomingFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::shared_ptr<Table> table)
      : WrittenFile(std::move(file)), table_(std::move(table)) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    return appended(data, target()->Append(data, options, debug));
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info, IODebugContext* debug) override {
    return appended(data, target()->Append(data, options, info, debug));
  }
  IOStatus Flush(const IOOptions& options, IODebugContext* debug) override {
    return table_->watch(WrittenFile::Flush(options, debug));
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    return table_->watch(WrittenFile::Sync(options, debug));
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return table_->watch(WrittenFile::Fsync(options, debug));
  }
  IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
    return table_->watch(WrittenFile::Close(options, debug));
  }

 private:
  IOStatus appended(const Slice& data, IOStatus status) {
    if (status.ok()) table_->written.append(view(data));
    return table_->watch(std::move(status));
  }

  std::shared_ptr<Table> table_;
};

// Reads whole pages, so that they can be compared and kept.
class GuardedFileSystem::IncomingReader final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  IncomingReader(std::unique_ptr<rocksdb::FSRandomAccessFile> file, std::shared_ptr<Table> table)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), table_(std::move(table)) {}

  IOStatus Read(std::uint64_t offset, std::size_t size, const IOOptions& options, Slice* result,
                char* scratch, IODebugContext* debug) const override {
    *result = Slice();
    const std::uint64_t written = table_->written.size();
    if (offset >= written) return IOStatus::OK();
    const std::uint64_t end = std::min(written, offset + size);
    const std::uint64_t first = offset / kPage * kPage;
    std::string pages(std::min(written, (end + kPage - 1) / kPage * kPage) - first, '\0');
    IOStatus status = table_->watch(table_->read_kept(first, pages, *target(), options, debug));
    if (!status.ok()) return status;
    std::memcpy(scratch, pages.data() + (offset - first), end - offset);
    *result = Slice(scratch, end - offset);
    return status;
  }

  IOStatus MultiRead(rocksdb::FSReadRequest* requests, std::size_t count, const IOOptions& options,
                     IODebugContext* debug) override {
    return rocksdb::FSRandomAccessFile::MultiRead(requests, count, options, debug);
  }

  IOStatus ReadAsync(rocksdb::FSReadRequest& request, const IOOptions& options,
                     std::function<void(const rocksdb::FSReadRequest&, void*)> done, void* argument,
                     void** handle, rocksdb::IOHandleDeleter* deleter,
                     IODebugContext* debug) override {
    return rocksdb::FSRandomAccessFile::ReadAsync(request, options, std::move(done), argument,
                                                  handle, deleter, debug);
  }

 private:
  std::shared_ptr<Table> table_;
};

class GuardedFileSystem::Manifest final : public WrittenFile {
 public:
  Manifest(std::unique_ptr<rocksdb::FSWritableFile> file, std::atomic<bool>& failed)
      : WrittenFile(std::move(file)), failed_(failed) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    return watch(target()->Append(data, options, debug));
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info, IODebugContext* debug) override {
    return watch(target()->Append(data, options, info, debug));
  }
  IOStatus Flush(const IOOptions& options, IODebugContext* debug) override {
    return watch(target()->Flush(options, debug));
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    return watch(WrittenFile::Sync(options, debug));
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return watch(WrittenFile::Fsync(options, debug));
  }

 private:
  IOStatus watch(IOStatus status) {
    if (!status.ok()) failed_ = true;
    return status;
  }

  std::atomic<bool>& failed_;
};

Status GuardedFileSystem::verify(const std::string& path, std::uint64_t size) {
  const std::shared_ptr<Table> table = find(path);
  if (table == nullptr || table->written.size() != size)
    return fail("cannot verify " + path + ": it was not written as a whole");
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  IOStatus status = target()->NewRandomAccessFile(path, {}, &file, nullptr);
  std::string scratch(kVerifiedAtOnce, '\0');
  for (std::uint64_t at = 0; status.ok() && at < size; at += kVerifiedAtOnce) {
    const std::span<char> part(scratch.data(), std::min<std::uint64_t>(scratch.size(), size - at));
    status = table->read_pages(at, part, *file, {}, nullptr);
  }
  if (!table->watch(status).ok()) return rocks_failure("cannot verify " + path, status);
  return {};
}

std::shared_ptr<GuardedFileSystem::Table> GuardedFileSystem::find(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto found = incoming_.find(path);
  return found == incoming_.end() ? nullptr : found->second;
}

std::size_t GuardedFileSystem::incoming() const {
  const std::lock_guard lock(mutex_);
  return incoming_.size();
}

void GuardedFileSystem::forget(const std::string& path) {
  const std::lock_guard lock(mutex_);
  incoming_.erase(path);
}

// G2: where CURRENT is.
class GuardedFileSystem::SyncedDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  SyncedDirectory(std::unique_ptr<rocksdb::FSDirectory> directory, std::atomic<bool>& failed)
      : FSDirectoryWrapper(std::move(directory)), failed_(failed) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return watch(FSDirectoryWrapper::Fsync(options, debug));
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions& which) override {
    return watch(FSDirectoryWrapper::FsyncWithDirOptions(options, debug, which));
  }

 private:
  IOStatus watch(IOStatus status) {
    if (std::exchange(current_is_new, false) && !status.ok()) failed_ = true;
    return status;
  }

  std::atomic<bool>& failed_;
};

IOStatus GuardedFileSystem::NewWritableFile(const std::string& path,
                                            const rocksdb::FileOptions& options,
                                            std::unique_ptr<rocksdb::FSWritableFile>* file,
                                            IODebugContext* debug) {
  IOStatus status = target()->NewWritableFile(path, options, file, debug);
  if (!status.ok()) return status;
  if (path.find("/MANIFEST-") != std::string::npos) {
    *file = std::make_unique<Manifest>(std::move(*file), manifest_failed_);
  } else if (is_incoming(path)) {
    auto table = std::make_shared<Table>(path);
    *file = std::make_unique<IncomingFile>(std::move(*file), table);
    const std::lock_guard lock(mutex_);
    incoming_[path] = std::move(table);
  } else {
    *file = std::make_unique<WrittenFile>(std::move(*file));
  }
  return status;
}

IOStatus GuardedFileSystem::ReopenWritableFile(const std::string& path,
                                               const rocksdb::FileOptions& options,
                                               std::unique_ptr<rocksdb::FSWritableFile>* file,
                                               IODebugContext* debug) {
  IOStatus status = target()->ReopenWritableFile(path, options, file, debug);
  if (status.ok()) *file = std::make_unique<WrittenFile>(std::move(*file));
  return status;
}

IOStatus GuardedFileSystem::NewRandomAccessFile(const std::string& path,
                                                const rocksdb::FileOptions& options,
                                                std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                                IODebugContext* debug) {
  const std::shared_ptr<Table> table = find(path);
  IOStatus status = target()->NewRandomAccessFile(path, options, file, debug);
  if (table == nullptr) {
    std::uint64_t size = 0;
    if (status.ok()) status = target()->GetFileSize(path, {}, &size, debug);
    if (!status.ok()) return note_failed_read(std::move(status));
    *file = std::make_unique<TableReader>(std::move(*file), path, size);
    return status;
  }
  if (status.ok()) *file = std::make_unique<IncomingReader>(std::move(*file), table);
  return table->watch(std::move(status));
}

IOStatus GuardedFileSystem::FileExists(const std::string& path, const IOOptions& options,
                                       IODebugContext* debug) {
  if (path.ends_with("/archive")) return IOStatus::NotFound(path);
  return target()->FileExists(path, options, debug);
}

IOStatus GuardedFileSystem::LinkFile(const std::string& from, const std::string& to,
                                     const IOOptions& options, IODebugContext* debug) {
  if (const std::shared_ptr<Table> table = find(from)) {
    if (IOStatus problem = table->problem(); !problem.ok()) return problem;
  }
  return target()->LinkFile(from, to, options, debug);
}

IOStatus GuardedFileSystem::RenameFile(const std::string& from, const std::string& to,
                                       const IOOptions& options, IODebugContext* debug) {
  IOStatus status = target()->RenameFile(from, to, options, debug);
  if (to.ends_with("/CURRENT")) {
    current_is_new = status.ok();
    if (!status.ok()) manifest_failed_ = true;
  }
  return status;
}

IOStatus GuardedFileSystem::NewDirectory(const std::string& path, const IOOptions& options,
                                         std::unique_ptr<rocksdb::FSDirectory>* directory,
                                         IODebugContext* debug) {
  IOStatus status = target()->NewDirectory(path, options, directory, debug);
  if (status.ok())
    *directory = std::make_unique<SyncedDirectory>(std::move(*directory), manifest_failed_);
  return status;
}

IOStatus GuardedFileSystem::DeleteFile(const std::string& path, const IOOptions& options,
                                       IODebugContext* debug) {
  if (manifest_failed_ && path.ends_with(".sst")) return IOStatus::OK();
  IOStatus status = target()->DeleteFile(path, options, debug);
  forget(path);
  return status;
}

IOStatus GuardedFileSystem::GetFreeSpace(const std::string& path, const IOOptions& options,
                                         std::uint64_t* bytes, IODebugContext* debug) {
  if (giving_back_ == 0) return target()->GetFreeSpace(path, options, bytes, debug);
  // RocksDB adds to what it compares this with.
  *bytes = UINT64_MAX / 2;
  return IOStatus::OK();
}

}  // namespace stanchion::store
