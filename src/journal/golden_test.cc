// Segment files written by earlier releases, kept in tests/golden/journal: this release reads them
// with the same meaning, and writes version 1 byte for byte the same.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "journal/survey.h"
#include "journal/test_support.h"

namespace stanchion::journal {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> golden_files(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(fs::path(STANCHION_GOLDEN_JOURNAL) / folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    files[entry.path().filename().string()] =
        std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return files;
}

void put_golden(LogOnSimDisk& on, const std::string& folder) {
  for (const auto& [name, bytes] : golden_files(folder)) on.disk.put("j/" + name, bytes);
}

TEST(GoldenJournal, TwoSegmentsOfVersion1AreRead) {
  LogOnSimDisk on;
  put_golden(on, "v1-two-segments");
  on.open();
  EXPECT_EQ(replay_all(*on.log),
            (std::vector<std::string>{"hello", "", std::string(200, 'x'), "world"}));
  EXPECT_EQ(on.log->next_position(), Position(5));
  EXPECT_EQ(on.log->recovery().torn_bytes, 0u);
}

TEST(GoldenJournal, TheTornTailOfVersion1IsCut) {
  LogOnSimDisk on;
  put_golden(on, "v1-torn-tail");
  on.open();
  EXPECT_EQ(replay_all(*on.log), (std::vector<std::string>{"hello", ""}));
  EXPECT_GT(on.log->recovery().torn_bytes, 0u);
}

TEST(GoldenJournal, DamageOfVersion1IsRefused) {
  LogOnSimDisk on;
  put_golden(on, "v1-damaged");
  EXPECT_NE(on.refusal().find("at offset 48"), std::string::npos) << on.refusal();
}

TEST(GoldenJournal, Version1IsWrittenByteForByteTheSame) {
  const SegmentHeader header{
      .shard_count = 1, .first = Position(1), .salt = Salt(0x0123456789ABCDEF)};
  FrameBuilder first;
  first.add("hello");
  first.add("");
  FrameBuilder second;
  second.add(std::string(200, 'x'));
  std::string bytes = encode_segment_header(header);
  bytes += first.stamp(Position(1), header.salt);
  bytes += second.stamp(Position(3), header.salt);
  EXPECT_EQ(bytes, golden_files("v1-two-segments").at(segment_name(Position(1))));
}

}  // namespace
}  // namespace stanchion::journal
