#include "os/real_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "os/spare_descriptors.h"
#include "os/uninterrupted.h"

namespace stanchion::os {
namespace {

std::unexpected<Failure> os_failure(std::string_view what, const std::string& path, int error) {
  return fail(std::string(what) + " " + path + ": " + std::generic_category().message(error),
              error);
}

// A descriptor that is closed once, and may then become a spare. The result of closing is ignored,
// because closing never loses synced bytes.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() {
    if (value_ >= 0) SpareDescriptors::of_process().close(value_);
  }

  int get() const { return value_; }
  bool valid() const { return value_ >= 0; }
  void release() { value_ = -1; }

 private:
  int value_;
};

// Calls fsync or fdatasync, once more after EINTR and only then. After any other failure a second
// call may report success for bytes that the kernel has dropped: it counts an error of writing back
// as reported, and the pages as clean. A call that a signal interrupted has reported nothing: it
// stopped waiting for the disk or for another machine, and the bytes are dirty or on their way as
// before. If writing them back fails afterwards, Linux (since 4.13) keeps that error for every
// descriptor that was open until a call on it has returned EIO or ENOSPC, so the second call has it.
// PostgreSQL, which stops at every other failure of fsync, repeats the call as well.
template <class Call>
int synced(Call call) {
  return uninterrupted(call);
}

// Opens a file by calling `open`, if need be after closing a spare descriptor.
template <class Open>
Descriptor open_one(Open open) {
  SpareDescriptors& spares = SpareDescriptors::of_process();
  int opened = uninterrupted(open);
  while (opened < 0 && spares.make_room(errno)) opened = uninterrupted(open);
  return Descriptor(opened);
}

bool fits_off_t(std::uint64_t end) {
  return end <= static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
}

// Writes whole blocks, bypassing the kernel's page cache. See OpenMode::kAppend.
class DirectWriter {
 public:
  // `reader` reads the same file, which has `size` bytes, and must outlive this.
  DirectWriter(Descriptor descriptor, int reader, std::uint64_t size)
      : descriptor_(std::move(descriptor)), reader_(reader), size_(size) {}

  // Whether a write of whole blocks would make the file longer.
  bool is_beyond(std::uint64_t end) const { return end > size_ / kBlockSize * kBlockSize; }

  // Returns false, with errno set, if the write failed.
  bool write_at(std::uint64_t offset, std::string_view bytes) {
    while (!bytes.empty()) {
      const std::uint64_t block = offset / kBlockSize * kBlockSize;
      const std::size_t front = static_cast<std::size_t>(offset - block);
      const std::size_t part = std::min(bytes.size(), kPieceSize - front);
      make_buffer(front + part);
      if (front > 0 && !fetch_front(block, front)) return false;
      if (!write_blocks(block, front, bytes.substr(0, part))) return false;
      offset += part;
      bytes.remove_prefix(part);
    }
    return true;
  }

 private:
  static constexpr std::size_t kPieceSize = std::size_t{1} << 20;
  static constexpr std::uint64_t kNoBlock = std::numeric_limits<std::uint64_t>::max();

  void make_buffer(std::size_t size) {
    if (size <= buffer_size_) return;
    buffer_size_ = std::min(std::bit_ceil(std::max(size, std::size_t{kBlockSize})), kPieceSize);
    buffer_.reset(static_cast<char*>(std::aligned_alloc(kBlockSize, buffer_size_)));
    CHECK(buffer_ != nullptr, "out of memory");
  }

  // Fetches the bytes before the written ones in their first block: most often they were the last
  // write.
  bool fetch_front(std::uint64_t block, std::size_t front) {
    if (block == tail_block_) {
      std::memcpy(buffer_.get(), tail_.data(), front);
      return true;
    }
    std::memset(buffer_.get(), 0, front);
    return uninterrupted([&] {
             return ::pread(reader_, buffer_.get(), front, static_cast<off_t>(block));
           }) >= 0;
  }

