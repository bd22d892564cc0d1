#include "journal/log_entry.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "base/bytes.h"
#include "base/digest.h"

namespace stanchion::journal {
namespace {

constexpr LogWriterId kWriter{
    .fleet = 0x0123456789ABCDEF, .shard = ShardIndex(3), .node = 2, .writer = 0x1122334455667788};

constexpr LogDigest kBefore(0x8877665544332211);

std::string records_entry(std::uint8_t version = kLogEntryVersion) {
  LogEntryBuilder builder;
  builder.add("hello");
  builder.add("");
  return builder.finish(LogEntryKind::kRecords, Epoch(7), Position(42), kBefore, kWriter, version);
}

std::string reason(std::string_view bytes) {
  const auto decoded = decode_log_entry(bytes);
  return decoded ? "" : decoded.error().message;
}

// Changes a byte of the header and makes the checksum right again.
std::string restamped(std::string bytes, std::size_t at, char value) {
  bytes[at] = value;
  const std::string_view view = bytes;
  const std::uint64_t checksum =
      xxh3_64(view.substr(kLogEntryHeaderSize), xxh3_64(view.substr(0, 56)));
  for (std::size_t i = 0; i < 8; ++i) bytes[56 + i] = static_cast<char>(checksum >> (8 * i));
  return bytes;
}

// Another payload, of which the header says that it has this size; the checksum is right.
std::string with_payload(std::string bytes, std::string_view payload, std::size_t size) {
  bytes.resize(kLogEntryHeaderSize);
  bytes += payload;
  for (std::size_t i = 0; i < 4; ++i) bytes[52 + i] = static_cast<char>(size >> (8 * i));
  return restamped(std::move(bytes), 4, kLogEntryVersion);
}

TEST(LogEntry, IsReadAsItWasWritten) {
  const std::string bytes = records_entry();
  const auto entry = decode_log_entry(bytes);
  ASSERT_TRUE(entry) << entry.error().message;
  EXPECT_EQ(entry->head.kind, LogEntryKind::kRecords);
  EXPECT_EQ(entry->head.epoch, Epoch(7));
  EXPECT_EQ(entry->head.first, Position(42));
  EXPECT_EQ(entry->head.count, 2u);
  EXPECT_EQ(entry->from, kWriter);
  std::vector<std::string> records;
  ASSERT_TRUE(visit_records(*entry, [&](Position position, std::string_view record) -> Status {
    EXPECT_EQ(position.value(), 42 + records.size());
    records.emplace_back(record);
    return {};
  }));
  EXPECT_EQ(records, (std::vector<std::string>{"hello", ""}));
}

TEST(LogEntry, AClaimAndABarrierHaveNoRecords) {
  for (const LogEntryKind kind : {LogEntryKind::kClaim, LogEntryKind::kBarrier}) {
    const std::string bytes =
        LogEntryBuilder().finish(kind, Epoch(1), Position(1), std::nullopt, kWriter);
    const auto entry = decode_log_entry(bytes);
    ASSERT_TRUE(entry) << entry.error().message;
    EXPECT_EQ(entry->head.kind, kind);
    EXPECT_EQ(entry->head.count, 0u);
    EXPECT_FALSE(entry->head.before);
  }
}

TEST(LogEntry, RecordsAndClaimsSayTheDigestOfWhatStandsBefore) {
  EXPECT_EQ(decode_log_entry(records_entry())->head.before, kBefore);
  const auto finish = [](LogEntryKind kind, std::uint8_t version) {
    return LogEntryBuilder().finish(kind, Epoch(1), Position(1), kBefore, kWriter, version);
  };
  EXPECT_EQ(decode_log_entry(finish(LogEntryKind::kClaim, 2))->head.before, kBefore);
  EXPECT_FALSE(decode_log_entry(finish(LogEntryKind::kBarrier, 2))->head.before);
  EXPECT_FALSE(decode_log_entry(finish(LogEntryKind::kClaim, 1))->head.before);
  EXPECT_FALSE(decode_log_entry(records_entry(1))->head.before);
  EXPECT_EQ(records_entry(1).size() + kLogDigestSize, records_entry(2).size());
}

TEST(LogEntry, ABuilderIsEmptyAfterItsEntry) {
  LogEntryBuilder builder;
  builder.add("one");
  (void)builder.finish(LogEntryKind::kRecords, Epoch(1), Position(1), kBefore, kWriter);
  EXPECT_EQ(builder.record_count(), 0u);
  EXPECT_EQ(builder.records_size(), 0u);
}

TEST(LogEntry, AnyChangedByteIsNoticed) {
  const std::string good = records_entry();
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    EXPECT_FALSE(decode_log_entry(bytes)) << "byte " << at;
  }
}

TEST(LogEntry, AnyCutIsNoticed) {
  const std::string good = records_entry();
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(decode_log_entry(std::string_view(good).substr(0, size))) << size;
  EXPECT_FALSE(decode_log_entry(good + '\0'));
}

TEST(LogEntry, AReasonSaysWhatIsWrong) {
  EXPECT_EQ(reason("something else"), "does not begin like an entry");
  EXPECT_EQ(reason(restamped(records_entry(), 4, 0)), "has the version 0, which never was");
  EXPECT_EQ(reason(restamped(records_entry(), 5, 9)), "is of the unknown kind 9");
  // A claim with records, records of the epoch 0, and a count that is not that of the payload.
  EXPECT_EQ(reason(restamped(records_entry(), 5, 2)), "contradicts itself");
  EXPECT_EQ(reason(restamped(records_entry(), 32, 0)), "contradicts itself");
  EXPECT_EQ(reason(restamped(records_entry(), 48, 3)), "contradicts itself");
}

TEST(LogEntry, WhatNoWriterMakesIsRefusedAlthoughItsChecksumIsRight) {
  const std::string good = records_entry();
  const std::string payload = good.substr(kLogEntryHeaderSize);
  const std::string digest = payload.substr(0, kLogDigestSize);
  const auto with = [&](std::string_view other) { return with_payload(good, other, other.size()); };
  ASSERT_EQ(reason(with(payload)), "");
  EXPECT_EQ(reason(with_payload(good, payload, payload.size() + 1)), "does not match its checksum");
  const std::string impossible = "contradicts itself";
  EXPECT_EQ(reason(restamped(good, 40, 0)), impossible) << "the position 0";
  std::string last = good;
  for (std::size_t at = 40; at < 48; ++at) last = restamped(last, at, '\xff');
  EXPECT_EQ(reason(last), impossible) << "positions behind the last one";
  const std::string empty = restamped(with(digest), 48, 0);
  EXPECT_EQ(reason(empty), impossible) << "no records";
  EXPECT_EQ(reason(restamped(empty, 5, 3)), impossible) << "a barrier with a digest";
  EXPECT_EQ(reason(with(digest.substr(1))), impossible) << "half a digest";
  EXPECT_EQ(reason(with(payload + 'x')), impossible) << "more than the records";
  std::string large = digest;
  ByteWriter(large).text(std::string(limits::kRecordSizeMax + 1, 'x'));
  EXPECT_EQ(reason(restamped(with(large), 48, 1)), impossible) << "a record too large";
  std::string both = digest;
  for (int i = 0; i < 2; ++i) ByteWriter(both).text(std::string(limits::kRecordSizeMax, 'x'));
  EXPECT_TRUE(reason(with(both)).starts_with("has a size that no entry has"));
}

TEST(LogEntry, ALaterVersionIsBelievedOnlyIfTheEntryIsWhole) {
  const std::string later = restamped(records_entry(), 4, kLogEntryVersion + 1);
  const auto entry = decode_log_entry(later);
  ASSERT_TRUE(entry) << entry.error().message;
  EXPECT_TRUE(entry->is_of_later_version);
  EXPECT_EQ(entry->from, kWriter);
  // A kind that this release does not know is the later one's business.
  EXPECT_TRUE(decode_log_entry(restamped(later, 5, 77)));
  EXPECT_FALSE(decode_log_entry(records_entry())->is_of_later_version);
  std::string changed = records_entry();
  changed[4] = kLogEntryVersion + 1;
  EXPECT_EQ(reason(changed), "does not match its checksum");
}

TEST(LogEntry, WhatIsShorterThanAHeaderWasOneOnlyIfItBeginsLikeOne) {
  for (const std::string_view bytes : {"STNEgarbage", "STNE\x01\x01garbage", "STNE", "STNE\xFF"}) {
    EXPECT_TRUE(may_be_log_entry({}, bytes));
    EXPECT_EQ(reason(bytes), "is cut short");
  }
  for (const std::string_view bytes : {"garbage!", "{\"a\": 1}", "garbage STNE"}) {
    EXPECT_FALSE(may_be_log_entry({}, bytes)) << bytes;
    EXPECT_EQ(reason(bytes), "does not begin like an entry");
  }
}

// It may be all that a changed size has left of one, which may have been a claim.
TEST(LogEntry, WhatIsVeryShortMayHaveBeenOne) {
  for (const std::string_view bytes : {"", "x", "STOP", "garbage"}) {
    EXPECT_TRUE(may_be_log_entry({}, bytes)) << bytes;
    EXPECT_EQ(reason(bytes), "is cut short");
  }
}

TEST(LogEntry, OneByteThatChangedDoesNotHideIt) {
  for (const std::string_view bytes :
       {"XTNE and so on", "SXNE and so on", "STXE and so on", "STNX and so on", ".STNE and so on",
        "..STNE and so on", "...STNE and so on", ".STXE and so on", "TNE and so on"})
    EXPECT_TRUE(may_be_log_entry({}, bytes)) << bytes;
  for (const std::string_view key : {"..STNE..", "\x90S", "\x90\x01ST", "\xFF\xFF\xFF\x01STN"})
    EXPECT_TRUE(may_be_log_entry(key, "something")) << key;
  for (const std::string_view key :
       {"", "a key", "S", "\x01STN", "\x90", "\x90ING", "\x90 a longer S"})
    EXPECT_FALSE(may_be_log_entry(key, "something")) << key;
  EXPECT_TRUE(may_be_log_entry({}, records_entry()));
}

TEST(LogEntry, TheLargestRecordFitsAndTheEntryHasABound) {
  LogEntryBuilder builder;
  ASSERT_TRUE(builder.fits(limits::kRecordSizeMax));
  builder.add(std::string(limits::kRecordSizeMax, 'x'));
  EXPECT_FALSE(builder.fits(limits::kRecordSizeMax));
  const std::string bytes =
      builder.finish(LogEntryKind::kRecords, Epoch(1), Position(1), kBefore, kWriter);
  EXPECT_LE(bytes.size(), kLogEntrySizeMax);
  EXPECT_TRUE(decode_log_entry(bytes));
}

// The bytes that docs/formats.md shows.
TEST(GoldenLogEntry, Version1IsWrittenByteForByteTheSame) {
  std::ifstream in(STANCHION_GOLDEN_JOURNAL "/log-entry-v1", std::ios::binary);
  const std::string golden((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  EXPECT_EQ(records_entry(1), golden);
  EXPECT_TRUE(decode_log_entry(golden));
}

TEST(GoldenLogEntry, Version2IsWrittenByteForByteTheSame) {
  std::ifstream in(STANCHION_GOLDEN_JOURNAL "/log-entry-v2", std::ios::binary);
  const std::string golden((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  EXPECT_EQ(records_entry(2), golden);
  EXPECT_TRUE(decode_log_entry(golden));
}

}  // namespace
}  // namespace stanchion::journal
