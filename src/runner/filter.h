// Patterns that choose messages, as those of Lambda's event source mappings and of EventBridge.
//
//   {"body":{"kind":["order"],"total":[{"numeric":[">",100]}]}}
//
// All members of an object must match, and one of the values of a list. A list in the message
// matches if one of its elements does. "$or" holds objects of which one must match.
#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stanchion::runner {

inline constexpr std::size_t kPatternBytesMax = 4'096;

// Immutable after parse(): any thread.
class Filter {
 public:
  // A failure says what is wrong with the pattern.
  static Result<Filter> parse(std::string_view pattern);

  bool matches(const boost::json::value& record) const;

 private:
  explicit Filter(boost::json::value pattern) : pattern_(std::move(pattern)) {}

  boost::json::value pattern_;
};

// A body that is a JSON object or array as such, any other as text.
boost::json::value body_json(std::string_view body);

}  // namespace stanchion::runner
