#include "runner/line_protocol.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>

namespace stanchion::runner {
namespace {

using worker::Verdict;

TEST(LineProtocol, AMessageIsOneLineWhateverItsBodyHolds) {
  worker::TaskInformation task;
  task.message_id = "m";
  task.body = "two\nlines";
  task.message_attributes["blob"] = client::MessageAttributeValue::binary(std::string("\0\n", 2));
  const std::string line = line_of("7", task);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const boost::json::value read = boost::json::parse(line);
  EXPECT_EQ(read.at("id"), "7");
  EXPECT_EQ(read.at("body"), "two\nlines");
  EXPECT_EQ(read.at_pointer("/messageAttributes/blob/binaryValue"), "AAo=");
}

TEST(LineProtocol, AnswersNameAMessageAndAVerdict) {
  EXPECT_EQ(read_answer(R"({"id":"7","verdict":"done"})")->verdict->kind, Verdict::Kind::kDone);
  EXPECT_EQ(read_answer(R"({"id":7,"verdict":"done"})")->id, "7");
  EXPECT_EQ(read_answer(R"({"id":"7","verdict":"reject"})")->verdict->kind, Verdict::Kind::kReject);
  const auto later = read_answer(R"({"id":"7","verdict":"retry","delay":30,"reason":"busy"})");
  EXPECT_EQ(later->verdict->delay.count(), 30);
  EXPECT_FALSE(later->verdict->backoff);
  EXPECT_EQ(later->reason, "busy");
  EXPECT_TRUE(read_answer(R"({"id":"7","verdict":"retry"})")->verdict->backoff);
}

TEST(LineProtocol, AVerdictThatMakesNoSenseStillNamesItsMessage) {
  for (const char* line :
       {R"({"id":"7"})", R"({"id":"7","verdict":"ok"})",
        R"({"id":"7","verdict":"retry","delay":-1})", R"({"id":"7","verdict":"retry","delay":"1"})",
        R"({"id":"7","verdict":"retry","delay":43201})"}) {
    const auto answer = read_answer(line);
    ASSERT_TRUE(answer) << line;
    EXPECT_EQ(answer->id, "7");
    EXPECT_FALSE(answer->verdict) << line;
    EXPECT_FALSE(answer->reason.empty());
  }
}

TEST(LineProtocol, ALineThatNamesNoMessageIsAFailure) {
  for (const char* line : {"processing…", "", "[]", "{", R"({"verdict":"done"})",
                           R"({"id":null,"verdict":"done"})", R"({"id":{},"verdict":"done"})"})
    EXPECT_FALSE(read_answer(line)) << line;
}

}  // namespace
}  // namespace stanchion::runner
