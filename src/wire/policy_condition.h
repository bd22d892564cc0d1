// Conditions of policy statements: an operator, a key of the request's context, and values.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stanchion::wire {

// The context of a request, by lower-case key: "aws:sourceip" → {"127.0.0.1"}. Times are ISO 8601
// or seconds since 1970.
using PolicyContext = std::map<std::string, std::vector<std::string>, std::less<>>;

enum class ConditionTest {
  kStringEquals,
  kStringEqualsIgnoreCase,
  kStringLike,
  kArnLike,
  kBinaryEquals,
  kBool,
  kNull,
  kIpAddress,
  kNumericEquals,
  kNumericLessThan,
  kNumericLessThanEquals,
  kNumericGreaterThan,
  kNumericGreaterThanEquals,
  kDateEquals,
  kDateLessThan,
  kDateLessThanEquals,
  kDateGreaterThan,
  kDateGreaterThanEquals,
};

enum class Quantifier { kNone, kForAllValues, kForAnyValue };

struct ConditionOperator {
  ConditionTest test;
  bool negated = false;
  bool if_exists = false;
  Quantifier quantifier = Quantifier::kNone;
};

struct PolicyCondition {
  ConditionOperator op;
  std::string key;  // Lower case.
  std::vector<std::string> values;
};

// "ForAnyValue:StringNotLikeIfExists" and the like; nullopt if there is no such operator.
std::optional<ConditionOperator> parse_operator(std::string_view name);

// Whether the operator can interpret `value`: a number, a date, an address range.
bool takes_value(ConditionTest test, std::string_view value);

bool holds(const PolicyCondition& condition, const PolicyContext& context);

// '*' matches any characters and '?' matches one.
bool matches_wildcards(std::string_view pattern, std::string_view text);

}  // namespace stanchion::wire
