#include "link/hello.h"

#include <gtest/gtest.h>

namespace stanchion::link {
namespace {

Hello some_hello() {
  Hello hello;
  hello.shards = 24;
  hello.process = 0xFFFF'FFFF'FFFF'FFFF;
  hello.session = 7;
  hello.lanes = 4;
  hello.lane = 3;
  hello.shard = ShardIndex(5);
  hello.fleet = "orders";
  hello.node = "a";
  hello.to = "b";
  return hello;
}

Hello mine() {
  Hello hello = some_hello();
  hello.node = "b";
  hello.to.clear();
  return hello;
}

TEST(Hello, ComesBackAsItWasAndWaitsForItsLastByte) {
  const std::string bytes = encode(some_hello());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    std::string input = bytes.substr(0, size);
    const auto taken = take_hello(input);
    ASSERT_TRUE(taken);
    EXPECT_FALSE(*taken) << size;
  }
  std::string input = bytes + "rest";
  EXPECT_EQ(take_hello(input).value(), some_hello());
  EXPECT_EQ(input, "rest");
}

TEST(Hello, AnswersComeBackAsTheyWere) {
  const HelloAnswer answer{.accepted = false, .version = 3, .process = 9, .text = "no"};
  std::string input = encode(answer);
  EXPECT_EQ(take_answer(input).value(), answer);
}

TEST(Hello, OtherProtocolsAreRefused) {
  for (const std::string_view words : {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x05\x01\x03"}) {
    std::string input(words);
    EXPECT_FALSE(take_hello(input)) << words;
  }
  std::string damaged = encode(some_hello());
  damaged[5] ^= 1;
  EXPECT_FALSE(take_hello(damaged));
}

TEST(Hello, OfAnotherFleetOrReleaseIsRefusedWithAReason) {
  EXPECT_EQ(refuse_hello(mine(), some_hello()), std::nullopt);
  const auto refused = [](void (*change)(Hello&)) {
    Hello theirs = some_hello();
    change(theirs);
    return refuse_hello(mine(), theirs).value_or("");
  };
  EXPECT_TRUE(refused([](Hello& h) { h.fleet = "others"; }).contains("fleet \"others\""));
  EXPECT_TRUE(refused([](Hello& h) { h.shards = 12; }).contains("12 shards"));
  EXPECT_TRUE(
      refused([](Hello& h) { h.oldest = h.newest = kLinkVersion + 1; }).contains("upgrade"));
  EXPECT_TRUE(refused([](Hello& h) { h.to = "c"; }).contains("looks for the node \"c\""));
  EXPECT_TRUE(refused([](Hello& h) { h.node = "b"; }).contains("a name of its own"));
  EXPECT_FALSE(refused([](Hello& h) { h.lane = 4; }).empty());
  EXPECT_FALSE(refused([](Hello& h) { h.lanes = kLanesMax + 1; }).empty());
  EXPECT_FALSE(refused([](Hello& h) { h.purpose = static_cast<Hello::Purpose>(9); }).empty());
  EXPECT_FALSE(refused([](Hello& h) {
                 h.purpose = Hello::Purpose::kCopy;
                 h.shard = ShardIndex(24);
               }).empty());
}

}  // namespace
}  // namespace stanchion::link
