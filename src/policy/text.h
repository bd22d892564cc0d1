// A text in a policy, in which variables may stand: "arn:aws:sqs:us-east-1:*:${aws:username}-jobs".
//
//   ${key}             the value of that key of the request's context
//   ${key, 'default'}  the default, if the key has no value
//   ${*} ${?} ${$}     the character itself
//
//   PT1  What a variable puts in is taken literally: a '*' in it is no wildcard, "${" no variable.
//   PT2  A text with a variable that has no value, and no default, is like nothing and equal to
//        nothing. An empty value is none, and a key that may have several has none.
//
// Immutable: any thread may use it.
#pragma once

#include <cstddef>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/pattern.h"

namespace stanchion::policy {

// The context of a request, by lower-case key: "aws:sourceip" → {"127.0.0.1"}. Times are ISO 8601
// or seconds since 1970.
using PolicyContext = std::map<std::string, std::vector<std::string>, std::less<>>;

class PolicyText {
 public:
  // A text in which "${" is nothing special.
  explicit PolicyText(std::string_view text);

  // One with variables; or why it is malformed, as a sentence.
  static std::expected<PolicyText, std::string> with_variables(std::string_view text);

  const std::string& as_written() const { return written_; }
  // Bytes that it takes, but for what the allocator rounds up.
  std::size_t footprint() const;
  bool has_variables() const { return !variables_.empty(); }
  // What stands before the first variable; the whole text if there is none.
  const Pattern& beginning() const { return variables_.empty() ? end_ : variables_[0].before; }
  // A pattern that matches whatever the text may become.
  Pattern any_value() const;
  // The keys, in lower case, of all variables, and of those without a default.
  std::vector<std::string_view> keys() const;
  std::vector<std::string_view> needed_keys() const;

  // The text for this request, to be compared with one of `compared_size` bytes. `room` holds it if
  // it was made. Null if a variable has no value, or if the variables put in more than
  // `compared_size`, which nothing of that size can match.
  const Pattern* resolve(const PolicyContext& context, std::size_t compared_size,
                         Pattern& room) const;

 private:
  struct Variable {
    Pattern before;  // What stands between it and the variable before it.
    std::string key;
    std::optional<std::string> otherwise;
  };
  class Reader;

  PolicyText() = default;

  std::string written_;
  std::vector<Variable> variables_;
  Pattern end_;  // What stands behind the last variable.
};

}  // namespace stanchion::policy
