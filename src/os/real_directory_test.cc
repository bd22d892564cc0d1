#include "os/real_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <vector>

#include "os/clock.h"
#include "os/entropy.h"
#include "os/temporary_directory.h"

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

namespace stanchion::os {
namespace {

class RealDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_real_directory(path_);
    ASSERT_TRUE(opened) << opened.error().message;
    directory_ = std::move(*opened);
  }

  TemporaryDirectory temporary_;
  const std::string& path_ = temporary_.path();
  std::unique_ptr<Directory> directory_;
};

TEST_F(RealDirectoryTest, WhatCannotBeFoundOutIsNotTakenForMissing) {
  EXPECT_TRUE(exists(path_).value());
  EXPECT_FALSE(exists(path_ + "/missing").value());
  EXPECT_FALSE(exists(path_ + "/missing/below").value());
  const auto unknown = exists(path_ + "/" + std::string(300, 'x'));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().os_error, ENAMETOOLONG);
}

TEST_F(RealDirectoryTest, WhatIsWrittenIsReadBack) {
  auto file = directory_->open_file("f", OpenMode::kCreateNew);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->allocate(100));
  ASSERT_TRUE((*file)->write_at(10, "hello"));
  ASSERT_TRUE((*file)->sync_data());
  EXPECT_EQ(*(*file)->size(), 100u);
  std::array<char, 200> bytes{};
  EXPECT_EQ(*(*file)->read_at(10, bytes), 90u);
  EXPECT_EQ(std::string_view(bytes.data(), 5), "hello");
  ASSERT_TRUE((*file)->truncate(12));
  EXPECT_EQ(*(*file)->size(), 12u);
}

TEST_F(RealDirectoryTest, AppendsOfAnyLengthAreReadBack) {
  constexpr std::size_t kSize = (std::size_t{3} << 20) + 1000;
  {
    auto created = directory_->open_file("f", OpenMode::kCreateNew);
    ASSERT_TRUE(created);
    ASSERT_TRUE((*created)->allocate(kSize));
    ASSERT_TRUE((*created)->write_at(0, "header"));
  }
  auto file = directory_->open_file("f", OpenMode::kAppend);
  ASSERT_TRUE(file) << file.error().message;
  std::string expected = "header";
  const auto append = [&](std::size_t length) {
    std::string bytes;
    for (std::size_t i = 0; i < length; ++i)
      bytes.push_back(static_cast<char>('a' + (expected.size() + i * 7) % 26));
    ASSERT_TRUE((*file)->write_at(expected.size(), bytes));
    expected += bytes;
  };
  // Writes within a block, to its end and across it, across several, and more than one write takes.
  for (const std::size_t length :
       {1ul, 300ul, 4096ul - 307, 4096ul, 5000ul, 100ul, 20000ul, (1ul << 20) + 5, 17ul})
    append(length);
  // Zeros written ahead, as a journal does, do not disturb later writes before them.
  const std::size_t ahead = (expected.size() / kBlockSize + 2) * kBlockSize;
  ASSERT_TRUE((*file)->write_at(ahead, std::string(3 * kBlockSize, '\0')));
  append(10'000);
  append(kSize - expected.size());  // Where the file ends in the middle of a block.
  ASSERT_TRUE((*file)->sync_data());
  EXPECT_EQ(*(*file)->size(), kSize);
  std::string found(kSize, '\0');
  ASSERT_EQ(*(*file)->read_at(0, found), kSize);
  EXPECT_TRUE(found == expected);
  ASSERT_TRUE((*file)->truncate(5000));
  ASSERT_TRUE((*file)->write_at(5000, "end"));
  EXPECT_EQ(*(*file)->size(), 5003u);
  ASSERT_EQ(*(*file)->read_at(4096, found), 5003u - 4096);
  EXPECT_EQ(std::string_view(found).substr(0, 907), expected.substr(4096, 904) + "end");
}

TEST_F(RealDirectoryTest, NamesAreListedSortedRenamedAndRemoved) {
  for (const char* name : {"b", "a", "c"})
    ASSERT_TRUE(directory_->open_file(name, OpenMode::kCreateNew));
  ASSERT_TRUE(directory_->open_directory("sub"));
  ASSERT_TRUE(directory_->rename("c", "a"));
  ASSERT_TRUE(directory_->sync());
  EXPECT_EQ(*directory_->list(), (std::vector<std::string>{"a", "b"}));
  ASSERT_TRUE(directory_->remove("b"));
  EXPECT_EQ(*directory_->list(), (std::vector<std::string>{"a"}));
}

TEST_F(RealDirectoryTest, FailuresNameTheFileAndTheReason) {
  const auto missing = directory_->open_file("missing", OpenMode::kReadOnly);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().os_error, ENOENT);
  EXPECT_EQ(missing.error().message,
            "cannot open " + path_ + "/missing: No such file or directory");
  ASSERT_TRUE(directory_->open_file("there", OpenMode::kCreateNew));
  EXPECT_EQ(directory_->open_file("there", OpenMode::kCreateNew).error().os_error, EEXIST);
}

