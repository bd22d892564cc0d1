// The operators and functions of metric math.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "cloudwatch/expression.h"
#include "cloudwatch/series.h"
#include "model/error.h"

namespace stanchion::cloudwatch {

// Points that one call may make, so that a short expression cannot fill the memory: 16 bytes each, and as
// many bytes again at most for what is being made of them.
inline constexpr std::size_t kPointsMax = 1'000'000;

Answer<Value> negate(Value value);
Answer<Value> apply_operator(Operator op, const Value& left, const Value& right);

// What a function is given: its arguments as values, or the words among them.
struct Argument {
  Value value;
  std::string word = {};  // REPEAT, LINEAR, ASC, …; empty: it is a value.
};

// `timeline` is that of the call.
Answer<Value> call_function(std::string_view name, std::vector<Argument> arguments,
                            const Timeline& timeline);

// Whether the name is a word that functions take, and not the id of a query.
bool is_word(std::string_view name);

}  // namespace stanchion::cloudwatch
