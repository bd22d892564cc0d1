// A byte changes in Kafka's copy of a log, outside the entries: what a reader is shown then, and that it
// never takes an entry for nothing. The batches are Kafka's, of version 2; they are read as librdkafka
// 2.0.2 reads them without verifying them.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kafka/batch_test_kit.h"
#include "kafka/log_judge.h"
#include "kafka/test_support.h"

namespace stanchion::kafka {
namespace {

using journal::Epoch;
using journal::LogEntryBuilder;
using journal::LogEntryKind;
using journal::LogOffset;
using Verdict = journal::LogReader::Verdict;

// Reads within some bytes. What goes beyond them makes it bad, and nothing more is read.
class Slice {
 public:
  explicit Slice(std::string_view bytes) : bytes_(bytes) {}

  bool bad() const { return bad_; }
  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  std::string_view take(std::uint64_t size) {
    if (bad_ || size > left()) {
      bad_ = true;
      return {};
    }
    at_ += static_cast<std::size_t>(size);
    return bytes_.substr(at_ - static_cast<std::size_t>(size), static_cast<std::size_t>(size));
  }
  void skip_to(std::uint64_t at) { take(at - at_); }
  std::int64_t number(int size) {
    std::uint64_t value = 0;
    for (const char byte : take(static_cast<std::uint64_t>(size)))
      value = value << 8 | static_cast<unsigned char>(byte);
    const int unused = 64 - 8 * size;
    return static_cast<std::int64_t>(value << unused) >> unused;
  }
  std::int64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::string_view byte = take(1);
      if (bad_) return 0;
      const auto octet = static_cast<unsigned char>(byte[0]);
      if (shift < 64) value |= std::uint64_t{octet & 0x7FU} << shift;
      if (octet < 0x80) break;
    }
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  // Its size is cut to 32 bits; -1 is none.
  std::string_view bytes(std::int64_t size) {
    const auto cut = static_cast<std::int32_t>(size);
    return cut == -1 || cut == 0 ? std::string_view() : take(static_cast<std::uint64_t>(size));
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  bool bad_ = false;
};

struct Shown {
  std::int64_t offset = 0;
  std::string_view key, value;
};

// What the client makes of the answer to one fetch.
class Fetch {
 public:
  Fetch(std::string_view answer, std::int64_t from) : slice_(answer), from_(from) {
    while (!slice_.bad() && !failed && slice_.left() > 0) read_batch();
    if (!shown.empty()) next = std::max(next, shown.back().offset + 1);
  }

  std::vector<Shown> shown;
  bool failed = false;    // The client reports an error that the reader does not wait for.
  std::int64_t next = 0;  // The offset after that of the last batch, as its head says.

 private:
  void read_batch() {
    Slice peeked = slice_;
    peeked.take(kMagicAt);
    const std::int64_t magic = peeked.number(1);
    if (peeked.bad()) {
      slice_.take(~std::uint64_t{0});
    } else if (magic < 0 || magic > 2) {
      if (slice_.number(8) >= from_) failed = true;
      slice_.take(static_cast<std::uint64_t>(slice_.number(4)));
    } else if (magic == 2) {
      read_version_2();
    } else {
      read_older_version();
    }
  }

  void read_version_2() {
    const std::int64_t base = slice_.number(8);
    const std::int64_t size = slice_.number(4);
    const std::size_t began = slice_.at();
    slice_.take(kAttributesAt - kEpochAt);
    const std::int64_t attributes = slice_.number(2);
    const std::int64_t last = base + slice_.number(4);
    slice_.take(kBatchHead - kLastOffsetAt - 4);
    if (size < static_cast<std::int64_t>(kBatchHead - kEpochAt)) slice_.take(~std::uint64_t{0});
    if (slice_.bad()) return;
    Slice records(slice_.take(static_cast<std::uint64_t>(size) - (slice_.at() - began)));
    if (slice_.bad()) return;
    constexpr std::int64_t kCompressed = 7, kControl = 32;
    if (last >= from_) {
      // The codecs have marks and checksums of their own.
      if ((attributes & kCompressed) != 0) failed = true;
      while (!failed && !records.bad() && records.left() > 0)
        read_record(records, base, (attributes & kControl) != 0);
      if (failed || records.bad()) return (void)slice_.take(~std::uint64_t{0});
    }
    next = last + 1;
  }

