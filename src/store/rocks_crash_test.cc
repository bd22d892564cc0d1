// The power goes off at every step of opening a store and committing to it. Each time, the store
// must hold a whole number of batches, including all that were acknowledged.
//
// The program starts itself again as the process that dies: rocks_crash --power-loss PATH STEP.
#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <spawn.h>
#include <sys/wait.h>

#include <fstream>
#include <memory>
#include <string>

#include "store/faulty_file_system.h"
#include "store/rocks_store.h"
#include "store/store_testing.h"

namespace stanchion::store {
namespace {

constexpr std::uint64_t kBatches = 3;
constexpr std::uint64_t kMessages = 80;

Batch batch_of(std::uint64_t number) {
  Batch batch;
  batch.puts.push_back(put("c", std::to_string(number)));
  for (std::uint64_t lane = 1; lane <= 2; ++lane) {
    for (std::uint64_t i = 0; i < kMessages; ++i)
      batch.puts.push_back(put(message(lane, number * kMessages + i), std::string(300, 'v')));
  }
  if (number >= 2) {
    const std::uint64_t dead = (number - 2) * kMessages;
    batch.erased_ranges.push_back({message(1, dead), message(1, dead + kMessages)});
    batch.erased.push_back(message(2, dead));
  }
  return batch;
}

Held state_after(std::uint64_t batches) {
  Held state;
  for (std::uint64_t number = 0; number < batches; ++number) {
    const Batch batch = batch_of(number);
    for (const KeyRange& range : batch.erased_ranges)
      state.erase(state.lower_bound(range.begin), state.lower_bound(range.end));
    for (const Key& key : batch.erased) state.erase(std::string(key));
    for (const Put& one : batch.puts) state[std::string(one.key)] = one.head;
  }
  return state;
}

std::string acknowledged_path(const std::string& path) {
  return path + "/acknowledged";
}

// Commits all batches, and says after each that it is done, until the power goes off.
int run_until_power_loss(const std::string& path, std::uint64_t step) {
  const auto system = std::make_shared<FaultyFileSystem>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(system);
  system->arm(Fault::kPowerLoss, step);
  RocksOptions options;
  options.env = env.get();
  auto store = RocksStore::open(path + "/store", options);
  if (!store) return 1;
  for (std::uint64_t number = 0; number < kBatches; ++number) {
    if (!(*store)->commit(batch_of(number))) return 1;
    std::ofstream(acknowledged_path(path), std::ios::app) << 'x';
  }
  system->disarm();
  return 0;
}

// How the other process ended: 0, or SIGKILL.
int play(const std::string& path, std::uint64_t step) {
  std::string program = "/proc/self/exe";
  std::string option = "--power-loss";
  std::string where = path;
  std::string when = std::to_string(step);
  char* arguments[] = {program.data(), option.data(), where.data(), when.data(), nullptr};
  pid_t child = 0;
  EXPECT_EQ(::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ), 0);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) return WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  return 0;
}

TEST(RocksStoreCrash, AfterPowerLossAtAnyStepAWholeNumberOfBatchesIsThere) {
  int ended = SIGKILL;
  std::uint64_t partial = 0;
  // Every step at first, where a new store is created and the first commit happens; then a sample.
  for (std::uint64_t step = 1; ended == SIGKILL; step += step < 50 ? 1 : 2) {
    Scratch scratch;
    ended = play(scratch.path(), step);
    ASSERT_TRUE(ended == SIGKILL || ended == 0) << ended;
    std::error_code none;
    const std::string noted = acknowledged_path(scratch.path());
    const std::uint64_t acknowledged =
        std::filesystem::exists(noted) ? std::filesystem::file_size(noted, none) : 0;
    partial += acknowledged > 0 && acknowledged < kBatches;

    auto store = RocksStore::open(scratch.store());
    ASSERT_TRUE(store) << "step " << step << ": " << store.error().message;
    const auto mark = (*store)->get("c");
    ASSERT_TRUE(mark);
    const std::uint64_t there = *mark ? std::stoull(**mark) + 1 : 0;
    EXPECT_GE(there, acknowledged) << "step " << step;
    EXPECT_LE(there, acknowledged + 1) << "step " << step;
    EXPECT_EQ(held(**store), state_after(there)) << "step " << step;
    for (std::uint64_t number = there; number < kBatches; ++number)
      must_commit(**store, batch_of(number));
    EXPECT_EQ(held(**store), state_after(kBatches)) << "step " << step;
  }
  EXPECT_GT(partial, 5u);
}

}  // namespace
}  // namespace stanchion::store

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--power-loss")
    return stanchion::store::run_until_power_loss(argv[2], std::stoull(argv[3]));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
