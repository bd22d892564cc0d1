#include "model/message_position.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "model/limits.h"
#include "model/receipt.h"

namespace stanchion {
namespace {

MacKey key_of(std::uint8_t first) {
  MacKey key{};
  key[0] = first;
  return key;
}

MessagePosition some_position(std::string group) {
  MessagePosition position{QueueId(0x1122334455667788), Seq(~0ULL), {}, std::move(group)};
  position.id.bytes.fill(0xA5);
  return position;
}

TEST(MessagePosition, ComesBackAsItWasWithAnyGroup) {
  for (const std::string& group :
       {std::string(), std::string("g.1"), std::string(limits::kGroupIdSizeMax, 'x')}) {
    const MessagePosition position = some_position(group);
    EXPECT_EQ(parse_position(format_position(position, key_of(1)), key_of(1)), position);
  }
}

TEST(MessagePosition, AnyChangedBitIsRefused) {
  const std::string bytes = *from_base64(format_position(some_position("g"), key_of(1)));
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string altered = bytes;
    altered[i / 8] = static_cast<char>(altered[i / 8] ^ (1 << i % 8));
    EXPECT_FALSE(parse_position(to_base64(altered), key_of(1))) << i;
  }
}

TEST(MessagePosition, WhatIsNoneOfThisKeyIsRefused) {
  const std::string good = format_position(some_position("g"), key_of(1));
  EXPECT_FALSE(parse_position(good, key_of(2)));
  EXPECT_FALSE(parse_position("", key_of(1)));
  EXPECT_FALSE(parse_position("no position", key_of(1)));
  EXPECT_FALSE(parse_position(good.substr(0, 24), key_of(1)));
  EXPECT_FALSE(parse_position(std::string(4 << 20, 'A'), key_of(1)));
  EXPECT_FALSE(parse_position(format_receipt({QueueId(1), Seq(2), 3}, key_of(1)), key_of(1)));
  EXPECT_FALSE(parse_receipt(good, key_of(1)));
}

}  // namespace
}  // namespace stanchion
