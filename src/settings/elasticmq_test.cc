#include "settings/elasticmq.h"

#include <gtest/gtest.h>

#include "settings/hocon.h"
#include "settings/settings_file.h"

namespace stanchion::settings {
namespace {

std::string text_at(const Hocon& hocon, std::initializer_list<std::string_view> path) {
  const HoconObject* object = &hocon.root;
  const HoconValue* value = nullptr;
  for (const std::string_view key : path) {
    if (object == nullptr) return "(no object)";
    value = object->find(key);
    if (value == nullptr) return "(missing)";
    object = value->object();
  }
  return value->text() ? *value->text() : "(no text)";
}

std::string parse_failure(std::string_view text) {
  const auto parsed = parse_hocon(text);
  return parsed ? "" : parsed.error().message;
}

TEST(Hocon, ObjectsMayBeWrittenInManyWays) {
  for (const char* text :
       {"a { b { c = 1 } }", "a.b.c = 1", "a.b { c: 1 }", "{ \"a\": { \"b\": { \"c\": \"1\" } } }",
        "a = { b = { c = 1, } }", "a {\n  b {\n    c =\n      1\n  }\n}\n", "a { b.c = 1 } # end",
        "a { b { c = 2 } }\na { b { c = 1 } }", "a { x = 0 }, a.b.c = 1 // end"}) {
    const auto parsed = parse_hocon(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().message;
    EXPECT_EQ(text_at(*parsed, {"a", "b", "c"}), "1") << text;
  }
}

TEST(Hocon, ObjectsThatComeAgainAreMerged) {
  const auto parsed = parse_hocon("a { b = 1 }\na { c = 2 }\n");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(text_at(*parsed, {"a", "b"}), "1");
  EXPECT_EQ(text_at(*parsed, {"a", "c"}), "2");
}

TEST(Hocon, TextMayBeBareOrQuoted) {
  const auto parsed = parse_hocon(
      "a = 10 seconds  # a while\n\"b.c\" = \"x # y\"\nd = \"\"\"raw \"text\\\"\"\"\n"
      "e = [1, two, \"3\"]\nf = http://example.com\n");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(text_at(*parsed, {"a"}), "10 seconds");
  EXPECT_EQ(text_at(*parsed, {"b.c"}), "x # y");
  EXPECT_EQ(text_at(*parsed, {"d"}), "raw \"text\\");
  EXPECT_EQ(text_at(*parsed, {"f"}), "http:");
}

TEST(Hocon, IncludesAndSubstitutionsAreNoted) {
  const auto parsed = parse_hocon("include classpath(\"application.conf\")\na = ${HOME}\n");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->notes, (std::vector<std::string>{"line 1: an include is not followed",
                                                     "line 2: a substitution is not resolved"}));
}

TEST(Hocon, WhatIsWrongIsToldWithItsLine) {
  EXPECT_EQ(parse_failure("a {\n"), "line 2: a } is missing");
  EXPECT_EQ(parse_failure("a\n"), "line 1: a key needs = or : or { after it");
  EXPECT_EQ(parse_failure("\n\na = \"x\n"), "line 3: a \" is missing");
  EXPECT_EQ(parse_failure("a = [1\n"), "line 2: a ] is missing");
  EXPECT_EQ(parse_failure("a = }"), "line 1: a value is missing");
  EXPECT_EQ(parse_failure("= 3"), "line 1: a key is missing");
  EXPECT_EQ(parse_failure("a += 3"), "line 1: += is not understood here");
  EXPECT_EQ(parse_failure("{} x"), "line 1: there is something after the end");
}

TEST(Hocon, DepthAndSizeAreBounded) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "a{";
  EXPECT_EQ(parse_failure(deep), "line 1: this is nested too deeply");
  EXPECT_EQ(parse_failure("a = " + std::string(100'000, '[')), "line 1: this is nested too deeply");
  EXPECT_NE(parse_failure(std::string(2 << 20, ' ')), "");
}

constexpr std::string_view kTypical = R"(
include classpath("application.conf")

node-address {
  protocol = https
  host = queues.example.com
  port = 443
  context-path = ""
}

rest-sqs {
  enabled = true
  bind-port = 9324
  bind-hostname = "0.0.0.0"
  // strict or relaxed
  sqs-limits = strict
}

queues {
  orders {
    defaultVisibilityTimeout = 10 seconds
    delay = 5 seconds
    receiveMessageWait = 0 seconds
    deadLettersQueue {
      name = "orders-dead"
      maxReceiveCount = 3 // from 1 to 1000
    }
    fifo = false
    contentBasedDeduplication = false
    copyTo = "audit"
    tags {
      team = "billing"
      "cost centre" = 12
    }
  }
  orders-dead { }
}

aws {
  region = eu-west-1
  accountId = 123456789012
}
)";

TEST(Import, ATypicalFileBecomesSettings) {
  const auto toml = import_elasticmq(kTypical);
  ASSERT_TRUE(toml);
  EXPECT_EQ(*toml, R"(# Made from a configuration of ElasticMQ.
# line 2: an include is not followed
# rest-sqs.sqs-limits is not needed: the limits of SQS always hold

[server]
public_url = "https://queues.example.com:443"
listen = "0.0.0.0:9324"
# This address can be reached from other machines. Configure [[account]]s, or let
# everybody in, as ElasticMQ does, by removing the # here:
# insecure = true
region = "eu-west-1"
account = "123456789012"

# orders: copyTo = audit has no equivalent
[[queue]]
name = "orders"
[queue.attributes]
DelaySeconds = 5
ReceiveMessageWaitTimeSeconds = 0
VisibilityTimeout = 10
[queue.tags]
"cost centre" = "12"
team = "billing"
[queue.redrive]
dead_letter = "orders-dead"
max_receive_count = 3

[[queue]]
name = "orders-dead"
)");
  Settings settings;
  EXPECT_EQ(read_settings_text(*toml, "t", settings), std::vector<std::string>());
}

TEST(Import, AFifoQueueGetsTheSuffixEverywhere) {
  const auto toml = import_elasticmq(
      "queues.jobs { fifo = true, contentBasedDeduplication = true\n"
      "  deadLettersQueue { name = dead, maxReceiveCount = 5 } }\n"
      "queues { dead { fifo = true }, \"kept.fifo\" { fifo = true } }\n");
  ASSERT_TRUE(toml);
  EXPECT_EQ(*toml, R"(# Made from a configuration of ElasticMQ.

# jobs: a FIFO queue's name ends with .fifo; it was jobs
[[queue]]
name = "jobs.fifo"
[queue.attributes]
ContentBasedDeduplication = true
[queue.redrive]
dead_letter = "dead.fifo"
max_receive_count = 5

# dead: a FIFO queue's name ends with .fifo; it was dead
[[queue]]
name = "dead.fifo"

[[queue]]
name = "kept.fifo"
)");
  Settings settings;
  EXPECT_EQ(read_settings_text(*toml, "t", settings), std::vector<std::string>());
  EXPECT_EQ(find_problems(settings), std::vector<std::string>());
}

TEST(Import, WhatHasNoEquivalentIsSaid) {
  const auto toml = import_elasticmq(
      "rest-stats { enabled = true }\nmessages-storage.enabled = true\n"
      "generate-node-address = true\npekko.loglevel = debug\n"
      "queues { q { delay = 1500 millis, receiveMessageWait = soon, moveTo = other\n"
      "  deadLettersQueue { name = gone } } }\n");
  ASSERT_TRUE(toml);
  EXPECT_EQ(*toml, R"(# Made from a configuration of ElasticMQ.
# rest-stats has no equivalent: there is no page of statistics
# messages-storage has no equivalent: queues and messages are kept in server.data unless server.in_memory
# generate-node-address is not needed: queue URLs begin with what the client called
# pekko has no equivalent

# q: delay = 1500 millis was rounded up to whole seconds
# q: receiveMessageWait = soon is not a time
# q: moveTo = other has no equivalent
# q: the dead-letter queue gone is not in this file and must exist
[[queue]]
name = "q"
[queue.attributes]
DelaySeconds = 2
[queue.redrive]
dead_letter = "gone"
max_receive_count = 3
)");
}

TEST(Import, ANumberWithoutAUnitIsMilliseconds) {
  const auto toml = import_elasticmq("queues { q { defaultVisibilityTimeout = 30000 } }");
  ASSERT_TRUE(toml);
  EXPECT_NE(toml->find("VisibilityTimeout = 30\n"), std::string::npos);
}

// A comment ends with its line, so nothing from the file may start another line.
TEST(Import, NothingEscapesFromAComment) {
  const auto toml =
      import_elasticmq("queues { q { moveTo = \"x\\n[server]\\ninsecure = true\" } }");
  ASSERT_TRUE(toml);
  Settings settings;
  EXPECT_EQ(read_settings_text(*toml, "t", settings), std::vector<std::string>());
  EXPECT_FALSE(settings.server.insecure);
}

}  // namespace
}  // namespace stanchion::settings
