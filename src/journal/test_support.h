// What the tests of the journal share: entropy from a seed, a small log on a simulated disk.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "journal/segment_log.h"
#include "os/entropy.h"
#include "os/sim_disk.h"

namespace stanchion::journal {

class SeededEntropy final : public os::Entropy {
 public:
  explicit SeededEntropy(std::uint64_t seed) : random_(seed) {}
  void fill(std::span<std::uint8_t> bytes) override {
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random_());
  }

 private:
  std::mt19937_64 random_;
};

inline constexpr ShardOf kTestShard{ShardIndex(0), 1};
inline constexpr SegmentOptions kSmallSegments{
    .segment_size = 4096, .reserve_size = 2048, .append_size_max = 512, .zero_ahead = 1024};

inline std::vector<std::string> replay_all(SegmentLog& log) {
  std::vector<std::string> records;
  const Status status =
      log.replay(log.first_position(), [&](Position position, std::string_view record) -> Status {
        EXPECT_EQ(position.value(), log.first_position().value() + records.size());
        records.emplace_back(record);
        return {};
      });
  EXPECT_TRUE(status) << status.error().message;
  return records;
}

// A disk with one log in the directory "j" that can be closed, crashed and opened again.
class LogOnSimDisk {
 public:
  explicit LogOnSimDisk(SegmentOptions options = kSmallSegments) : options_(options) {
    disk.put("j/marker", "");
  }

  Result<std::unique_ptr<SegmentLog>> try_open() {
    log.reset();
    auto root = disk.root();
    auto opened = root->open_directory("j");
    if (!opened) return std::unexpected(opened.error());
    directory = std::move(*opened);
    return SegmentLog::open(*directory, kTestShard, options_, entropy_, now);
  }

  void open() {
    auto opened = try_open();
    ASSERT_TRUE(opened) << opened.error().message;
    log = std::move(*opened);
  }

  // Nothing that was not synced survives.
  void crash() {
    disk.crash(std::nullopt);
    open();
  }

  Result<Position> append(std::string_view record) {
    return log->append_batch(std::vector<std::string_view>{record});
  }

  std::string refusal() {
    const auto opened = try_open();
    return opened ? "" : opened.error().message;
  }

  os::SimDisk disk;
  std::unique_ptr<os::Directory> directory;
  std::unique_ptr<SegmentLog> log;
  Instant now = from_millis(1'000'000);

 private:
  SegmentOptions options_;
  SeededEntropy entropy_{1};
};

inline Status trim_before(SegmentLog& log, Position position) {
  SegmentLog::Files removed;
  return log.trim_before(position, removed);
}

}  // namespace stanchion::journal
