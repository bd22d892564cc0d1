// What RocksDB's files must be, and what must not happen to them.
#include "store/plain_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <vector>

#include "store/rocks_store.h"
#include "store/store_testing.h"

namespace {

// What the next calls of fdatasync and fsync fail with, before one gets through.
std::vector<int> sync_errors;

int next_sync(long call, int descriptor) {
  if (sync_errors.empty()) return static_cast<int>(::syscall(call, descriptor));
  errno = sync_errors.front();
  sync_errors.erase(sync_errors.begin());
  return -1;
}

}  // namespace

// In place of the C library's.
extern "C" int fdatasync(int descriptor) {
  return next_sync(SYS_fdatasync, descriptor);
}
extern "C" int fsync(int descriptor) {
  return next_sync(SYS_fsync, descriptor);
}

namespace stanchion::store {
namespace {

TEST(PlainFiles, AreNotForEverybodyWhateverTheUmask) {
  const Scratch scratch;
  const mode_t before = ::umask(0);
  {
    const auto store = RocksStore::open(scratch.store());
    ASSERT_TRUE(store) << store.error().message;
    must_commit(**store, messages(1, 0, 10));
    ASSERT_TRUE((*store)->backup_to(scratch.path() + "/backup"));
  }
  ::umask(before);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch.path())) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const auto others = entry.status().permissions() & std::filesystem::perms::others_all;
    EXPECT_EQ(others, std::filesystem::perms::none) << entry.path();
  }
  EXPECT_GE(files, 10u) << "tables, manifest, CURRENT and more, here and in the backup";
}

TEST(PlainFiles, ANamedPipeIsRefusedAtOnce) {
  const Scratch scratch;
  const std::string pipe = scratch.path() + "/000007.sst";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  PlainFileSystem files;
  std::unique_ptr<rocksdb::FSSequentialFile> sequential;
  EXPECT_FALSE(files.NewSequentialFile(pipe, {}, &sequential, nullptr).ok());
  std::unique_ptr<rocksdb::FSRandomAccessFile> random;
  EXPECT_FALSE(files.NewRandomAccessFile(pipe, {}, &random, nullptr).ok());
}

TEST(PlainFiles, ASyncIsRepeatedAfterASignalAndAfterNothingElse) {
  const Scratch scratch;
  PlainFileSystem files;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  ASSERT_TRUE(files.NewWritableFile(scratch.path() + "/f", {}, &file, nullptr).ok());
  sync_errors = {EINTR, EINTR};
  EXPECT_TRUE(file->Sync({}, nullptr).ok());
  EXPECT_TRUE(sync_errors.empty());
  sync_errors = {EINTR};
  EXPECT_TRUE(file->Fsync({}, nullptr).ok());
  for (const int error : {EIO, ENOSPC}) {
    sync_errors = {EINTR, error, EIO};
    EXPECT_FALSE(file->Sync({}, nullptr).ok());
    EXPECT_EQ(sync_errors, std::vector{EIO}) << "there was another call";
    sync_errors.clear();
  }
}

TEST(PlainFiles, ASyncOfADirectoryIsRepeatedAfterASignalAndAfterNothingElse) {
  const Scratch scratch;
  PlainFileSystem files;
  std::unique_ptr<rocksdb::FSDirectory> directory;
  ASSERT_TRUE(files.NewDirectory(scratch.path(), {}, &directory, nullptr).ok());
  sync_errors = {EINTR, EINTR};
  EXPECT_TRUE(directory->Fsync({}, nullptr).ok());
  EXPECT_TRUE(sync_errors.empty());
  sync_errors = {EINTR, EIO, EIO};
  EXPECT_FALSE(directory->FsyncWithDirOptions({}, nullptr, {}).ok());
  EXPECT_EQ(sync_errors, std::vector{EIO}) << "there was another call";
  sync_errors.clear();
  EXPECT_TRUE(directory->Close({}, nullptr).ok());
  EXPECT_FALSE(files.NewDirectory(scratch.path() + "/missing", {}, &directory, nullptr).ok());
}

}  // namespace
}  // namespace stanchion::store
