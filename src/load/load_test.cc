#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>

#include "base/digest.h"
#include "base/text.h"
#include "load/histogram.h"
#include "load/ledger.h"
#include "load/loads.h"
#include "load/options.h"
#include "load/replies.h"
#include "load/report.h"
#include "load/requests.h"

namespace stanchion::load {
namespace {

using Nanos = Histogram::Nanos;

TEST(BenchHistogram, PercentilesAreRightToWithinTwoPercent) {
  Histogram histogram;
  for (int i = 1; i <= 100'000; ++i) histogram.add(Nanos(i * 1'000));
  for (const double share : {0.01, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    const double expected = share * 1e8;
    EXPECT_NEAR(static_cast<double>(histogram.percentile(share).count()), expected,
                expected * 0.02);
  }
  EXPECT_EQ(histogram.count(), 100'000u);
  EXPECT_EQ(histogram.min(), Nanos(1'000));
  EXPECT_EQ(histogram.max(), Nanos(100'000'000));
  EXPECT_EQ(histogram.percentile(1), histogram.max());
}

TEST(BenchHistogram, SmallAndHugeValuesHaveTheirPlace) {
  Histogram histogram;
  for (const std::int64_t value : {0L, 1L, 127L, 128L, 129L, 1L << 40, INT64_MAX})
    histogram.add(Nanos(value));
  histogram.add(Nanos(-5));
  EXPECT_EQ(histogram.count(), 8u);
  EXPECT_EQ(histogram.percentile(0.01), Nanos(0));
  EXPECT_EQ(histogram.percentile(0.375), Nanos(1));
  EXPECT_EQ(histogram.percentile(0.5), Nanos(127));
  EXPECT_EQ(histogram.max(), Nanos(INT64_MAX));
}

TEST(BenchHistogram, AnEmptyOneIsZeroAndMergingAdds) {
  Histogram empty, one;
  EXPECT_EQ(empty.percentile(0.5), Nanos(0));
  EXPECT_EQ(empty.min(), Nanos(0));
  one.add(Nanos(10));
  empty.merge(one);
  EXPECT_EQ(empty.count(), 1u);
  EXPECT_EQ(empty.min(), Nanos(10));
  EXPECT_EQ(empty.mean(), Nanos(10));
}

std::string md5_of(std::string_view body) {
  return to_hex(as_text(md5(body)));
}

struct LedgerKit {
  explicit LedgerKit(bool fifo = false, std::size_t groups = 0)
      : ledger({.queues = 2, .groups = groups, .body_size = 100, .fifo = fifo, .check_every = 1},
               0xabcdef) {}

  std::string body(const MessageId& id) {
    std::string text;
    ledger.append_body(text, id);
    return text;
  }
  void sent(const MessageId& id, std::string_view sequence = "") {
    ledger.on_sent(id, body(id), md5_of(body(id)), sequence);
  }
  void received(const MessageId& id) { ledger.on_received(id.queue, body(id), md5_of(body(id))); }

  Ledger ledger;
};

TEST(BenchLedger, BodiesHaveTheirSizeAndTellWhoTheyAre) {
  LedgerKit kit;
  kit.ledger.next(1);
  const MessageId id = kit.ledger.next(1);
  const std::string body = kit.body(id);
  EXPECT_EQ(body.size(), 100u);
  EXPECT_TRUE(body.starts_with("abcdef-00001-000000-00000001-"));
  MessageId parsed;
  ASSERT_TRUE(parse_body(body, "abcdef", parsed));
  EXPECT_EQ(parsed.queue, 1u);
  EXPECT_EQ(parsed.number, 1u);
  EXPECT_FALSE(parse_body(body, "abcdee", parsed));
  EXPECT_FALSE(parse_body(body.substr(0, 20), "abcdef", parsed));
  EXPECT_FALSE(parse_body("", "abcdef", parsed));
}

TEST(BenchLedger, WhatWasAcknowledgedAndNeverCameIsLost) {
  LedgerKit kit;
  const MessageId a = kit.ledger.next(0), b = kit.ledger.next(0), in_doubt = kit.ledger.next(0);
  kit.sent(a);
  kit.sent(b);
  kit.received(a);
  kit.received(in_doubt);
  EXPECT_EQ(kit.ledger.outstanding(), 1u);
  EXPECT_EQ(kit.ledger.findings().lost, 0u);
  kit.ledger.set_drained();
  EXPECT_EQ(kit.ledger.findings().lost, 1u);
  EXPECT_FALSE(kit.ledger.findings().right(false));
  kit.received(b);
  EXPECT_TRUE(kit.ledger.findings().right(false));
}

TEST(BenchLedger, AMessageMayComeBeforeTheAnswerToItsSend) {
  LedgerKit kit;
  const MessageId a = kit.ledger.next(0);
  kit.received(a);
  EXPECT_EQ(kit.ledger.outstanding(), 0u);
  kit.sent(a);
  EXPECT_EQ(kit.ledger.outstanding(), 0u);
}

TEST(BenchLedger, DamageIsFoundWhereverItIs) {
  LedgerKit kit;
  const MessageId a = kit.ledger.next(0);
  std::string body = kit.body(a);
  kit.ledger.on_sent(a, body, "00000000000000000000000000000000", "");
  EXPECT_EQ(kit.ledger.findings().damaged, 1u);
  kit.ledger.on_received(0, body, "");
  EXPECT_EQ(kit.ledger.findings().damaged, 2u);
  body.back() = '!';
  kit.ledger.on_received(0, body, md5_of(body));
  EXPECT_EQ(kit.ledger.findings().damaged, 3u);
  kit.ledger.on_received(1, kit.body(a), md5_of(kit.body(a)));
  EXPECT_EQ(kit.ledger.findings().damaged, 4u);
  kit.ledger.on_received(0, kit.body({0, 0, 77}), md5_of(kit.body({0, 0, 77})));
  EXPECT_EQ(kit.ledger.findings().damaged, 5u);
  kit.ledger.on_received(0, "of somebody else", "");
  EXPECT_EQ(kit.ledger.findings().damaged, 5u);
  EXPECT_EQ(kit.ledger.findings().foreign, 1u);
}

TEST(BenchLedger, GroupsOfAFifoQueueComeInOrderAndOnce) {
  LedgerKit kit(true, 2);
  const MessageId a = kit.ledger.next(0), b = kit.ledger.next(0), c = kit.ledger.next(0);
  // The server accepted c before a; a and c are of one group. Numbers may exceed 2^64.
  kit.sent(c, "18446744073709551614");
  kit.sent(b, "18446744073709551615");
  kit.sent(a, "18446744073709551620");
  kit.received(b);
  kit.received(c);
  kit.received(a);
  EXPECT_TRUE(kit.ledger.findings().right(true)) << kit.ledger.findings().first;
  kit.received(a);
  EXPECT_FALSE(kit.ledger.findings().right(true));

  LedgerKit wrong(true, 1);
  const MessageId d = wrong.ledger.next(0), e = wrong.ledger.next(0);
  wrong.sent(d, "1");
  wrong.sent(e, "2");
  wrong.received(e);
  wrong.received(d);
  EXPECT_EQ(wrong.ledger.findings().disordered, 1u);
}

TEST(BenchReplies, RowsOfEveryJsonAnswerAreFound) {
  ReplyReader reader;
  ASSERT_TRUE(reader.read(Protocol::kJson,
                          R"({"MessageId":"x","MD5OfMessageBody":"abc","SequenceNumber":"17"})"));
  ASSERT_EQ(reader.rows().size(), 1u);
  EXPECT_EQ(reader.rows()[0].md5, "abc");
  EXPECT_EQ(reader.rows()[0].sequence, "17");

  ASSERT_TRUE(reader.read(
      Protocol::kJson,
      R"({ "Messages" : [ {"Attributes":{"Body":"no"},"ReceiptHandle":"a\/b\"c\\","Body":"one",)"
      R"("MD5OfBody":"m1"}, {"Body":"two","MD5OfBody":"m2","ReceiptHandle":"r"}]})"));
  ASSERT_EQ(reader.rows().size(), 2u);
  EXPECT_EQ(reader.rows()[0].body, "one");
  EXPECT_EQ(reader.rows()[0].receipt, R"(a\/b\"c\\)");
  EXPECT_EQ(reader.rows()[1].md5, "m2");

  ASSERT_TRUE(reader.read(Protocol::kJson,
                          R"({"Failed":[{"Id":"1","Code":"X","SenderFault":true}],)"
                          R"("Successful":[{"Id":"0","MD5OfMessageBody":"m"}]})"));
  EXPECT_EQ(reader.rows().size(), 1u);
  EXPECT_EQ(reader.failed(), 1u);
  EXPECT_EQ(reader.first_failure(), R"({"Id":"1","Code":"X","SenderFault":true})");

  EXPECT_TRUE(reader.read(Protocol::kJson, "{}"));
  EXPECT_TRUE(reader.rows().empty());
  EXPECT_TRUE(reader.read(Protocol::kJson, ""));
  for (const std::string_view broken : {"{", "{\"a", "{\"a\\\"", "<xml/>", "[}"})
    EXPECT_FALSE(reader.read(Protocol::kJson, broken)) << broken;
}

TEST(BenchReplies, RowsOfEveryXmlAnswerAreFound) {
  ReplyReader reader;
  ASSERT_TRUE(reader.read(Protocol::kQuery,
                          "<?xml version=\"1.0\"?><SendMessageResponse xmlns=\"u\">"
                          "<SendMessageResult><MessageId>x</MessageId>"
                          "<MD5OfMessageBody>abc</MD5OfMessageBody></SendMessageResult>"
                          "<ResponseMetadata><RequestId>r</RequestId></ResponseMetadata>"
                          "</SendMessageResponse>"));
  ASSERT_EQ(reader.rows().size(), 1u);
  EXPECT_EQ(reader.rows()[0].md5, "abc");

  ASSERT_TRUE(reader.read(
      Protocol::kQuery,
      "<ReceiveMessageResponse><ReceiveMessageResult><Message><Body>one</Body>"
      "<ReceiptHandle>a&amp;b</ReceiptHandle><MD5OfBody>m</MD5OfBody></Message>"
      "<Message><Body>two</Body></Message></ReceiveMessageResult></ReceiveMessageResponse>"));
  ASSERT_EQ(reader.rows().size(), 2u);
  EXPECT_EQ(decode_xml(reader.rows()[0].receipt), "a&b");
  EXPECT_EQ(reader.rows()[1].body, "two");

  ASSERT_TRUE(
      reader.read(Protocol::kQuery,
                  "<R><SendMessageBatchResultEntry><Id>3</Id></SendMessageBatchResultEntry>"
                  "<BatchResultErrorEntry><Id>4</Id><Code>C</Code></BatchResultErrorEntry></R>"));
  EXPECT_EQ(reader.rows().size(), 1u);
  EXPECT_EQ(reader.rows()[0].id, "3");
  EXPECT_EQ(reader.failed(), 1u);
  EXPECT_FALSE(reader.read(Protocol::kQuery, "<R"));
  EXPECT_FALSE(reader.read(Protocol::kQuery, "nothing"));
}

TEST(BenchReplies, AQueueUrlIsFoundInBothProtocols) {
  EXPECT_EQ(find_value(Protocol::kJson, R"({"QueueUrl": "http://h/q"})", "QueueUrl"), "http://h/q");
  EXPECT_EQ(find_value(Protocol::kQuery, "<a><QueueUrl>http://h/q</QueueUrl></a>", "QueueUrl"),
            "http://h/q");
  EXPECT_EQ(find_value(Protocol::kJson, "{}", "QueueUrl"), "");
  EXPECT_EQ(find_value(Protocol::kQuery, "<a/>", "QueueUrl"), "");
}

struct WriterKit {
  explicit WriterKit(Options o)
      : options(std::move(o)), writer(options, *net::parse_url(options.endpoint)) {
    writer.add_queue("http://127.0.0.1:9324/000000000000/q");
  }
  std::string body() const { return request.substr(request.find("\r\n\r\n") + 4); }

  Options options;
  Ledger ledger{{.queues = 1, .groups = 3, .body_size = 40}, 1};
  RequestWriter writer;
  std::string request;
};

TEST(BenchRequests, ABatchIsWellFormedJsonAndKnowsWhereItsBodiesAre) {
  WriterKit kit({.fifo = true, .groups = 3, .anonymous = true});
  std::vector<PlacedMessage> messages{{kit.ledger.next(0)}, {kit.ledger.next(0)}};
  kit.writer.send(kit.request, kit.ledger, messages);
  const boost::json::value parsed = boost::json::parse(kit.body());
  const auto& entries = parsed.at("Entries").as_array();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[1].at("MessageGroupId").as_string(), "g1");
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(std::string_view(kit.request).substr(messages[i].at, 40),
              std::string_view(entries[i].at("MessageBody").as_string()));
  EXPECT_NE(kit.request.find("X-Amz-Target: AmazonSQS.SendMessageBatch\r\n"), std::string::npos);
  EXPECT_NE(kit.request.find("Content-Length: " + std::to_string(kit.body().size()) + "\r\n\r\n"),
            std::string::npos);
  EXPECT_EQ(kit.request.find("Authorization"), std::string::npos);
}

TEST(BenchRequests, AFormSendsTheSame) {
  WriterKit kit({.protocol = Protocol::kQuery, .anonymous = true});
  std::vector<PlacedMessage> messages{{kit.ledger.next(0)}, {kit.ledger.next(0)}};
  kit.writer.send(kit.request, kit.ledger, messages);
  EXPECT_TRUE(kit.request.starts_with("POST /000000000000/q HTTP/1.1\r\n"));
  EXPECT_TRUE(kit.body().starts_with(
      "Action=SendMessageBatch&Version=2012-11-05&QueueUrl=http%3A%2F%2F127.0.0.1%3A9324%2F"));
  EXPECT_NE(kit.body().find("&SendMessageBatchRequestEntry.2.MessageBody=000001-"),
            std::string::npos);
  kit.writer.remove(kit.request, 0, std::vector<std::string>{"a+b/c=", "d"});
  EXPECT_NE(kit.body().find("&DeleteMessageBatchRequestEntry.1.ReceiptHandle=a%2Bb%2Fc%3D"),
            std::string::npos);
}

TEST(BenchRequests, WithoutKeysASignatureOfNobodysIsMadeOnce) {
  WriterKit kit({});
  kit.writer.receive(kit.request, 0, 10, 20);
  EXPECT_EQ(kit.body(), R"({"QueueUrl":"http://127.0.0.1:9324/000000000000/q",)"
                        R"("MaxNumberOfMessages":10,"WaitTimeSeconds":20})");
  EXPECT_NE(kit.request.find("Authorization: AWS4-HMAC-SHA256 Credential=BENCH"),
            std::string::npos);
  const std::string first = kit.request;
  kit.writer.receive(kit.request, 0, 10, 20);
  EXPECT_EQ(kit.request, first);
}

TEST(BenchReport, NumbersReadWell) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999.6), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_duration(Nanos(812)), "812 ns");
  EXPECT_EQ(format_duration(Nanos(12'340)), "12.3 µs");
  EXPECT_EQ(format_duration(Nanos(1'204'000)), "1.20 ms");
  EXPECT_EQ(format_duration(Nanos(123'400'000)), "123 ms");
  EXPECT_EQ(format_duration(Nanos(3'400'000'000)), "3.40 s");
}

TEST(BenchReport, TheLineWhileItRunsHasTheRateOfTheTableAndTheTimeLeft) {
  Histogram latency;
  EXPECT_EQ(to_line({.doing = "filling", .messages_per_second = 1234, .latency = latency}),
            "filling: 1,234 messages/s");
  latency.add(Nanos(2'000'000));
  EXPECT_EQ(
      to_line(
          {.doing = "cycle", .messages_per_second = 50, .latency = latency, .seconds_left = 7.4}),
      "cycle: 50 messages/s · p50 2.00 ms · p99 2.00 ms · 7 s left");
}

TEST(BenchReport, JsonSaysTheSameAsTheTable) {
  Options options{.workload = Workload::kSend, .batch = 10};
  Outcome outcome;
  outcome.seconds = 2;
  for (int i = 0; i < 100; ++i) outcome.stats.add(Op::kSend, Nanos(1'000'000), 10);
  outcome.findings.sent = 1000;
  const boost::json::value report = boost::json::parse(to_json(options, outcome));
  EXPECT_EQ(report.at("result").as_double(), 500);
  EXPECT_TRUE(report.at("right").as_bool());
  EXPECT_EQ(report.at("ops").at("send").at("latency_us").at("p50").to_number<double>(), 1000);
  const std::string table = to_table(options, outcome);
  EXPECT_NE(table.find("send                  50         500   1.00 ms"), std::string::npos)
      << table;
  EXPECT_EQ(table.find("WRONG"), std::string::npos);
  outcome.findings.damaged = 1;
  outcome.findings.first = "the body of x";
  EXPECT_NE(to_table(options, outcome).find("WRONG: the body of x"), std::string::npos);
}

TEST(BenchWindow, OneThatEndsEarlyHasMeasuredWhatHasPassed) {
  using std::chrono::seconds;
  const Time now = Time(seconds(1000));
  Window window(now + seconds(1), now + seconds(601), 0);
  EXPECT_TRUE(window.warms_up(now));
  EXPECT_FALSE(window.warms_up(now + seconds(1)));
  EXPECT_DOUBLE_EQ(window.seconds_left(now + seconds(11)), 590);
  Window at_its_time = window, interrupted = window, at_once = window;
  at_its_time.close(now + seconds(605));
  EXPECT_DOUBLE_EQ(at_its_time.seconds(), 600);
  interrupted.close(now + seconds(4));
  EXPECT_DOUBLE_EQ(interrupted.seconds(), 3);
  EXPECT_FALSE(interrupted.measures(now + seconds(5)));
  at_once.close(now);
  EXPECT_DOUBLE_EQ(at_once.seconds(), 0);
}

TEST(BenchWindow, OneThatCountsHasMeasuredUntilItsLastReply) {
  using std::chrono::seconds;
  const Time now = Time(seconds(1000));
  Window window(now, now, 10);
  EXPECT_TRUE(window.measures(now + seconds(2)));
  window.close(now + seconds(9));
  EXPECT_DOUBLE_EQ(window.seconds(), 2);
}

TEST(BenchOptions, WhatMakesNoSenseIsRefused) {
  EXPECT_TRUE(find_problems({}).empty());
  const std::vector<Options> wrong{
      {.connections = 0},
      {.body_size = 20},
      {.batch = 11},
      {.body_size = 200'000, .batch = 10},
      {.queues = 0},
      {.rate = -1},
      {.seconds = 0},
      {.workload = Workload::kReceive, .fifo = true},
      {.workload = Workload::kWakeUp, .connections = 1},
      {.workload = Workload::kFdatasync},
      {.fifo = true, .queue = "q"},
      {.access_key_id = "A"},
  };
  for (const Options& options : wrong) EXPECT_EQ(find_problems(options).size(), 1u);
}

}  // namespace
}  // namespace stanchion::load
