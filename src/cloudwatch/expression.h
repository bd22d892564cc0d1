// Metric math: an expression as a tree.
//
//   SUM(METRICS()) / 4        IF(m1 > 100, m1 / FILL(workers, REPEAT), 0)
//
// Operators from the weakest to the strongest: OR ||, AND &&, comparisons, + -, * /, unary -, ^.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.h"

namespace stanchion::cloudwatch {

inline constexpr std::size_t kExpressionSizeMax = 2'048;
inline constexpr int kExpressionDepthMax = 32;

enum class Operator {
  kOr,
  kAnd,
  kEqual,
  kUnequal,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kPlus,
  kMinus,
  kTimes,
  kDividedBy,
  kPower,
};

struct Expression {
  enum class Kind {
    kNumber,
    kText,       // Between quotes.
    kName,       // The id of a query, or a word such as REPEAT.
    kNegation,   // Of its part.
    kOperation,  // Of its two parts.
    kCall,       // Of the function `text` with its parts.
    kArray,      // [m1, m2]
  };
  Kind kind = Kind::kNumber;
  double number = 0;
  std::string text = {};
  Operator op = Operator::kPlus;
  std::vector<Expression> parts = {};
};

// The message of an error says what is wrong with the text.
Answer<Expression> parse_expression(std::string_view text);

}  // namespace stanchion::cloudwatch
