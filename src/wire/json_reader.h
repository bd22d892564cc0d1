// A pull reader of JSON: it hands out one token at a time, so that the caller's own structure
// decides what is kept, and no tree is built.
//
// After the first mistake the reader is failed: failed() says so, the position no longer moves, and
// loops over members and elements end. Strings are checked to be UTF-8, escapes to be complete
// surrogate pairs, numbers to follow the grammar, and depth to stay below kJsonDepthMax.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stanchion::wire {

class JsonReader {
 public:
  enum class Token { kObject, kArray, kString, kNumber, kTrue, kFalse, kNull, kNone };

  explicit JsonReader(std::string_view text)
      : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()) {}

  // What comes next; kNone if it is not the beginning of a value.
  Token peek();

  // REQUIRES: peek() returned it. Then call next_member()/next_element() until they return false.
  void enter_object();
  void enter_array();

  // Moves to the value of the next member; false at the end of the object, which is consumed. The
  // key is valid until the next string is read.
  bool next_member(std::string_view& key);
  bool next_element();

  // REQUIRES: peek() == kString. False if the string is malformed.
  bool read_string(std::string& out);

  // REQUIRES: peek() == kNumber. The number's text, empty if it is malformed.
  std::string_view read_number();

  // Skips a value of any kind.
  void skip_value();

  // Checks that the value was the last thing in the text; fails if something follows.
  bool finish();

  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  void fail(std::string message);

 private:
  void skip_space();
  bool literal(std::string_view word);
  bool malformed(std::string_view what);  // False, for callers that return that.
  void enter();
  bool next(char closing);
  // The string at at_, as a view of the text if it has no escapes and of `scratch` otherwise.
  std::optional<std::string_view> string(std::string& scratch);
  bool unescape(std::string& out);
  bool unescape_code_point(std::string& out);
  std::optional<std::uint32_t> four_hex_digits();

  const char* begin_;
  const char* at_;
  const char* end_;
  std::size_t depth_ = 0;
  bool need_comma_ = false;
  std::string key_;
  std::string error_;
};

}  // namespace stanchion::wire
