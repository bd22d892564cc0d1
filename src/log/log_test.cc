#include "log/log.h"

#define SPDLOG_FMT_EXTERNAL
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <boost/json.hpp>
#include <sstream>

namespace stanchion::log {
namespace {

AccessRecord sample() {
  return {.peer = "192.0.2.1",
          .account = "123456789012",
          .action = "SendMessage",
          .queue = "orders",
          .error = "",
          .request_id = "r-1",
          .status = 200,
          .request_bytes = 12,
          .response_bytes = 34,
          .took = std::chrono::microseconds(56)};
}

class Logged : public testing::Test {
 protected:
  Log make(LogSettings settings) {
    return Log(settings, std::make_shared<spdlog::sinks::ostream_sink_mt>(out_));
  }
  // The line without its time.
  std::string line() const { return out_.str().substr(out_.str().find('Z') + 1); }

  std::ostringstream out_;
};

TEST_F(Logged, TextLinesHaveTimeLevelAndMessage) {
  make({}).warning("the disk is full");
  EXPECT_EQ(line(), " warning the disk is full\n");
  EXPECT_EQ(out_.str().size(), std::string("2026-11-15T03:30:33.123Z").size() + line().size());
}

TEST_F(Logged, JsonLinesAreJsonWhateverTheMessageHolds) {
  make({.format = LogFormat::kJson}).error("a \"quoted\"\nline \x01 \xff");
  const auto value = boost::json::parse(out_.str());
  EXPECT_EQ(value.at("level"), "error");
  EXPECT_EQ(value.at("message"), "a \"quoted\"\\x0aline \\x01 \\xff");
}

TEST_F(Logged, JsonLinesAreSafeToShowOnATerminal) {
  make({.format = LogFormat::kJson}).error("a \u009b2J \u202e");
  EXPECT_EQ(out_.str().find("\u009b"), std::string::npos);
  EXPECT_EQ(out_.str().find("\u202e"), std::string::npos);
  EXPECT_EQ(boost::json::parse(out_.str()).at("message"), "a \u009b2J \u202e");
}

TEST_F(Logged, ALineStaysALine) {
  make({}).info("first\nsecond");
  EXPECT_EQ(line(), " info first\\x0asecond\n");
}

TEST_F(Logged, WhatIsBelowTheLevelIsLeftOut) {
  Log log = make({.level = LogLevel::kWarning});
  log.info("no");
  log.debug("no");
  EXPECT_EQ(out_.str(), "");
  log.error("yes");
  EXPECT_NE(out_.str(), "");
}

TEST_F(Logged, CallsAreLoggedOnlyIfThatIsAskedFor) {
  EXPECT_FALSE(make({}).access_log());
  Log log = make({.level = LogLevel::kError, .access = true});
  log.access_log()(sample());
  EXPECT_EQ(line(),
            " info access peer=192.0.2.1 account=123456789012 action=SendMessage queue=orders "
            "status=200 error=- request_bytes=12 response_bytes=34 micros=56 id=r-1\n");
}

TEST_F(Logged, CallsAreJsonToo) {
  Log log = make({.format = LogFormat::kJson, .access = true});
  AccessRecord record = sample();
  record.queue = "\"},{";
  log.access_log()(record);
  const auto value = boost::json::parse(out_.str());
  EXPECT_EQ(value.at("event"), "access");
  EXPECT_EQ(value.at("queue"), "\"},{");
  EXPECT_EQ(value.at("micros"), 56);
}

TEST(FormatAccess, ANameCannotForgeAnotherFieldOrLine) {
  AccessRecord record = sample();
  record.queue = "x status=200\nfaked";
  const std::string text = format_access(record, LogFormat::kText);
  EXPECT_NE(text.find("queue=x\\x20status=200\\x0afaked status=200 "), std::string::npos) << text;
}

}  // namespace
}  // namespace stanchion::log
