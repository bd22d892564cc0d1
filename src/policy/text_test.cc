#include "policy/text.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace stanchion::policy {
namespace {

const PolicyContext kContext{{"aws:username", {"ann"}},
                             {"aws:useragent", {"*${aws:username}?"}},
                             {"aws:tagkeys", {"a", "b"}},
                             {"aws:referer", {""}}};

bool becomes(std::string_view written, std::string_view text) {
  const auto parsed = PolicyText::with_variables(written);
  EXPECT_TRUE(parsed) << written << ": " << parsed.error();
  if (!parsed) return false;
  Pattern room;
  const Pattern* const pattern = parsed->resolve(kContext, text.size(), room);
  return pattern != nullptr && matches(*pattern, text);
}

TEST(PolicyText, AVariableBecomesTheValueOfItsKey) {
  EXPECT_TRUE(becomes("${aws:username}", "ann"));
  EXPECT_TRUE(becomes("jobs-${AWS:UserName}-${aws:username}!", "jobs-ann-ann!"));
  EXPECT_TRUE(becomes("jobs-*-${aws:username}", "jobs-of-ann"));
  EXPECT_FALSE(becomes("${aws:username}", "bob"));
  EXPECT_FALSE(becomes("${aws:username}", "ann "));
  EXPECT_FALSE(becomes("${aws:username}", ""));
}

TEST(PolicyText, WhatAVariablePutsInIsTakenLiterally) {
  EXPECT_TRUE(becomes("${aws:UserAgent}", "*${aws:username}?"));
  EXPECT_FALSE(becomes("${aws:UserAgent}", "anything"));
  EXPECT_FALSE(becomes("${aws:UserAgent}", "*ann?"));
  EXPECT_FALSE(becomes("${none, '*'}", "anything"));
  EXPECT_TRUE(becomes("${none, '*'}", "*"));
}

TEST(PolicyText, SpecialCharactersAreWrittenAsVariables) {
  EXPECT_TRUE(becomes("a${*}b*", "a*bcd"));
  EXPECT_FALSE(becomes("a${*}b*", "axb"));
  EXPECT_TRUE(becomes("${?}${$}{x}", "?${x}"));
  EXPECT_FALSE(becomes("${?}", "x"));
}

TEST(PolicyText, ADefaultStandsForAKeyWithoutAValue) {
  EXPECT_TRUE(becomes("${aws:PrincipalTag/team, 'company-wide'}", "company-wide"));
  EXPECT_TRUE(becomes("${none,''}x", "x"));
  EXPECT_TRUE(becomes("${none, 'a, }$ b' }", "a, }$ b"));
  EXPECT_TRUE(becomes("${aws:username, 'nobody'}", "ann"));
  EXPECT_TRUE(becomes("${aws:TagKeys, 'several'}", "several"));
}

TEST(PolicyText, WithoutAValueItMatchesNothing) {
  for (const char* text : {"", "ann", "${none}", "a"}) {
    EXPECT_FALSE(becomes("${none}", text)) << text;
    EXPECT_FALSE(becomes("*${none}*", text)) << text;
    EXPECT_FALSE(becomes("*${aws:TagKeys}*", text)) << text;
  }
}

TEST(PolicyText, AnEmptyValueIsNone) {
  for (const char* text : {"", "<>", "ann"}) {
    EXPECT_FALSE(becomes("${aws:Referer}", text)) << text;
    EXPECT_FALSE(becomes("${aws:Referer}*", text)) << text;
    EXPECT_FALSE(becomes("<${aws:Referer}>", text)) << text;
  }
  EXPECT_TRUE(becomes("${aws:Referer, 'nobody'}", "nobody"));
}

// One request has a single tag, the next one has two.
TEST(PolicyText, AKeyThatMayHaveSeveralValuesHasNone) {
  for (const std::string key : {"aws:TagKeys", "aws:CalledVia", "aws:PrincipalOrgPaths"}) {
    const PolicyContext context{{to_lower_ascii(key), {"ann"}}};
    Pattern room;
    EXPECT_EQ(PolicyText::with_variables("${" + key + "}")->resolve(context, 3, room), nullptr);
    const auto text = PolicyText::with_variables("${" + key + ", 'none'}");
    const Pattern* const pattern = text->resolve(context, 4, room);
    ASSERT_NE(pattern, nullptr);
    EXPECT_TRUE(matches(*pattern, "none"));
  }
}

TEST(PolicyText, MoreThanWhatItIsComparedWithIsNotPutIn) {
  const PolicyContext context{{"k", {std::string(1'000, 'x')}}};
  std::string written;
  for (int i = 0; i < 1'000; ++i) written += "${k}";
  const auto parsed = PolicyText::with_variables(written);
  ASSERT_TRUE(parsed);
  Pattern room;
  EXPECT_EQ(parsed->resolve(context, 2'500, room), nullptr);
  EXPECT_LE(room.size(), 2'500u);
}

TEST(PolicyText, WhatIsMalformedIsRefused) {
  for (const char* text :
       {"${", "${aws:username", "a${}", "${ }", "${aws:user name}", "${ aws:username}",
        "${aws:username }", "${a , 'b'}", "${a${b}}", "${a$}", "${a'b}", "${a, b}", "${a, 'b}",
        "${a, 'b'", "${a, 'b'c}", "${a,}", "${, 'b'}", "${a, 'it''s'}", "${**, 'x'"})
    EXPECT_FALSE(PolicyText::with_variables(text)) << text;
  for (const char* text : {"", "$", "{}", "$ {x}", "$}", "${a}}"})
    EXPECT_TRUE(PolicyText::with_variables(text)) << text;
}

TEST(PolicyText, IsPlainWhereVariablesDoNotExist) {
  const PolicyText text("${aws:username}*");
  Pattern room;
  EXPECT_FALSE(text.has_variables());
  EXPECT_TRUE(matches(*text.resolve(kContext, 20, room), "${aws:username}!"));
}

TEST(PolicyText, SaysWhatItMayBecome) {
  const auto text = PolicyText::with_variables("a:${x}-${y, 'z'}${*}");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->needed_keys(), std::vector<std::string_view>{"x"});
  EXPECT_TRUE(matches(text->any_value(), "a:1-2*"));
  EXPECT_FALSE(matches(text->any_value(), "a:1-2"));
  EXPECT_TRUE(spells(text->beginning(), "a:"));
}

}  // namespace
}  // namespace stanchion::policy
