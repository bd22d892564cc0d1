#include "model/fact.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/bytes.h"
#include "base/text.h"

namespace stanchion {
namespace {

constexpr Instant kAt = from_millis(0x0102030405060708);

ContentPtr content() {
  ContentParts parts;
  parts.body = "hi";
  parts.id.bytes.fill(0xAA);
  return Content::make(parts);
}

TaskId task() {
  TaskId id;
  id.bytes.fill(0xBB);
  return id;
}

QueueAttributes attributes() {
  QueueAttributes a;
  a.visibility_timeout_seconds = 1;
  a.delay_seconds = 2;
  a.message_size_max = 1'024;
  a.retention_seconds = 60;
  a.wait_time_seconds = 5;
  a.policy = "{}";
  a.redrive = RedrivePolicy{"arn", 7};
  a.redrive_allow = RedriveAllowPolicy{RedriveAllowPolicy::Permission::kByQueue, {"a", "b"}};
  a.kms_master_key_id = "k";
  a.kms_reuse_seconds = 61;
  a.managed_sse = false;
  a.fifo = true;
  a.content_based_deduplication = true;
  a.deduplication_scope = DeduplicationScope::kMessageGroup;
  a.throughput_limit = ThroughputLimit::kPerMessageGroupId;
  return a;
}

struct Sample {
  Fact fact;
  const char* golden;  // Bytes of the fact: number, size, fields.
};

// One fact of each kind, in the order of their numbers. These bytes are on disks: if this test
// fails, correct the encoding, never the bytes.
std::vector<Sample> samples() {
  MacKey key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i);
  const QueueId queue(300);
  const QueueRef ref{"000000000000", "us-east-1", "q"};
  std::vector<Sample> all;
  const auto add = [&](Fact fact, const char* golden) { all.push_back({std::move(fact), golden}); };
  add(ShardFounded{key}, "0110000000000102030405060708090a0b0c0d0e0f");
  add(QueueCreated{queue, ref, attributes(), {{"k", "v"}}},
      "023f000000ac020c3030303030303030303030300975732d656173742d3101711e010280083c0502"
      "7b7d010361726e0701030201610162016b3d000101020201016b0176");
  add(QueueDeleted{queue}, "0302000000ac02");
  add(QueuePurged{queue}, "0402000000ac02");
  add(QueueAttributesSet{queue, attributes()},
      "0521000000ac021e010280083c05027b7d010361726e0701030201610162016b3d0001010202");
  add(QueueTagged{queue, {{"a", "1"}, {"b", ""}}}, "060a000000ac020201610131016200");
  add(QueueUntagged{queue, {"a", "b"}}, "0707000000ac020201610162");
  add(MessageSent{queue, Seq(5), kAt, content(), Hash128{1, 2}},
      "085b000000ac020508070605040302013e0100000000000000000000000000000002000000000000"
      "0000000000aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa49f68a5c8493ec2c0bf489821c21fc3b686901"
      "01000000000000000200000000000000");
  add(MessagesReceived{queue, {{Seq(5), kAt}, {Seq(6), kNever}}, "try"},
      "0919000000ac020205080706050403020106ffffffffffffff7f03747279");
  add(MessagesDeleted{queue, {Seq(5), Seq(200)}}, "0a06000000ac020205c801");
  add(VisibilityChanged{queue, {{Seq(5), kAt}}, ""}, "0b0d000000ac020105080706050403020100");
  add(MessagesLeft{queue, TransferReason::kRedrive, task(), {{Seq(5), TransferNo(9), ref}}},
      "0c2f000000ac0202bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb0105090c303030303030303030303030"
      "0975732d656173742d310171");
  add(TransferAccepted{ShardIndex(3), TransferNo(9), TransferNo(8), queue, Seq(5), content(), kAt,
                       4, kAt},
      "0d56000000030908ac02053e01000000000000000000000000000000020000000000000000000000"
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa49f68a5c8493ec2c0bf489821c21fc3b6869080706050403"
      "0201040807060504030201");
  add(TransfersSettled{{TransferNo(9), TransferNo(10)}}, "0e0300000002090a");
  add(TransferRefused{TransferNo(9)}, "0f0100000009");
  add(MoveTaskStarted{queue, task(), "arn", 500, 1'000},
      "101a000000ac02bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb0361726ef403e807");
  add(MoveTaskEnded{queue, task(), MoveTaskStatus::kFailed, "why"},
      "1117000000ac02bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb0503776879");
  add(MessagesChosen{queue, {{Seq(5), "g"}, {Seq(6), ""}}}, "1208000000ac02020501670600");
  add(TransfersResumed{TransferNo(9)}, "130100000009");
  return all;
}

std::string record_of(const Fact& fact) {
  RecordWriter writer(kAt);
  std::visit([&](const auto& f) { writer.add(f); }, fact);
  return writer.bytes();
}

constexpr std::size_t kRecordHead = 1 + 8;
constexpr std::size_t kFactHead = 1 + 4;

std::string fact_bytes(const Fact& fact) {
  return record_of(fact).substr(kRecordHead);
}

// A record of one fact with the given bytes as its fields.
std::string record_with(std::uint8_t number, std::string_view fields) {
  std::string bytes = RecordWriter(kAt).bytes();
  ByteWriter writer(bytes);
  writer.u8(number);
  writer.u32(static_cast<std::uint32_t>(fields.size()));
  writer.raw(fields);
  return bytes;
}

TEST(Facts, ThereIsASampleOfEachAndItsNumberIsItsPlace) {
  const auto all = samples();
  ASSERT_EQ(all.size(), std::variant_size_v<Fact>);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].fact.index(), i);
    EXPECT_EQ(static_cast<std::size_t>(fact_bytes(all[i].fact)[0]), i + 1) << name_of(all[i].fact);
  }
}