  void read_record(Slice& records, std::int64_t base, bool is_control) {
    const std::int64_t size = records.varint();
    const std::uint64_t end = records.at() + static_cast<std::uint64_t>(size);
    records.take(1);
    records.varint();
    const std::int64_t offset = base + records.varint();
    if (records.bad()) return;
    if (offset < from_) return records.skip_to(end);
    if (is_control) return (void)records.take(~std::uint64_t{0});  // Its key is missing.
    const std::string_view key = records.bytes(records.varint());
    const std::string_view value = records.bytes(records.varint());
    records.skip_to(end);  // Over the headers, which nobody looks at.
    if (!records.bad()) shown.push_back({offset, key, value});
  }

  // The checksum stands where these have attributes and the size of a key.
  void read_older_version() {
    const std::int64_t offset = slice_.number(8);
    const std::int64_t size = slice_.number(4);
    slice_.take(4);
    const bool has_time = slice_.number(1) == 1;
    const std::int64_t attributes = slice_.number(1);
    if (has_time) slice_.take(8);
    if (size < (has_time ? 14 : 6)) slice_.take(~std::uint64_t{0});
    const std::string_view key = slice_.bytes(slice_.number(4));
    const std::string_view value = slice_.bytes(slice_.number(4));
    if (slice_.bad() || offset < from_) return;
    if ((attributes & 7) != 0) return (void)(failed = true);
    shown.push_back({offset, key, value});
  }

  Slice slice_;
  const std::int64_t from_;
};

// What the broker sends of its file: from the batch on that has the offset, by the heads of batches.
std::optional<std::string_view> answer_of(std::string_view file, std::int64_t from) {
  while (file.size() > kBatchHead) {
    Slice head(file);
    const std::int64_t base = head.number(8);
    const std::int64_t size = head.number(4);
    head.take(kLastOffsetAt - kEpochAt);
    if (size < static_cast<std::int64_t>(kBatchHead - kEpochAt)) return std::nullopt;
    if (base + head.number(4) >= from) return file;
    file.remove_prefix(std::min(file.size(), kEpochAt + static_cast<std::size_t>(size)));
  }
  return std::string_view();
}

enum class Outcome { kWhole, kDamaged, kNothingMore, kHidden };

// Reads the file of a log of `entries` until the end, or a judgement. Hidden: an entry was taken for
// nothing, or for another one.
Outcome read(std::string_view file, const std::vector<std::string>& entries) {
  LogJudge judge(test_log());
  const auto end = static_cast<std::int64_t>(entries.size());
  std::size_t whole = 0;
  for (std::int64_t from = 0; from != end;) {
    if (from > end) return Outcome::kNothingMore;  // The broker says that there is no such offset.
    const auto answer = answer_of(file, from);
    if (!answer) return Outcome::kDamaged;
    const Fetch fetch(*answer, from);
    for (const Shown& one : fetch.shown) {
      const LogOffset at(static_cast<std::uint64_t>(one.offset));
      const auto judged = judge.judge(at, one.value, one.key);
      if (judged.verdict == Verdict::kDamaged) return Outcome::kDamaged;
      if (at.value() != whole || one.value != entries[whole]) return Outcome::kHidden;
      ++whole;
    }
    if (fetch.failed) return Outcome::kDamaged;
    if (fetch.next <= from) return Outcome::kNothingMore;
    from = fetch.next;
  }
  if (!judge.check_end(LogOffset(entries.size()))) return Outcome::kDamaged;
  return whole == entries.size() ? Outcome::kWhole : Outcome::kHidden;
}

std::string records(std::uint64_t position, std::size_t size) {
  return entry_bytes(Epoch(1), Position(position), std::string(size, 'r'));
}

std::string without_records(LogEntryKind kind, Epoch epoch) {
  return LogEntryBuilder().finish(
      kind, epoch, Position(2), std::nullopt,
      {.fleet = kTestFleet, .shard = ShardIndex(0), .node = 2, .writer = 0x123456789ABCDEF0}, 1);
}

struct DamageTest : testing::Test {
  // The entries of each batch. The first two are a claim and a record.
  using Log = std::vector<std::vector<std::string>>;

