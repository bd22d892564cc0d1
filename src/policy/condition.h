// Conditions of policy statements: an operator, a key of the request's context, and values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/text.h"

namespace stanchion::policy {

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
  std::vector<PolicyText> values;
  bool names_unknown_key = false;  // Itself (KeyKind::kUnknown), or in a variable of a value.
};

// "ForAnyValue:StringNotLikeIfExists" and the like; nullopt if there is no such operator.
std::optional<ConditionOperator> parse_operator(std::string_view name);

// Whether the operator can interpret `value`: a number, a date, an address range.
bool takes_value(ConditionTest test, std::string_view value);

// Whether variables can stand in the operator's values.
bool takes_variables(ConditionTest test);

// No less than what holds() takes, in comparisons of a byte or of a word of states.
std::size_t steps_of(const PolicyCondition& condition, const PolicyContext& context);

bool holds(const PolicyCondition& condition, const PolicyContext& context);

}  // namespace stanchion::policy
