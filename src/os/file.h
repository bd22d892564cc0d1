// Files and directories: all access to the disk goes through these interfaces. RealDirectory is the
// machine's disk, SimDisk a simulated one that loses, tears and refuses writes on demand.
//
// Every failure names the file, what was tried and what the operating system reported. Names are
// single path components; a Directory never reaches outside of itself.
//
// Durability, as POSIX promises it and no more:
//   - written bytes survive a power cut only after sync_data() of their file returned success;
//   - created, renamed and removed names survive only after sync() of their directory did;
//   - after a failed sync, nobody knows which bytes are on disk, and a later success does not prove
//     that they are: the caller must stop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stanchion::os {

// One open file, used by one thread at a time. Closing does not sync.
class File {
 public:
  virtual ~File() = default;

  // The path at which the file was opened, for messages.
  virtual const std::string& path() const = 0;

  // Writes all bytes or fails; a failed write may have left any part of them. Writing past the end
  // makes the file longer.
  virtual Status write_at(std::uint64_t offset, std::string_view bytes) = 0;

  // Fills `into` from `offset`. Returns how many bytes there were: fewer only at the end of file.
  virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) = 0;

  // Returns once the content, and the size needed to read it, is on stable storage.
  virtual Status sync_data() = 0;

  // Makes the file at least `size` bytes long, new bytes zero, and reserves the disk space for all
  // of them now, so that later writes in that range do not find a full disk.
  virtual Status allocate(std::uint64_t size) = 0;

  virtual Status truncate(std::uint64_t size) = 0;
  virtual Result<std::uint64_t> size() = 0;
};

enum class OpenMode {
  kCreateNew,  // Fails if the name exists.
  kReadWrite,  // Fails if it does not.
  kReadOnly,   // Fails if it does not.
  // Like kReadWrite, for a file that is written from front to back within allocated space: a write
  // may zero the bytes after it, up to the next multiple of kBlockSize. In return the write
  // bypasses the kernel's page cache where the file system allows it; then small writes with a sync
  // take less time.
  kAppend,
};

inline constexpr std::uint64_t kBlockSize = 4096;

// Held while a process owns a directory; released by destruction, or when the process ends.
class DirectoryLock {
 public:
  virtual ~DirectoryLock() = default;
};

inline constexpr std::string_view kLockName = "LOCK";

// One directory. Several threads may call it, but no two of them with the same name.
class Directory {
 public:
  virtual ~Directory() = default;

  virtual const std::string& path() const = 0;

  // Opens a regular file. Anything else that has the name, as a directory or a named pipe, is
  // refused at once, and not with ENOENT.
  virtual Result<std::unique_ptr<File>> open_file(std::string_view name, OpenMode mode) = 0;

  // The names of the regular files, sorted. Sub-directories are left out.
  virtual Result<std::vector<std::string>> list() = 0;

  virtual Status remove(std::string_view name) = 0;

  // Replaces `to`, if it exists, atomically: a crash leaves the old or the new file, never neither.
  virtual Status rename(std::string_view from, std::string_view to) = 0;

  // Makes all names created, renamed and removed so far durable.
  virtual Status sync() = 0;

  // Opens the sub-directory, creating it if it is missing. Creation is durable after sync().
  virtual Result<std::unique_ptr<Directory>> open_directory(std::string_view name) = 0;

  // Takes the file LOCK of this directory for this process, or fails at once with a message that
  // names the process that has it.
  virtual Result<std::unique_ptr<DirectoryLock>> lock() = 0;

  // Bytes that this process may still use on the file system.
  virtual Result<std::uint64_t> free_space() = 0;
};

// Whether the failure means "no space left" (disk or quota), or that too many files are open.
// Unlike all others, these states may pass, and the failed call has changed nothing.
bool is_out_of_space(const Failure& failure);

// A name that stays within its directory: not empty, not "." or "..", no '/' and no zero byte.
bool is_plain_name(std::string_view name);

}  // namespace stanchion::os
