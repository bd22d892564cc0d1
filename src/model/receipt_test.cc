#include "model/receipt.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace stanchion {
namespace {

MacKey key_of(std::uint8_t first) {
  MacKey key{};
  key[0] = first;
  return key;
}

TEST(Receipt, RoundTripsAndLooksLikeAwsOwn) {
  const Receipt receipt{QueueId(0x1122334455667788), Seq(~0ULL), 7};
  const std::string handle = format_receipt(receipt, key_of(1));
  EXPECT_TRUE(handle.starts_with("AQEB"));
  EXPECT_EQ(parse_receipt(handle, key_of(1)), receipt);
}

TEST(Receipt, AnyChangedBitIsRefused) {
  const std::string handle = format_receipt({QueueId(1), Seq(2), 3}, key_of(1));
  const std::string bytes = *from_base64(handle);
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string altered = bytes;
    altered[i / 8] = static_cast<char>(altered[i / 8] ^ (1 << i % 8));
    EXPECT_FALSE(parse_receipt(to_base64(altered), key_of(1))) << i;
  }
}

TEST(Receipt, AnyOtherCharacterIsRefused) {
  const std::string handle = format_receipt({QueueId(1), Seq(2), 3}, key_of(1));
  for (std::size_t i = 0; i < handle.size(); ++i) {
    for (const char c : {'A', 'B', '=', ' ', '-', '\0'}) {
      if (handle[i] == c) continue;
      std::string altered = handle;
      altered[i] = c;
      EXPECT_FALSE(parse_receipt(altered, key_of(1))) << i;
    }
  }
}

TEST(Receipt, AnotherKeyOrLengthIsRefused) {
  const std::string handle = format_receipt({QueueId(1), Seq(2), 3}, key_of(1));
  EXPECT_FALSE(parse_receipt(handle, key_of(2)));
  EXPECT_FALSE(parse_receipt("", key_of(1)));
  for (std::size_t size = 0; size < handle.size(); ++size)
    EXPECT_FALSE(parse_receipt(handle.substr(0, size), key_of(1)));
  EXPECT_FALSE(parse_receipt(handle + "AAAA", key_of(1)));
  EXPECT_FALSE(parse_receipt(std::string(5'000, 'A'), key_of(1)));
}

}  // namespace
}  // namespace stanchion