  static Log log_with(std::initializer_list<std::vector<std::string>> batches) {
    const std::string claim = LogEntryBuilder().finish(
        LogEntryKind::kClaim, Epoch(1), Position(1), std::nullopt,
        {.fleet = kTestFleet, .shard = ShardIndex(0), .node = 1, .writer = 99}, 1);
    Log log{{claim}, {records(1, 5)}};
    log.insert(log.end(), batches);
    return log;
  }

  // Changes every byte outside the entries of the batches behind the first two, to every other value.
  void damage(const Log& log) {
    std::vector<std::string> entries;
    std::string file;
    std::vector<bool> may_change;
    for (std::size_t i = 0; i < log.size(); ++i) {
      const std::string batch = batch_of(entries.size(), log[i]);
      std::vector<bool> outside(batch.size(), i >= 2);
      for (const std::string& entry : log[i]) {
        const std::size_t at = batch.find(entry);
        std::fill_n(outside.begin() + static_cast<std::ptrdiff_t>(at), entry.size(), false);
      }
      may_change.insert(may_change.end(), outside.begin(), outside.end());
      entries.insert(entries.end(), log[i].begin(), log[i].end());
      file += batch;
    }
    ASSERT_EQ(read(file, entries), Outcome::kWhole);
    for (std::size_t at = 0; at < file.size(); ++at)
      for (int flip = 1; may_change[at] && flip < 256; ++flip) {
        std::string changed = file;
        changed[at] = static_cast<char>(changed[at] ^ flip);
        const Outcome outcome = read(changed, entries);
        ++outcomes_[static_cast<std::size_t>(outcome)];
        ASSERT_NE(outcome, Outcome::kHidden)
            << "byte " << at << " of " << file.size() << " ^ " << flip;
      }
  }

  std::size_t outcomes_[4] = {};
};

TEST_F(DamageTest, AnEntryIsReadAsItIsOrTheLogIsRefusedOrGoesNoFurther) {
  for (const std::size_t size : {1UL, 40UL, 200UL, 9'000UL}) damage(log_with({{records(2, size)}}));
  damage(log_with({{without_records(LogEntryKind::kClaim, Epoch(2))}}));
  damage(log_with({{without_records(LogEntryKind::kBarrier, Epoch(1))}}));
  for (const Outcome each : {Outcome::kWhole, Outcome::kDamaged, Outcome::kNothingMore})
    EXPECT_GT(outcomes_[static_cast<std::size_t>(each)], 1000U);
}

TEST_F(DamageTest, TheSameOfSeveralEntriesInABatch) {
  damage(log_with({{records(2, 3), records(3, 70)}}));
  damage(log_with({{records(2, 300), without_records(LogEntryKind::kClaim, Epoch(2))}}));
}

TEST_F(DamageTest, TheSameWithEntriesBehind) {
  damage(log_with({{records(2, 30)}, {records(3, 30), records(4, 30)}, {records(5, 30)}}));
  damage(log_with({{without_records(LogEntryKind::kClaim, Epoch(2))},
                   {without_records(LogEntryKind::kBarrier, Epoch(2))}}));
}

}  // namespace
}  // namespace stanchion::kafka
