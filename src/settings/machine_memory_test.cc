#include "settings/machine_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "os/temporary_directory.h"

namespace stanchion::settings {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class MachineMemory : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root_.path() + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  std::uint64_t found() const { return memory_of_this_process(root_.path()); }

  os::TemporaryDirectory root_;
  const std::uint64_t machine_ = memory_of_this_process("/nowhere");
};

TEST_F(MachineMemory, IsAllOfItWithoutALimit) {
  EXPECT_GT(machine_, 64 * kMiB);
  EXPECT_EQ(found(), machine_);
  write("proc/self/cgroup", "0::/a");
  write("sys/fs/cgroup/a/memory.max", "max");
  EXPECT_EQ(found(), machine_);
}

TEST_F(MachineMemory, IsTheLeastLimitOfTheGroupsAroundIt) {
  write("proc/self/cgroup", "0::/a/b/c");
  write("sys/fs/cgroup/a/memory.max", std::to_string(20 * kMiB));
  write("sys/fs/cgroup/a/b/memory.max", "max");
  write("sys/fs/cgroup/a/b/c/memory.max", std::to_string(30 * kMiB));
  EXPECT_EQ(found(), 20 * kMiB);
}

TEST_F(MachineMemory, OfAContainerMayBeAtTheRoot) {
  write("proc/self/cgroup", "0::/");
  write("sys/fs/cgroup/memory.max", std::to_string(40 * kMiB));
  EXPECT_EQ(found(), 40 * kMiB);
}

TEST_F(MachineMemory, OfCgroupsOfVersion1) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:hugetlb,memory:/docker/1\n0::/");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  write("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", std::to_string(50 * kMiB));
  EXPECT_EQ(found(), 50 * kMiB);
}

TEST_F(MachineMemory, IsNotMadeUpFromNonsense) {
  write("proc/self/cgroup", "memory\n4:memory\n4:memory:x\n\n::");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "little");
  EXPECT_EQ(found(), machine_);
}

}  // namespace
}  // namespace stanchion::settings