  bool write_blocks(std::uint64_t block, std::size_t front, std::string_view bytes) {
    const std::size_t end = front + bytes.size();
    const std::size_t padded = (end + kBlockSize - 1) / kBlockSize * kBlockSize;
    const char* blocks = buffer_.get();
    if (padded == bytes.size() &&
        reinterpret_cast<std::uintptr_t>(bytes.data()) % kBlockSize == 0) {
      blocks = bytes.data();
    } else {
      std::memcpy(buffer_.get() + front, bytes.data(), bytes.size());
      std::memset(buffer_.get() + end, 0, padded - end);
    }
    for (std::size_t done = 0; done < padded;) {
      const ssize_t written = uninterrupted([&] {
        return ::pwrite(descriptor_.get(), blocks + done, padded - done,
                        static_cast<off_t>(block + done));
      });
      if (written < 0) return false;
      done += static_cast<std::size_t>(written);
    }
    const std::uint64_t last = block + (padded - kBlockSize);
    if (end < padded) {
      std::memcpy(tail_.data(), buffer_.get() + (padded - kBlockSize), kBlockSize);
      tail_block_ = last;
    } else if (tail_block_ >= block && tail_block_ <= last) {
      tail_block_ = kNoBlock;
    }
    return true;
  }

  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };

  Descriptor descriptor_;
  int reader_;
  std::uint64_t size_;
  std::unique_ptr<char, Free> buffer_;
  std::size_t buffer_size_ = 0;
  std::array<char, kBlockSize> tail_;  // The last block that is only partly written.
  std::uint64_t tail_block_ = kNoBlock;
};

