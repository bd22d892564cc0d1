#include "fleet/control_codec.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "fleet/control.h"
#include "fleet/control_test_kit.h"
#include "model/limits.h"

namespace stanchion::fleet {
namespace {

constexpr std::uint32_t kShards = 3;

TEST(ControlCodec, EveryKindIsReadAsItWasWritten) {
  std::set<std::size_t> kinds;
  for (const ControlRecord& record : all_kinds_of_records()) {
    kinds.insert(record.index());
    const auto read = decode_control(encode_control(record));
    ASSERT_TRUE(read && *read) << record.index();
    EXPECT_EQ(**read, record) << record.index();
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<ControlRecord>);
}

// The sizes that the record had before it got its last fields, with which it is read, too, and what it
// said then.
std::map<std::size_t, ControlRecord> earlier_sizes(const ControlRecord& record) {
  const auto* beat = std::get_if<Beat>(&record);
  if (beat == nullptr) return {};
  std::map<std::size_t, ControlRecord> earlier;
  Beat before = *beat;
  before.stalled.clear();
  earlier.emplace(encode_control(before).size() - 1, before);
  before.other_past.clear();
  earlier.emplace(encode_control(before).size() - 2, before);
  before.linked.reset();
  before.unlinked.clear();
  earlier.emplace(encode_control(before).size() - 3, before);
  before.count = 0;
  before.given_up.clear();
  earlier.emplace(encode_control(before).size() - 5, before);
  return earlier;
}

TEST(ControlCodec, ABeatOfAnEarlierReleaseIsRead) {
  const ControlRecord record = all_kinds_of_records().front();
  for (const auto& [size, expected] : earlier_sizes(record)) {
    const auto read = decode_control(encode_control(record).substr(0, size));
    ASSERT_TRUE(read && *read);
    EXPECT_EQ(**read, expected);
  }
}

TEST(ControlCodec, ABeatMaySayNothingOfItsLinksOrThatThereAreNone) {
  Beat beat = std::get<Beat>(all_kinds_of_records().front());
  beat.unlinked.clear();
  for (const auto& linked : {std::optional<std::set<NodeName>>(), {std::set<NodeName>()}}) {
    beat.linked = linked;
    EXPECT_EQ(std::get<Beat>(**decode_control(encode_control(beat))), beat);
  }
}

TEST(ControlCodec, AReasonIsMadeShortAndHarmless) {
  const std::string reason = control_reason(std::string(500, 'x') + "\x1b[2J");
  EXPECT_EQ(reason.size(), kControlReasonSizeMax);
  EXPECT_EQ(control_reason("a\x1b[2J\xff"), "a?[2J?");
}

TEST(ControlCodec, WhatIsCutOffIsRefused) {
  for (const ControlRecord& record : all_kinds_of_records()) {
    const std::string bytes = encode_control(record);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const bool is_whole = earlier_sizes(record).contains(size);
      EXPECT_EQ(decode_control(bytes.substr(0, size)).has_value(), is_whole)
          << record.index() << ", " << size;
    }
  }
}

TEST(ControlCodec, FieldsAndKindsOfALaterReleaseAreSkipped) {
  for (const ControlRecord& record : all_kinds_of_records()) {
    const auto read = decode_control(encode_control(record) + "more");
    ASSERT_TRUE(read && *read);
    EXPECT_EQ(**read, record);
  }
  const auto unknown = decode_control("STNC\x01\xC8whatever");
  ASSERT_TRUE(unknown);
  EXPECT_FALSE(*unknown);
}

TEST(ControlCodec, AnotherFormatIsRefusedWithWhatToDo) {
  const std::string later = of_later_format("fields that nobody knows");
  const auto read = decode_control(later);
  ASSERT_FALSE(read);
  EXPECT_TRUE(is_of_later_format(later));
  EXPECT_TRUE(is_of_later_format(of_later_format("")));
  EXPECT_NE(read.error().message.find("upgrade"), std::string::npos);
}

TEST(ControlCodec, ALaterFormatIsBelievedOnlyOfAWholeRecord) {
  const std::string later = of_later_format("fields");
  for (std::size_t size = 0; size < later.size(); ++size)
    EXPECT_FALSE(is_of_later_format(later.substr(0, size))) << size;
  for (std::size_t i = 0; i < later.size(); ++i) {
    std::string damaged = later;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_FALSE(is_of_later_format(damaged)) << i;
    EXPECT_FALSE(decode_control(damaged)) << i;
  }
  for (const char* strange : {"STNC", "STNC\x01\x02", "STNCgarbage", "STNC\xff\xff\xff\xff\xff"}) {
    EXPECT_FALSE(is_of_later_format(strange)) << strange;
    EXPECT_FALSE(is_of_later_format(std::string(strange) + std::string(100, 'x'))) << strange;
  }
  EXPECT_FALSE(is_of_later_format(of_later_format(std::string(kControlRecordSizeMax, 'x'))));
}

TEST(ControlCodec, WhatCannotBeIsRefused) {
  Beat beat = std::get<Beat>(all_kinds_of_records().front());
  for (const char* name : {"", "a b", "a/b", "\x1b[2J"}) {
    beat.node = name;
    EXPECT_FALSE(decode_control(encode_control(beat))) << name;
  }
  beat.node = std::string(kControlNameSizeMax, 'x');
  EXPECT_TRUE(decode_control(encode_control(beat)));
  beat.node += 'x';
  EXPECT_FALSE(decode_control(encode_control(beat)));
  EXPECT_FALSE(decode_control(encode_control(Move{.id = 0, .shard = {}, .to = "a"})));
  EXPECT_FALSE(
      decode_control(encode_control(Move{.id = 1, .shard = {}, .to = "a", .by = "\x1b[2J"})));
  EXPECT_FALSE(decode_control(encode_control(FleetMetadata{.id = 1, .name = "a", .shards = 0})));
  EXPECT_FALSE(decode_control(
      encode_control(FleetMetadata{.id = 1, .name = "a", .shards = limits::kShardsMax + 1})));
}

TEST(ControlCodec, ABeatOfEveryShardIsSmall) {
  Beat beat = std::get<Beat>(all_kinds_of_records().front());
  for (std::uint32_t i = 0; i < limits::kShardsMax; ++i)
    beat.reached[ShardIndex(i)] = {Position(UINT64_MAX), Position(UINT64_MAX), UINT64_MAX};
  const std::string bytes = encode_control(beat);
  EXPECT_LT(bytes.size(), 8'192u);
  EXPECT_EQ(std::get<Beat>(**decode_control(bytes)), beat);
}

TEST(ControlCodec, ABeatIsNeverTooLarge) {
  Beat beat = std::get<Beat>(all_kinds_of_records().front());
  const std::string reason(kControlReasonSizeMax, 'x');
  const auto name = [](std::size_t i) {
    return std::string(kControlNameSizeMax - 3, 'n') + std::to_string(100 + i);
  };
  for (std::uint32_t i = 0; i < limits::kShardsMax; ++i) {
    beat.reached[ShardIndex(i)] = {Position(UINT64_MAX), Position(UINT64_MAX), UINT64_MAX};
    // What is said of a shard that is stalled takes more than of one that was given up.
    beat.stalled[ShardIndex(i)] = {from_millis(1'700'000'000'000), reason};
    beat.other_past.insert(ShardIndex(i));
  }
  beat.given_up.clear();
  for (std::size_t i = 0; i < kControlLinksMax; ++i) beat.linked->insert(name(i));
  for (const auto& extra : {"node-2", "node-3"}) beat.linked->erase(extra);
  beat.unlinked.clear();
  for (std::size_t i = 0; i < kControlLinkReasonsMax; ++i) beat.unlinked[name(i)] = reason;
  EXPECT_EQ(std::get<Beat>(**decode_control(encode_control(beat))), beat);
  beat.linked->insert("one-more");
  EXPECT_FALSE(decode_control(encode_control(beat)));
}

struct Known {
  Term term;
  NodeName coordinator;
  std::optional<FleetMetadata> metadata;
  std::map<NodeName, Beat> beats;
  std::vector<bool> drained_and_forgotten;
  std::vector<std::tuple<std::optional<Assignment>, bool, bool, std::optional<Move>>> shards;

  friend bool operator==(const Known&, const Known&) = default;
};

// Everything that is decided upon.
Known known_after(const std::vector<ControlRecord>& records) {
  ControlState state(kShards);
  for (const ControlRecord& record : records) state.apply(record, SteadyInstant());
  Known known{state.term(), state.coordinator(), state.metadata(), {}, {}, {}};
  for (const auto& [name, node] : state.nodes()) known.beats[name] = node.beat;
  for (const char* name : {"n0", "n1", "n2", "n3"}) {
    known.drained_and_forgotten.push_back(state.is_drained(name));
    known.drained_and_forgotten.push_back(state.is_forgotten(name));
  }
  for (std::uint32_t i = 0; i < kShards; ++i) {
    const ControlState::Shard& shard = state.shard(ShardIndex(i));
    known.shards.emplace_back(shard.assignment, shard.is_released(), shard.has_open_move(),
                              shard.requested_move);
  }
  return known;
}

// Drops some of the records that have a later one with the same key, as Kafka may at any time.
std::vector<ControlRecord> compacted(const std::vector<ControlRecord>& records,
                                     std::mt19937_64& random) {
  std::map<std::string, std::size_t> last;
  for (std::size_t i = 0; i < records.size(); ++i) last[control_key(records[i])] = i;
  std::vector<ControlRecord> left;
  for (std::size_t i = 0; i < records.size(); ++i)
    if (last[control_key(records[i])] == i || random() % 3 == 0) left.push_back(records[i]);
  return left;
}

TEST(Compaction, ChangesNothingThatIsDecidedUpon) {
  std::mt19937_64 random(1);
  std::size_t dropped = 0;
  for (int round = 0; round < 3'000; ++round) {
    std::vector<ControlRecord> records;
    for (std::size_t i = random() % 80; i > 0; --i) records.push_back(some_record(random, kShards));
    const std::vector<ControlRecord> left = compacted(records, random);
    dropped += records.size() - left.size();
    ASSERT_EQ(known_after(records), known_after(left)) << "round " << round;
  }
  EXPECT_GT(dropped, 10'000u);
}

// The records go on after they were compacted, and are compacted again.
TEST(Compaction, MayComeAtAnyTime) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<ControlRecord> all, kept;
    for (int i = 0; i < 200; ++i) {
      all.push_back(some_record(random, kShards));
      kept.push_back(all.back());
      if (random() % 20 == 0) kept = compacted(kept, random);
    }
    ASSERT_EQ(known_after(all), known_after(kept)) << "round " << round;
    EXPECT_LT(kept.size(), all.size());
  }
}

}  // namespace
}  // namespace stanchion::fleet
