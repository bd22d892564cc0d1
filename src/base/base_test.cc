#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/json_members.h"
#include "base/strong.h"
#include "base/text.h"

namespace stanchion {
namespace {

TEST(Digest, KnownVectorsMatch) {
  EXPECT_EQ(to_hex(as_text(md5("hello"))), "5d41402abc4b2a76b9719d911017c592");
  EXPECT_EQ(to_hex(as_text(sha256("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(as_text(hmac_sha256("key", "The quick brown fox jumps over the lazy dog"))),
            "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8");
}

// Each digest is that of its text alone, whatever the other texts are: equal, of any size, far
// longer.
TEST(Digest, Md5SideBySideIsMd5) {
  std::string text;
  for (int i = 0; i < 5'000; ++i) text.push_back(static_cast<char>(i * i + i / 7));
  for (std::size_t first = 0; first < 300; ++first) {
    for (const std::size_t growth : {0, 1, 17, 400}) {
      std::vector<std::string_view> texts;
      for (std::size_t i = 0; i < first % 19; ++i)
        texts.push_back(std::string_view(text).substr(i, first + growth * (i % 8)));
      std::vector<Md5> sums(texts.size());
      md5_each(texts, sums);
      for (std::size_t i = 0; i < texts.size(); ++i)
        ASSERT_EQ(sums[i], md5(texts[i])) << first << " " << growth << " " << i;
    }
  }
}

TEST(Digest, Md5OfNothingMayLieBesideOthers) {
  const std::array<std::string_view, 4> texts{std::string_view(), "a", "b", "c"};
  std::array<Md5, 4> sums;
  md5_each(texts, sums);
  EXPECT_EQ(sums[0], md5(""));
  EXPECT_EQ(sums[3], md5("c"));
}

TEST(Digest, SiphashMatchesTheReferenceVectorAndDependsOnItsKey) {
  MacKey key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(to_hex(as_text(siphash(key, ""))), "a3817f04ba25a8e66df67214c7550293");
  MacKey other = key;
  other[0] ^= 1;
  EXPECT_NE(siphash(key, "x"), siphash(other, "x"));
}

TEST(Bytes, EveryVarintComesBack) {
  for (const std::uint64_t v : {0ULL, 1ULL, 127ULL, 128ULL, 300ULL, 1ULL << 32, ~0ULL}) {
    std::string out;
    ByteWriter(out).varint(v);
    ByteReader reader(out);
    EXPECT_EQ(reader.varint(), v);
    EXPECT_TRUE(reader.ok() && reader.at_end());
  }
}

TEST(Bytes, ReadingPastTheEndFailsAndStaysFailed) {
  ByteReader reader(
      std::string_view("\x05"
                       "ab",
                       3));
  EXPECT_EQ(reader.text(), "");
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.u64(), 0U);
  EXPECT_FALSE(reader.ok());
}

TEST(Bytes, OverlongVarintIsRefused) {
  ByteReader reader(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10));
  reader.varint();
  EXPECT_FALSE(reader.ok());
}

TEST(Text, Base64RoundTripsAndRefusesGarbage) {
  for (const std::string s : {"", "a", "ab", "abc", "abcd"})
    EXPECT_EQ(from_base64(to_base64(s)).value_or("?"), s);
  EXPECT_EQ(to_base64("Man"), "TWFu");
  EXPECT_FALSE(from_base64("TWF"));
  EXPECT_FALSE(from_base64("TW u"));
  EXPECT_FALSE(from_base64("T==="));
}

TEST(Text, DecimalTakesDigitsOnly) {
  EXPECT_EQ(parse_decimal("0"), 0U);
  EXPECT_EQ(parse_decimal("18446744073709551615"), ~0ULL);
  for (const char* bad : {"", " 6", "-45", "+1", "1.5", "true", "18446744073709551616", "1 "})
    EXPECT_FALSE(parse_decimal(bad)) << bad;
}

TEST(Text, ForbiddenCharactersAreNamed) {
  EXPECT_FALSE(find_forbidden_character("tab\t lf\n cr\r \xC3\xA9 \xF0\x9F\x98\x80"));
  EXPECT_EQ(find_forbidden_character("bell\x07"), 7U);
  EXPECT_EQ(find_forbidden_character("\xEF\xBF\xBE"), 0xFFFEU);
  EXPECT_EQ(find_forbidden_character("\xED\xA0\x80"), 0xEDU) << "a surrogate is not UTF-8";
  EXPECT_EQ(find_forbidden_character("\xC0\x80"), 0xC0U) << "an overlong form is not UTF-8";
}

TEST(Text, LettersAndDigitsAreThoseOfEveryScript) {
  const auto good = [](std::string_view text) { return has_only_letters_digits_and("_.", text); };
  for (const std::string_view text : {"", "a", "Z9_.", "øßä", "имя", "名前", "שם", "५", "𐐷", "ª"})
    EXPECT_TRUE(good(text)) << text;
  for (const std::string_view text : {"§", "!", "\"", "(", "?", " ", "-", "a\u0301", "½", "€", "😀",
                                      "\xFF", "a\xC3", "\xED\xA0\x80", "\u200D"})
    EXPECT_FALSE(good(text)) << text;
}

TEST(JsonMembers, AreFoundThatAreThereTwice) {
  for (const std::string_view twice :
       {R"({"a":1,"a":2})", R"({"a":1,"b":2,"\u0061":3})", R"([{"x":{"":1,"":2}}])",
        R"({"a":{"b":1},"c":[{"d":1,"e":{},"d":[]}]})", R"({"a":"}","a":1})"})
    EXPECT_TRUE(repeats_a_member(twice)) << twice;
  for (const std::string_view once :
       {"", "{}", "5", R"({"a":1,"A":2})", R"({"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]})",
        R"({"a":"\"a\":1"})", R"({"a":1)", R"({"a":1,,"a":1})"})
    EXPECT_FALSE(repeats_a_member(once)) << once;
  // However long the names are, and however many pieces the parser is given them in.
  const std::string name(10'000, 'n');
  EXPECT_TRUE(repeats_a_member("{\"" + name + "\":1,\"x\":2,\"" + name + "\":3}"));
}

TEST(Text, UuidRoundTrips) {
  const std::string text = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
  EXPECT_EQ(format_uuid(*parse_uuid(text)), text);
  EXPECT_FALSE(parse_uuid("0f1e2d3c-4b5a-6978-8796a-5b4c3d2e1f0"));
}

}  // namespace
}  // namespace stanchion