TEST_F(RealDirectoryTest, ASyncIsRepeatedAfterASignalAndAfterNothingElse) {
  auto file = directory_->open_file("f", OpenMode::kCreateNew);
  ASSERT_TRUE(file);
  const auto sync_file = [&] { return (*file)->sync_data(); };
  const auto sync_directory = [&] { return directory_->sync(); };
  for (const std::function<Status()>& sync :
       std::initializer_list<std::function<Status()>>{sync_file, sync_directory}) {
    sync_errors = {EINTR, EINTR};
    EXPECT_TRUE(sync());
    EXPECT_TRUE(sync_errors.empty());
    for (const int error : {EIO, ENOSPC, EDQUOT}) {
      sync_errors = {EINTR, error, EIO};
      const Status failed = sync();
      ASSERT_FALSE(failed);
      EXPECT_EQ(failed.error().os_error, error);
      EXPECT_EQ(sync_errors, std::vector{EIO}) << "there was another call";
      sync_errors.clear();
    }
  }
}

TEST_F(RealDirectoryTest, WhatIsNoRegularFileIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo((path_ + "/pipe").c_str(), 0600), 0);
  ASSERT_EQ(::mkdir((path_ + "/folder").c_str(), 0700), 0);
  for (const char* name : {"pipe", "folder"}) {
    for (const OpenMode mode : {OpenMode::kReadOnly, OpenMode::kReadWrite, OpenMode::kAppend}) {
      const auto opened = directory_->open_file(name, mode);
      ASSERT_FALSE(opened) << name;
      EXPECT_NE(opened.error().os_error, ENOENT) << name;
      EXPECT_NE(opened.error().message.find(path_ + "/" + name), std::string::npos);
    }
  }
}

TEST_F(RealDirectoryTest, ASecondHolderOfTheLockIsToldWhoHasIt) {
  auto lock = directory_->lock();
  ASSERT_TRUE(lock);
  const auto second = directory_->lock();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message,
            path_ + " is in use by another stanchion (pid " + std::to_string(::getpid()) + ")");
  lock->reset();
  EXPECT_TRUE(directory_->lock());
}

TEST_F(RealDirectoryTest, MissingParentsAreCreatedAndExistingOnlyIsRespected) {
  EXPECT_FALSE(open_existing_directory(path_ + "/x/y/z"));
  EXPECT_TRUE(open_real_directory(path_ + "/x/y/z"));
  EXPECT_TRUE(open_real_directory(path_ + "/x/w/"));
  EXPECT_TRUE(std::filesystem::is_directory(path_ + "/x/y/z"));
  EXPECT_TRUE(std::filesystem::is_directory(path_ + "/x/w"));
  ASSERT_TRUE(directory_->open_file("file", OpenMode::kCreateNew));
  EXPECT_FALSE(open_real_directory(path_ + "/file"));
  EXPECT_FALSE(open_real_directory(path_ + "/missing/.."));
}

TEST_F(RealDirectoryTest, FreeSpaceIsKnown) {
  EXPECT_GT(*directory_->free_space(), 0u);
}

TEST(SystemClock, CountsMillisecondsFrom1970) {
  EXPECT_GT(to_seconds(SystemClock().now()), 1'700'000'000);
}

TEST(SystemEntropy, DoesNotRepeat) {
  SystemEntropy entropy;
  EXPECT_NE(entropy.u64(), entropy.u64());
}

// A process that may open no more files can still open its data files, again and again.
TEST(SpareDescriptors, AFileIsOpenedThoughTheProcessMayOpenNoMore) {
  const TemporaryDirectory temporary;
  auto directory = open_real_directory(temporary.path());
  ASSERT_TRUE(directory);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int highest = ::fcntl(0, F_DUPFD, 0);
  ::close(highest);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(highest) + 32;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<int> taken;
  const auto take_all = [&] {
    for (int one = ::dup(0); one >= 0; one = ::dup(0)) taken.push_back(one);
  };
  take_all();
  EXPECT_EQ(errno, EMFILE);
  for (int i = 0; i < 100; ++i) {
    const auto file = (*directory)->open_file("file" + std::to_string(i), OpenMode::kCreateNew);
    EXPECT_TRUE(file) << i << ": " << file.error().message;
    take_all();
  }
  // The descriptor of a closed data file is not available to others.
  take_all();
  EXPECT_TRUE((*directory)->open_file("file0", OpenMode::kAppend));
  for (const int one : taken) ::close(one);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace stanchion::os
