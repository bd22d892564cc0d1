#include "cloudwatch/expression.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/text.h"

namespace stanchion::cloudwatch {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

struct OperatorText {
  std::string_view text;
  Operator op;
  int strength;
};
// Longer ones first: "<=" is not "<" and "=".
constexpr std::array kOperators{
    OperatorText{"||", Operator::kOr, 1},          OperatorText{"OR", Operator::kOr, 1},
    OperatorText{"&&", Operator::kAnd, 2},         OperatorText{"AND", Operator::kAnd, 2},
    OperatorText{"==", Operator::kEqual, 3},       OperatorText{"!=", Operator::kUnequal, 3},
    OperatorText{"<=", Operator::kLessOrEqual, 3}, OperatorText{">=", Operator::kGreaterOrEqual, 3},
    OperatorText{"<", Operator::kLess, 3},         OperatorText{">", Operator::kGreater, 3},
    OperatorText{"+", Operator::kPlus, 4},         OperatorText{"-", Operator::kMinus, 4},
    OperatorText{"*", Operator::kTimes, 5},        OperatorText{"/", Operator::kDividedBy, 5},
    OperatorText{"^", Operator::kPower, 7},
};
constexpr int kWeakest = 1;
constexpr int kUnary = 6;

// Recursive descent; after the first mistake everything returns at once.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Answer<Expression> parse() {
    Expression whole = operation(kWeakest);
    skip_space();
    if (!error_ && at_ < text_.size()) wrong(fmt::format("'{}' is not expected", text_[at_]));
    if (error_) return std::unexpected(*std::move(error_));
    return whole;
  }

 private:
  // One more level of nesting, as long as it exists.
  struct Level {
    explicit Level(Parser& parser) : of(parser) {
      if (++of.depth_ > kExpressionDepthMax) of.wrong("it is nested too deeply");
    }
    ~Level() { --of.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    Parser& of;
  };

  Expression operation(int weakest) {
    const Level level(*this);
    Expression left = unary();
    while (!error_) {
      const auto found = peek_operator();
      if (!found || found->strength < weakest) break;
      at_ += found->text.size();
      Expression whole{.kind = Expression::Kind::kOperation, .op = found->op};
      whole.parts.push_back(std::move(left));
      whole.parts.push_back(operation(found->strength + 1));
      left = std::move(whole);
    }
    return left;
  }

  Expression unary() {
    if (error_) return {};
    skip_space();
    if (!take('-')) return primary();
    Expression negation{.kind = Expression::Kind::kNegation};
    negation.parts.push_back(operation(kUnary));
    return negation;
  }

  Expression primary() {
    skip_space();
    if (error_) return {};
    if (at_ == text_.size()) return wrong("it ends too early");
    const char c = text_[at_];
    if (take('(')) {
      Expression inner = operation(kWeakest);
      expect(')');
      return inner;
    }
    if (take('[')) {
      Expression array{.kind = Expression::Kind::kArray};
      array.parts = list(']');
      return array;
    }
    if (c == '"' || c == '\'') return quoted(c);
    if (is_digit(c) || c == '.') return number();
    if (is_letter(c)) return name();
    return wrong(fmt::format("'{}' is not expected", c));
  }

  Expression name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    Expression result{.kind = Expression::Kind::kName,
                      .text = std::string(text_.substr(begin, at_ - begin))};
    skip_space();
    if (!take('(')) return result;
    result.kind = Expression::Kind::kCall;
    result.parts = list(')');
    return result;
  }

  Expression number() {
    Expression result;
    const char* const end = text_.data() + text_.size();
    const auto [stop, problem] = std::from_chars(text_.data() + at_, end, result.number);
    if (problem != std::errc()) return wrong("a number cannot be read");
    at_ = static_cast<std::size_t>(stop - text_.data());
    return result;
  }

  Expression quoted(char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return wrong("a quotation mark is not closed");
    Expression result{.kind = Expression::Kind::kText,
                      .text = std::string(text_.substr(at_ + 1, end - at_ - 1))};
    at_ = end + 1;
    return result;
  }

  std::vector<Expression> list(char closing) {
    std::vector<Expression> parts;
    skip_space();
    if (take(closing)) return parts;
    while (!error_) {
      parts.push_back(operation(kWeakest));
      skip_space();
      if (take(closing)) break;
      expect(',');
    }
    return parts;
  }

  std::optional<OperatorText> peek_operator() {
    skip_space();
    const std::string_view rest = text_.substr(at_);
    for (const OperatorText& one : kOperators) {
      if (!rest.starts_with(one.text)) continue;
      const std::size_t size = one.text.size();
      const bool word = is_letter(one.text.front());
      if (word && size < rest.size() && (is_letter(rest[size]) || is_digit(rest[size]))) continue;
      return one;
    }
    return std::nullopt;
  }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    skip_space();
    if (!error_ && !take(c)) wrong(fmt::format("'{}' is missing", c));
  }
  Expression wrong(std::string what) {
    if (!error_)
      error_ = Error{ErrorCode::kValidationError, fmt::format("{} at character {}", what, at_ + 1)};
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Answer<Expression> parse_expression(std::string_view text) {
  if (text.size() > kExpressionSizeMax)
    return refuse(ErrorCode::kValidationError,
                  fmt::format("it is longer than {} characters", kExpressionSizeMax));
  for (const char c : text)
    if (static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\n' && c != '\r')
      return refuse(ErrorCode::kValidationError, "it has control characters");
  return Parser(text).parse();
}

}  // namespace stanchion::cloudwatch
