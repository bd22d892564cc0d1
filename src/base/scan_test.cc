#include "base/scan.h"

#include <gtest/gtest.h>

#include <string>

namespace stanchion {
namespace {

std::size_t find_quote_or_control(const std::string& text) {
  const char* const found = find_byte(
      text.data(), text.data() + text.size(),
      [](Bytes bytes) { return bytes_equal(bytes, '"') | bytes_below(bytes, 0x20); },
      [](unsigned char byte) { return byte == '"' || byte < 0x20; });
  return static_cast<std::size_t>(found - text.data());
}

// Wherever the byte is, and whatever stands around it.
TEST(Scan, TheFirstByteIsFoundAtEveryPlace) {
  for (const char filler : {'a', '\x20', '\x21', '\x23', '\x7F', '\x80', '\xA2', '\xFF'})
    for (std::size_t size = 0; size <= 50; ++size) {
      const std::string plain(size, filler);
      EXPECT_EQ(find_quote_or_control(plain), size);
      for (std::size_t at = 0; at < size; ++at)
        for (const char wanted : {'"', '\0', '\x1F'}) {
          std::string text = plain;
          text[at] = wanted;
          EXPECT_EQ(find_quote_or_control(text), at);
          text.back() = wanted;
          EXPECT_EQ(find_quote_or_control(text), at);
        }
    }
}

TEST(Scan, OneByteThatIsNotAsciiIsEnough) {
  std::string text(sizeof(Bytes), '\x7F');
  EXPECT_TRUE(is_ascii(load_bytes(text.data())));
  for (char& c : text) {
    c = '\x80';
    EXPECT_FALSE(is_ascii(load_bytes(text.data())));
    c = '\0';
  }
  EXPECT_TRUE(is_ascii(load_bytes(text.data())));
}

}  // namespace
}  // namespace stanchion