class RealFile final : public File {
 public:
  RealFile(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  // From now on writes go through `direct`, a descriptor for the same file.
  void write_by(Descriptor direct) {
    if (const auto length = size())
      direct_ = std::make_unique<DirectWriter>(std::move(direct), descriptor_.get(), *length);
  }

  const std::string& path() const override { return path_; }

  Status write_at(std::uint64_t offset, std::string_view bytes) override {
    CHECK(fits_off_t(offset + bytes.size()), "offset beyond what files have");
    if (direct_ != nullptr && direct_->is_beyond(offset + bytes.size())) direct_.reset();
    if (direct_ != nullptr) {
      if (direct_->write_at(offset, bytes)) return {};
      // Some file systems report only now that they do not support direct writes.
      if (errno != EINVAL) return os_failure("cannot write", path_, errno);
      direct_.reset();
    }
    while (!bytes.empty()) {
      const ssize_t written = uninterrupted([&] {
        return ::pwrite(descriptor_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      });
      if (written < 0) return os_failure("cannot write", path_, errno);
      offset += static_cast<std::uint64_t>(written);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
  }

  Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) override {
    CHECK(fits_off_t(offset + into.size()), "offset beyond what files have");
    std::size_t done = 0;
    while (done < into.size()) {
      const ssize_t got = uninterrupted([&] {
        return ::pread(descriptor_.get(), into.data() + done, into.size() - done,
                       static_cast<off_t>(offset + done));
      });
      if (got < 0) return os_failure("cannot read", path_, errno);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  Status sync_data() override {
    if (synced([&] { return ::fdatasync(descriptor_.get()); }) != 0)
      return os_failure("cannot sync", path_, errno);
    return {};
  }

  Status allocate(std::uint64_t size) override {
    CHECK(fits_off_t(size), "size beyond what files have");
    int error = EINTR;
    while (error == EINTR)
      error = ::posix_fallocate(descriptor_.get(), 0, static_cast<off_t>(size));
    if (error != 0) return os_failure("cannot allocate space for", path_, error);
    return {};
  }

  Status truncate(std::uint64_t size) override {
    CHECK(fits_off_t(size), "size beyond what files have");
    if (uninterrupted([&] { return ::ftruncate(descriptor_.get(), static_cast<off_t>(size)); }) !=
        0) {
      return os_failure("cannot truncate", path_, errno);
    }
    direct_.reset();  // The writer knows only the old size.
    return {};
  }

  Result<std::uint64_t> size() override {
    struct stat info {};
    if (::fstat(descriptor_.get(), &info) != 0) return os_failure("cannot look at", path_, errno);
    return static_cast<std::uint64_t>(info.st_size);
  }

 private:
  Descriptor descriptor_;
  std::unique_ptr<DirectWriter> direct_;
  std::string path_;
};

class RealLock final : public DirectoryLock {
 public:
  explicit RealLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

 private:
  Descriptor descriptor_;
};

class RealDirectory final : public Directory {
 public:
  RealDirectory(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  const std::string& path() const override { return path_; }

  Result<std::unique_ptr<File>> open_file(std::string_view name, OpenMode mode) override {
    // Opening a named pipe would wait for its other end. For regular files the flag does nothing.
    int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    switch (mode) {
      case OpenMode::kCreateNew:
        flags |= O_RDWR | O_CREAT | O_EXCL;
        break;
      case OpenMode::kReadWrite:
      case OpenMode::kAppend:
        flags |= O_RDWR;
        break;
      case OpenMode::kReadOnly:
        flags |= O_RDONLY;
        break;
    }
    Descriptor opened = open_at(name, flags);
    if (!opened.valid()) return os_failure("cannot open", path_of(name), errno);
    struct stat info {};
    if (::fstat(opened.get(), &info) != 0)
      return os_failure("cannot look at", path_of(name), errno);
    if (!S_ISREG(info.st_mode))
      return fail(path_of(name) + " is not a regular file",
                  S_ISDIR(info.st_mode) ? EISDIR : EINVAL);
    auto file = std::make_unique<RealFile>(std::move(opened), path_of(name));
    if (mode == OpenMode::kAppend) {
      if (Descriptor direct = open_at(name, flags | O_DIRECT); direct.valid())
        file->write_by(std::move(direct));
    }
    return file;
  }

  Result<std::vector<std::string>> list() override {
    // A separate descriptor, because reading moves the position that duplicates share.
    Descriptor opened = open_one(
        [&] { return ::openat(descriptor_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    DIR* stream = opened.valid() ? ::fdopendir(opened.get()) : nullptr;
    if (stream == nullptr) return os_failure("cannot list", path_, errno);
    opened.release();
    const std::unique_ptr<DIR, int (*)(DIR*)> closer(stream, &::closedir);

    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(stream)) {
      if (is_regular(entry->d_name)) names.emplace_back(entry->d_name);
      errno = 0;
    }
    if (errno != 0) return os_failure("cannot list", path_, errno);
    std::ranges::sort(names);
    return names;
  }

  Status remove(std::string_view name) override {
    CHECK(is_plain_name(name), name);
    if (::unlinkat(descriptor_.get(), std::string(name).c_str(), 0) != 0)
      return os_failure("cannot remove", path_of(name), errno);
    return {};
  }

  Status rename(std::string_view from, std::string_view to) override {
    CHECK(is_plain_name(from) && is_plain_name(to), from);
    if (::renameat(descriptor_.get(), std::string(from).c_str(), descriptor_.get(),
                   std::string(to).c_str()) != 0) {
      return os_failure("cannot rename to " + std::string(to), path_of(from), errno);
    }
    return {};
  }

  Status sync() override {
    if (synced([&] { return ::fsync(descriptor_.get()); }) != 0)
      return os_failure("cannot sync", path_, errno);
    return {};
  }

  Result<std::unique_ptr<Directory>> open_directory(std::string_view name) override {
    CHECK(is_plain_name(name), name);
    if (::mkdirat(descriptor_.get(), std::string(name).c_str(), 0750) != 0 && errno != EEXIST)
      return os_failure("cannot create", path_of(name), errno);
    Descriptor opened = open_at(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!opened.valid()) return os_failure("cannot open", path_of(name), errno);
    return std::make_unique<RealDirectory>(std::move(opened), path_of(name));
  }

  // The lock is flock, not the file's existence: it is released however the process ends. The
  // process id in the file is only for the message.
  Result<std::unique_ptr<DirectoryLock>> lock() override {
    Descriptor opened = open_at(kLockName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW);
    if (!opened.valid()) return os_failure("cannot open", path_of(kLockName), errno);
    if (uninterrupted([&] { return ::flock(opened.get(), LOCK_EX | LOCK_NB); }) != 0) {
      if (errno != EWOULDBLOCK) return os_failure("cannot lock", path_of(kLockName), errno);
      return fail(path_ + " is in use by another stanchion (pid " + holder(opened) + ")", EBUSY);
    }
    const std::string pid = std::to_string(::getpid()) + "\n";
    if (::ftruncate(opened.get(), 0) != 0 ||
        ::pwrite(opened.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
      // On a full disk the lock still holds; only the process id in the other side's message is
      // missing.
      if (errno != ENOSPC && errno != EDQUOT)
        return os_failure("cannot write", path_of(kLockName), errno);
    }
    return std::make_unique<RealLock>(std::move(opened));
  }

  Result<std::uint64_t> free_space() override {
    struct statvfs info {};
    if (::fstatvfs(descriptor_.get(), &info) != 0)
      return os_failure("cannot ask for free space of", path_, errno);
    return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  }

 private:
  std::string path_of(std::string_view name) const { return path_ + "/" + std::string(name); }

  Descriptor open_at(std::string_view name, int flags) {
    CHECK(is_plain_name(name), name);
    const std::string terminated(name);
    return open_one([&] { return ::openat(descriptor_.get(), terminated.c_str(), flags, 0640); });
  }

  bool is_regular(const char* name) {
    struct stat info {};
    return ::fstatat(descriptor_.get(), name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(info.st_mode);
  }

  static std::string holder(const Descriptor& lock_file) {
    char text[24] = {};
    const ssize_t got = ::pread(lock_file.get(), text, sizeof text - 1, 0);
    std::string_view pid(text, got > 0 ? static_cast<std::size_t>(got) : 0);
    pid = pid.substr(0, pid.find('\n'));
    return parse_decimal(pid) ? std::string(pid) : "unknown";
  }

  Descriptor descriptor_;
  std::string path_;
};

}  // namespace

Result<std::unique_ptr<Directory>> open_existing_directory(const std::string& path) {
  Descriptor opened =
      open_one([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (!opened.valid()) return os_failure("cannot open", path, errno);
  return std::make_unique<RealDirectory>(std::move(opened), path);
}

Result<std::unique_ptr<Directory>> open_real_directory(const std::string& path) {
  if (path.empty()) return fail("the path of the directory is empty", ENOENT);
  if (auto existing = open_existing_directory(path);
      existing || existing.error().os_error != ENOENT)
    return existing;

  // Create directories from the top down; each name is durable in its parent before the next is
  // made.
  const std::filesystem::path wanted = std::filesystem::path(path).lexically_normal();
  const std::filesystem::path name =
      wanted.has_filename() ? wanted.filename() : wanted.parent_path().filename();
  std::filesystem::path above =
      wanted.has_filename() ? wanted.parent_path() : wanted.parent_path().parent_path();
  if (above.empty()) above = ".";
  if (!is_plain_name(name.string())) return os_failure("cannot open", path, ENOENT);
  auto parent = open_real_directory(above.string());
  if (!parent) return parent;
  auto created = (*parent)->open_directory(name.string());
  if (!created) return created;
  RETURN_IF_FAILED((*parent)->sync());
  return open_existing_directory(path);
}

Result<bool> exists(const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return os_failure("cannot look at", path, errno);
}

Status exchange(const std::string& a, const std::string& b) {
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return {};
  return os_failure("cannot exchange " + a + " with", b, errno);
}

}  // namespace stanchion::os
