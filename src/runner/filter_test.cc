#include "runner/filter.h"

#include <gtest/gtest.h>

#include <string>

namespace stanchion::runner {
namespace {

bool matches(const std::string& pattern, const std::string& record) {
  const auto filter = Filter::parse(pattern);
  EXPECT_TRUE(filter) << pattern << ": " << filter.error().message;
  return filter && filter->matches(boost::json::parse(record));
}

std::string mistake(const std::string& pattern) {
  const auto filter = Filter::parse(pattern);
  return filter ? "none" : filter.error().message;
}

TEST(Filter, AllMembersAndOneOfTheValuesOfEachMustMatch) {
  const std::string pattern = R"({"body":{"kind":["order","refund"],"paid":[true]}})";
  EXPECT_TRUE(matches(pattern, R"({"body":{"kind":"order","paid":true}})"));
  EXPECT_TRUE(matches(pattern, R"({"body":{"kind":"refund","paid":true,"more":1}})"));
  EXPECT_FALSE(matches(pattern, R"({"body":{"kind":"order","paid":false}})"));
  EXPECT_FALSE(matches(pattern, R"({"body":{"kind":"order"}})"));
  EXPECT_FALSE(matches(pattern, R"({"body":"order"})"));
}

TEST(Filter, ValuesAreEqualByTypeAndNumbersByValue) {
  EXPECT_TRUE(matches(R"({"a":[1]})", R"({"a":1.0})"));
  EXPECT_FALSE(matches(R"({"a":[1]})", R"({"a":"1"})"));
  EXPECT_TRUE(matches(R"({"a":[null]})", R"({"a":null})"));
  EXPECT_FALSE(matches(R"({"a":[null]})", R"({})"));
  EXPECT_TRUE(matches(R"({"a":[""]})", R"({"a":""})"));
}

TEST(Filter, AListInTheMessageMatchesByOneOfItsElements) {
  EXPECT_TRUE(matches(R"({"a":["x"]})", R"({"a":["y","x"]})"));
  EXPECT_FALSE(matches(R"({"a":["x"]})", R"({"a":[]})"));
  EXPECT_TRUE(matches(R"({"a":{"b":[2]}})", R"({"a":[{"b":1},{"b":2}]})"));
}

TEST(Filter, OperatorsOnText) {
  EXPECT_TRUE(matches(R"({"a":[{"prefix":"ab"}]})", R"({"a":"abc"})"));
  EXPECT_FALSE(matches(R"({"a":[{"prefix":"ab"}]})", R"({"a":"ABC"})"));
  EXPECT_TRUE(matches(R"({"a":[{"prefix":{"equals-ignore-case":"ab"}}]})", R"({"a":"ABC"})"));
  EXPECT_TRUE(matches(R"({"a":[{"suffix":".png"}]})", R"({"a":"x.png"})"));
  EXPECT_FALSE(matches(R"({"a":[{"suffix":".png"}]})", R"({"a":"png"})"));
  EXPECT_TRUE(matches(R"({"a":[{"equals-ignore-case":"Yes"}]})", R"({"a":"yES"})"));
  EXPECT_TRUE(matches(R"({"a":[{"wildcard":"a*c*"}]})", R"({"a":"abbcd"})"));
  EXPECT_TRUE(matches(R"({"a":[{"wildcard":"*.txt"}]})", R"({"a":".txt.txt"})"));
  EXPECT_FALSE(matches(R"({"a":[{"wildcard":"a*c"}]})", R"({"a":"abd"})"));
  EXPECT_TRUE(matches(R"({"a":[{"wildcard":"a\\*"}]})", R"({"a":"a*"})"));
  EXPECT_FALSE(matches(R"({"a":[{"wildcard":"a\\*"}]})", R"({"a":"ab"})"));
  EXPECT_FALSE(matches(R"({"a":[{"prefix":"1"}]})", R"({"a":1})"));
}

TEST(Filter, OperatorsOnNumbersAndAddresses) {
  EXPECT_TRUE(matches(R"({"a":[{"numeric":["=",1e2]}]})", R"({"a":100})"));
  EXPECT_TRUE(matches(R"({"a":[{"numeric":[">",0,"<=",5]}]})", R"({"a":5})"));
  EXPECT_FALSE(matches(R"({"a":[{"numeric":[">",0,"<=",5]}]})", R"({"a":5.1})"));
  EXPECT_FALSE(matches(R"({"a":[{"numeric":[">",0]}]})", R"({"a":"5"})"));
  EXPECT_TRUE(matches(R"({"a":[{"cidr":"10.1.0.0/20"}]})", R"({"a":"10.1.15.255"})"));
  EXPECT_FALSE(matches(R"({"a":[{"cidr":"10.1.0.0/20"}]})", R"({"a":"10.1.16.0"})"));
  EXPECT_TRUE(matches(R"({"a":[{"cidr":"2001:db8::/33"}]})", R"({"a":"2001:db8:7fff::1"})"));
  EXPECT_FALSE(matches(R"({"a":[{"cidr":"2001:db8::/33"}]})", R"({"a":"10.0.0.1"})"));
}

TEST(Filter, AnythingButAndExists) {
  EXPECT_TRUE(matches(R"({"a":[{"anything-but":"x"}]})", R"({"a":"y"})"));
  EXPECT_FALSE(matches(R"({"a":[{"anything-but":["x","y"]}]})", R"({"a":"y"})"));
  EXPECT_FALSE(matches(R"({"a":[{"anything-but":"x"}]})", R"({})"));
  EXPECT_FALSE(matches(R"({"a":[{"anything-but":{"prefix":"in"}}]})", R"({"a":"init"})"));
  EXPECT_TRUE(matches(R"({"a":[{"anything-but":{"suffix":["a","b"]}}]})", R"({"a":"c"})"));
  EXPECT_TRUE(matches(R"({"a":[{"exists":true}]})", R"({"a":0})"));
  EXPECT_FALSE(matches(R"({"a":[{"exists":true}]})", R"({})"));
  EXPECT_TRUE(matches(R"({"a":{"b":[{"exists":false}]}})", R"({})"));
  EXPECT_FALSE(matches(R"({"a":[{"exists":false}]})", R"({"a":null})"));
}

TEST(Filter, OneOfTheObjectsOfAnOrMustMatch) {
  const std::string pattern = R"({"a":[1],"$or":[{"b":[2]},{"c":[3]}]})";
  EXPECT_TRUE(matches(pattern, R"({"a":1,"c":3})"));
  EXPECT_FALSE(matches(pattern, R"({"a":1,"b":3})"));
  EXPECT_FALSE(matches(pattern, R"({"b":2})"));
}

TEST(Filter, PatternsThatCannotWorkAreRefusedWithTheReason) {
  EXPECT_EQ(mistake("[]"), "a pattern is a JSON object");
  EXPECT_EQ(mistake("{"), "a pattern is a JSON object");
  EXPECT_EQ(mistake("{}"), "an object of the pattern is empty");
  EXPECT_EQ(mistake(R"({"a":[]})"), "\"a\" must be an object or a list that is not empty");
  EXPECT_EQ(mistake(R"({"a":"x"})"), "\"a\" must be an object or a list that is not empty");
  EXPECT_EQ(mistake(R"({"a":[1],"a":[2]})"), "a member of the pattern is there twice");
  EXPECT_NE(mistake(R"({"a":[{"prefx":"x"}]})").find("no operator \"prefx\""), std::string::npos);
  EXPECT_NE(mistake(R"({"a":[{"prefix":1}]})").find("cannot have this value"), std::string::npos);
  EXPECT_NE(mistake(R"({"a":[{"numeric":["~",1]}]})").find("cannot have"), std::string::npos);
  EXPECT_NE(mistake(R"({"a":[{"cidr":"10.0.0.0/33"}]})").find("cannot have"), std::string::npos);
  EXPECT_NE(mistake(R"({"a":[{"exists":"yes"}]})").find("cannot have"), std::string::npos);
  EXPECT_NE(mistake(R"({"a":[{"anything-but":{}}]})").find("cannot have"), std::string::npos);
  EXPECT_EQ(mistake(R"({"$or":[{"a":[1]}]})"), "\"$or\" needs two objects or more");
  EXPECT_NE(mistake(std::string(5000, ' ')).find("at most 4096"), std::string::npos);
}

TEST(Filter, OnlyABodyThatIsAnObjectOrAListIsReadAsJson) {
  EXPECT_TRUE(body_json(R"( {"a":1})").is_object());
  EXPECT_TRUE(body_json("[1]").is_array());
  EXPECT_EQ(body_json("123"), boost::json::value("123"));
  EXPECT_EQ(body_json("{broken"), boost::json::value("{broken"));
}

}  // namespace
}  // namespace stanchion::runner