TEST(Facts, BytesNeverChange) {
  for (const Sample& sample : samples())
    EXPECT_EQ(to_hex(fact_bytes(sample.fact)), sample.golden) << name_of(sample.fact);
}

TEST(Facts, EachComesBackAsItWas) {
  for (const Sample& sample : samples()) {
    const auto record = parse_record(record_of(sample.fact));
    ASSERT_TRUE(record) << name_of(sample.fact) << ": " << record.error().message;
    EXPECT_EQ(record->at, kAt);
    ASSERT_EQ(record->facts.size(), 1U);
    EXPECT_EQ(record->facts[0].index(), sample.fact.index());
    EXPECT_EQ(fact_bytes(record->facts[0]), fact_bytes(sample.fact)) << describe(sample.fact);
  }
}

TEST(Facts, ARecordHoldsManyInOrder) {
  RecordWriter writer(kAt);
  EXPECT_TRUE(writer.empty());
  writer.add(QueuePurged{QueueId(1)});
  writer.add(QueueDeleted{QueueId(2)});
  EXPECT_FALSE(writer.empty());
  const auto record = parse_record(writer.bytes());
  ASSERT_TRUE(record);
  ASSERT_EQ(record->facts.size(), 2U);
  EXPECT_EQ(std::get<QueuePurged>(record->facts[0]).queue, QueueId(1));
  EXPECT_EQ(std::get<QueueDeleted>(record->facts[1]).queue, QueueId(2));
  writer.start(kAt);
  EXPECT_TRUE(writer.empty());
}

TEST(Facts, UnknownBytesAtTheEndOfAFactArePassedOver) {
  for (const Sample& sample : samples()) {
    const std::string fields = fact_bytes(sample.fact).substr(kFactHead) + "from the future";
    const auto number = static_cast<std::uint8_t>(sample.fact.index() + 1);
    const auto record = parse_record(record_with(number, fields));
    ASSERT_TRUE(record) << name_of(sample.fact);
    EXPECT_EQ(fact_bytes(record->facts.at(0)), fact_bytes(sample.fact));
  }
}

TEST(Facts, MissingFieldsAtTheEndTakeTheirDefaults) {
  std::string fields;
  ByteWriter writer(fields);
  writer.varint(300);
  const auto received = parse_record(record_with(MessagesReceived::kNumber, fields));
  ASSERT_TRUE(received);
  EXPECT_EQ(std::get<MessagesReceived>(received->facts[0]).queue, QueueId(300));
  EXPECT_TRUE(std::get<MessagesReceived>(received->facts[0]).items.empty());

  const auto started = parse_record(record_with(MoveTaskStarted::kNumber, fields));
  ASSERT_TRUE(started);
  EXPECT_EQ(std::get<MoveTaskStarted>(started->facts[0]).max_per_second, 0);

  const auto set = parse_record(record_with(QueueAttributesSet::kNumber, fields));
  ASSERT_TRUE(set);
  EXPECT_EQ(std::get<QueueAttributesSet>(set->facts[0]).attributes, QueueAttributes());
}

