#include "policy/pattern.h"

#include <gtest/gtest.h>

namespace stanchion::policy {
namespace {

Pattern pattern(std::string_view with_wildcards, std::string_view literally = {}) {
  Pattern made;
  append_with_wildcards(made, with_wildcards);
  append_literally(made, literally);
  return made;
}

TEST(PolicyPattern, WildcardsMatchWholeTexts) {
  for (const auto& matched : {matches_wildcards, +[](std::string_view p, std::string_view text) {
                                return matches(pattern(p), text);
                              }}) {
    EXPECT_TRUE(matched("", ""));
    EXPECT_TRUE(matched("*", ""));
    EXPECT_TRUE(matched("a*b*c", "aXXbYYbZc"));
    EXPECT_FALSE(matched("a*b*c", "aXXbYYbZ"));
    EXPECT_FALSE(matched("?", ""));
    EXPECT_TRUE(matched("**a**", "bab"));
    EXPECT_TRUE(matched("\xFF?\x80", "\xFF\xFE\x80"));
    EXPECT_FALSE(matched("\x01", "*"));
  }
}

TEST(PolicyPattern, AQuestionMarkIsOneCharacter) {
  for (const char* character : {"x", "é", "€", "😀"}) {
    const std::string one(character), text = "[" + one + one + "]";
    EXPECT_TRUE(matches_wildcards("[??]", text));
    EXPECT_TRUE(matches_wildcards("*?*?*?]", text));
    EXPECT_FALSE(matches_wildcards("[?]", text));
    EXPECT_FALSE(matches_wildcards("*?????", text));
    EXPECT_TRUE(matches(pattern("?" + one + "*"), one + one));
  }
  EXPECT_TRUE(matches_wildcards("??", "\xC3\xFF")) << "no character, so two bytes";
}

// More states than a word has bits.
TEST(PolicyPattern, LongPatternsMatchAsShortOnesDo) {
  for (const std::size_t size : {62u, 63u, 64u, 65u, 127u, 128u, 129u, 1'000u}) {
    const std::string x(size, 'x'), any(size, '?');
    for (const std::string& p : {x, any, "*" + any, any + "*", "*" + x + "*", x + "*" + x}) {
      const std::size_t least = p == x + "*" + x ? 2 * size : size;
      const bool open = p.find('*') != std::string::npos;
      EXPECT_TRUE(matches_wildcards(p, std::string(least, 'x'))) << p;
      EXPECT_EQ(matches_wildcards(p, std::string(least + 1, 'x')), open) << p;
      EXPECT_FALSE(matches_wildcards(p, std::string(least - 1, 'x'))) << p;
    }
    EXPECT_FALSE(matches_wildcards("*" + x + "*", std::string(size - 1, 'x') + "y" + x.substr(1)));
  }
}

// By trying one place after the other these would be eight thousand million comparisons each.
TEST(PolicyPattern, NoTextTakesLong) {
  const std::string text(1'000'000, 'a');
  for (const char* end : {"b", "?b", "b*"})
    EXPECT_FALSE(matches_wildcards("*" + std::string(8'000, 'a') + end, text));
}

TEST(PolicyPattern, OfWhatIsLiteralOnlyTheSameMatches) {
  EXPECT_TRUE(matches(pattern("a*", "*?"), "abc*?"));
  EXPECT_FALSE(matches(pattern("a*", "*?"), "abcde"));
  EXPECT_TRUE(matches_arn(pattern("arn:aws:sns:*:", "1:t*"), "arn:aws:sns:x:1:t*"));
  EXPECT_FALSE(matches_arn(pattern("arn:aws:sns:*:", "1:t*"), "arn:aws:sns:x:1:tt"));
  EXPECT_FALSE(matches_arn(pattern("", "*"), "arn:aws:sns:x:1:t"));
}

TEST(PolicyPattern, SpellsOneText) {
  EXPECT_TRUE(spells(pattern("a*?", "*?"), "a*?*?"));
  EXPECT_FALSE(spells(pattern("a*"), "ab"));
  EXPECT_FALSE(spells(pattern("a"), "A"));
  EXPECT_TRUE(spells_ignoring_ascii_case(pattern("aB*\xC3\xA9"), "Ab*\xC3\xA9"));
  EXPECT_FALSE(spells_ignoring_ascii_case(pattern("a"), "ab"));
}

}  // namespace
}  // namespace stanchion::policy
