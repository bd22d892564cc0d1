#include "wire/policy_pattern.h"

#include <gtest/gtest.h>

namespace stanchion::wire {
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
}  // namespace stanchion::wire