TEST(Facts, AttributesMayLackFieldsOrHaveUnknownOnesAtTheirEnd) {
  std::string attributes;
  ByteWriter(attributes).varint(45);  // Only the first field: the visibility timeout.
  std::string fields;
  ByteWriter writer(fields);
  writer.varint(300);
  writer.text(attributes);
  const auto older = parse_record(record_with(QueueAttributesSet::kNumber, fields));
  ASSERT_TRUE(older);
  QueueAttributes expected;
  expected.visibility_timeout_seconds = 45;
  EXPECT_EQ(std::get<QueueAttributesSet>(older->facts[0]).attributes, expected);

  RecordWriter record(Instant{});
  record.add(QueueAttributesSet{QueueId(300), QueueAttributes()});
  std::string newer = record.bytes();
  const std::size_t size_at = 9 + 1;  // Behind the record's head and the number.
  const std::size_t attributes_size_at = size_at + 4 + 2;
  newer[size_at] = static_cast<char>(newer[size_at] + 1);
  newer[attributes_size_at] = static_cast<char>(newer[attributes_size_at] + 1);
  newer.push_back('\x07');
  const auto parsed = parse_record(newer);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(std::get<QueueAttributesSet>(parsed->facts[0]).attributes, QueueAttributes());
}

TEST(Facts, AMessageWithoutContentIsDamage) {
  std::string fields;
  ByteWriter writer(fields);
  writer.varint(300);
  EXPECT_FALSE(parse_record(record_with(MessageSent::kNumber, fields)));
  EXPECT_FALSE(parse_record(record_with(TransferAccepted::kNumber, fields)));
}

TEST(Facts, UnknownNumbersAndVersionsAreRefused) {
  for (const int number : {0, 20, 99, 255})
    EXPECT_FALSE(parse_record(record_with(static_cast<std::uint8_t>(number), "x"))) << number;
  std::string newer = record_of(QueueDeleted{QueueId(1)});
  newer[0] = 2;
  const auto record = parse_record(newer);
  ASSERT_FALSE(record);
  EXPECT_NE(record.error().message.find("newer release"), std::string::npos);
}

TEST(Facts, ValuesThatNoReleaseWritesAreRefused) {
  const auto with_byte = [](const Fact& fact, std::string_view before, char value) {
    std::string fields = fact_bytes(fact).substr(kFactHead);
    const std::size_t at = fields.find(before);
    fields[at + before.size()] = value;
    return parse_record(record_with(static_cast<std::uint8_t>(fact.index() + 1), fields));
  };
  const std::string id(16, '\xBB');
  const Fact ended = MoveTaskEnded{QueueId(300), task(), MoveTaskStatus::kFailed, ""};
  EXPECT_TRUE(with_byte(ended, id, 5));
  EXPECT_FALSE(with_byte(ended, id, 0));
  EXPECT_FALSE(with_byte(ended, id, 6));
  const Fact left = MessagesLeft{QueueId(300), TransferReason::kRedrive, task(), {}};
  const std::string queue = "\xac\x02";
  EXPECT_TRUE(with_byte(left, queue, 1));
  EXPECT_FALSE(with_byte(left, queue, 0));
  EXPECT_FALSE(with_byte(left, queue, 3));
}

TEST(Facts, CutOrAlteredBytesNeverReadPastTheEnd) {
  for (const Sample& sample : samples()) {
    const std::string bytes = record_of(sample.fact);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      // An exact copy on the heap, so that the sanitizer sees a read past its end.
      const std::vector<char> cut(bytes.data(), bytes.data() + size);
      const auto record = parse_record({cut.data(), cut.size()});
      EXPECT_EQ(record.has_value(), size == kRecordHead) << name_of(sample.fact) << " " << size;
    }
    for (std::size_t i = kRecordHead; i < bytes.size(); ++i) {
      for (const int flip : {1, 0x80, 0xFF}) {
        std::vector<char> altered(bytes.begin(), bytes.end());
        altered[i] = static_cast<char>(altered[i] ^ flip);
        const auto record = parse_record({altered.data(), altered.size()});
        if (record && !record->facts.empty()) describe(record->facts[0]);
      }
    }
  }
}

TEST(Facts, DescriptionNamesTheFactAndKeepsTheSecret) {
  for (const Sample& sample : samples())
    EXPECT_TRUE(describe(sample.fact).starts_with(name_of(sample.fact)));
  MacKey key;
  key.fill('K');
  EXPECT_EQ(describe(ShardFounded{key}), "ShardFounded((secret))");
  EXPECT_EQ(describe(MessagesDeleted{QueueId(1), {Seq(2), Seq(3)}}), "MessagesDeleted(1, [2 3 ])");
}

}  // namespace
}  // namespace stanchion
