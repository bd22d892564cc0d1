// A simulated disk: files and directories in memory that keep no more than POSIX promises.
//
// Writes go to a cache that the program reads back. What survives crash() is what was synced, plus
// a part of the rest that depends only on the seed:
//
//   write_at ─▶ dirty sectors ──sync_data──▶ durable sectors
//                    │    └──sync fails──▶ forgotten: still read back, no later sync writes them
//                    └─ crash: each dirty or forgotten sector is old or new, decided by the seed
//   size changes, names ─▶ a log of steps ──sync──▶ durable
//                                 └─ crash: the first k steps are kept, decided by the seed
//
// Sectors are atomic, 512 bytes. Changes of names and of one file's size persist in the order in
// which they were made, as on journaling file systems (ext4, xfs). Between files there is no order,
// and syncing a file does not make its name durable.
//
// Faults: capacity (a full disk), the n-th sync or write from now fails, the power goes out after n
// changing operations; put() changes the bytes on the platter.
//
// Single-threaded. After crash() every older File, Directory and DirectoryLock is dead: calls on it
// fail with EIO, as if they came from the process that died.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/file.h"

namespace stanchion::os {

class SimDisk {
 public:
  static constexpr std::size_t kSectorSize = 512;

  SimDisk();
  ~SimDisk();
  SimDisk(const SimDisk&) = delete;
  SimDisk& operator=(const SimDisk&) = delete;

  // The root directory, called "sim".
  std::unique_ptr<Directory> root();

  // The machine loses power and restarts. Without a seed, nothing that was not synced survives.
  void crash(std::optional<std::uint64_t> seed);

  // The process ends and the machine stays up: handles and locks are gone, the cache remains.
  void restart_process();

  // Bytes that all files together may take; unlimited at first. May be set below the space in use.
  void set_capacity(std::uint64_t bytes);
  std::uint64_t used() const;

  // The n-th sync (of a file or directory) from now fails with EIO, 1 being the next one. The bytes
  // that it should have made durable are forgotten; see above.
  void fail_sync(std::uint64_t n);
  // The n-th write from now fails with EIO after writing the first half of its bytes.
  void fail_write(std::uint64_t n);
  // After n more changing operations (writes, syncs, names, sizes) everything fails until crash().
  void power_off_after(std::uint64_t n);

  // Changing operations so far: a measure for choosing fault points.
  std::uint64_t operations() const { return operations_; }

  // Direct access for tests, without handles: read() gives the file as a program would read it,
  // put() makes a durable file. `path` is relative to the root, as in "shard-0/file".
  std::optional<std::string> content(std::string_view path) const;
  void put(std::string_view path, std::string_view bytes);

  // What is readable now, as one number: equal for equal runs.
  std::uint64_t fingerprint() const;

 private:
  friend class SimFile;
  friend class SimDirectory;
  friend class SimLock;
  struct Inode;
  struct Folder;
  struct Step;

  // Counts the operation; fails if the power is out or the handle is from before a crash.
  Status begin(std::uint64_t generation, const std::string& path, bool changes);
  bool due(std::uint64_t& countdown);
  void forget_or_keep(Inode& inode, std::optional<std::mt19937_64>& random);
  void crash_folder(Folder& folder, std::optional<std::mt19937_64>& random);
  Folder* find_folder(std::string_view path, std::string_view& name, bool create);

  std::shared_ptr<Folder> root_;
  std::uint64_t generation_ = 1;
  std::uint64_t capacity_;
  std::uint64_t operations_ = 0;
  std::uint64_t sync_countdown_ = 0;   // 0: no fault set.
  std::uint64_t write_countdown_ = 0;  // 0: no fault set.
  std::optional<std::uint64_t> power_left_;
};

}  // namespace stanchion::os
