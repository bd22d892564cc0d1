#include "wire/json_reader.h"

#include <fmt/format.h>

#include "base/scan.h"
#include "base/text.h"
#include "wire/limits.h"

namespace stanchion::wire {
namespace {

// The first byte from `at` that ends a plain run: a quote, a backslash or a control character.
// `plain` becomes false if not all of the examined bytes are ASCII; they may reach past that byte.
const char* end_of_run(const char* at, const char* end, bool& plain) {
  Bytes all{};
  unsigned rest = 0;
  const char* const found = find_byte(
      at, end,
      [&](Bytes bytes) {
        all |= bytes;
        return bytes_equal(bytes, '"') | bytes_equal(bytes, '\\') | bytes_below(bytes, 0x20);
      },
      [&](unsigned char byte) {
        rest |= byte;
        return byte == '"' || byte == '\\' || byte < 0x20;
      });
  plain = plain && is_ascii(all) && rest < 0x80;
  return found;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

void append_utf8(std::string& out, std::uint32_t c) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

}  // namespace

void JsonReader::fail(std::string message) {
  if (!failed()) error_ = std::move(message);
}

bool JsonReader::malformed(std::string_view what) {
  fail(fmt::format("The request body is not valid JSON: {} at byte {}.", what, at_ - begin_));
  return false;
}

void JsonReader::skip_space() {
  while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
}

JsonReader::Token JsonReader::peek() {
  skip_space();
  if (failed() || at_ == end_) return Token::kNone;
  switch (*at_) {
    case '{':
      return Token::kObject;
    case '[':
      return Token::kArray;
    case '"':
      return Token::kString;
    case 't':
      return Token::kTrue;
    case 'f':
      return Token::kFalse;
    case 'n':
      return Token::kNull;
    default:
      return *at_ == '-' || is_digit(*at_) ? Token::kNumber : Token::kNone;
  }
}

void JsonReader::enter() {
  ++at_;
  need_comma_ = false;
  if (++depth_ > kJsonDepthMax) malformed("nested too deeply");
}

void JsonReader::enter_object() {
  enter();
}

void JsonReader::enter_array() {
  enter();
}

// Skips the comma before the next member or element, or the closing bracket.
bool JsonReader::next(char closing) {
  skip_space();
  if (failed()) return false;
  if (at_ == end_) return malformed("unexpected end");
  if (*at_ == closing) {
    ++at_;
    --depth_;
    need_comma_ = true;
    return false;
  }
  if (need_comma_) {
    if (*at_ != ',') return malformed("expected a comma");
    ++at_;
    skip_space();
  }
  need_comma_ = true;
  return true;
}

bool JsonReader::next_member(std::string_view& key) {
  if (!next('}')) return false;
  if (at_ == end_ || *at_ != '"') return malformed("expected a member's name");
  const auto name = string(key_);
  if (!name) return false;
  key = *name;
  skip_space();
  if (at_ == end_ || *at_ != ':') return malformed("expected a colon");
  ++at_;
  return true;
}

bool JsonReader::next_element() {
  if (!next(']')) return false;
  if (at_ != end_ && *at_ == ']') return malformed("expected a value");
  return true;
}

bool JsonReader::read_string(std::string& out) {
  out.clear();
  const auto text = string(out);
  if (!text) return false;
  if (text->data() != out.data()) out.assign(*text);
  return true;
}

std::optional<std::string_view> JsonReader::string(std::string& scratch) {
  const char* const start = ++at_;  // After the quote.
  bool plain = true;
  at_ = end_of_run(at_, end_, plain);
  std::string_view text(start, static_cast<std::size_t>(at_ - start));
  if (at_ != end_ && *at_ == '\\') {
    scratch.assign(text);
    while (at_ != end_ && *at_ == '\\') {
      if (!unescape(scratch)) return std::nullopt;
      const char* const run = at_;
      at_ = end_of_run(at_, end_, plain);
      scratch.append(run, at_);
    }
    text = scratch;
  }
  if (at_ == end_) {
    malformed("unexpected end of a string");
    return std::nullopt;
  }
  if (*at_ != '"') {
    malformed("a control character in a string");
    return std::nullopt;
  }
  if (!plain && !is_utf8(text)) {
    malformed("a string is not UTF-8");
    return std::nullopt;
  }
  ++at_;
  return text;
}

bool JsonReader::unescape(std::string& out) {
  ++at_;  // After the backslash.
  if (at_ == end_) return malformed("unexpected end of a string");
  constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  const char c = *at_++;
  if (c == 'u') return unescape_code_point(out);
  const std::size_t which = kEscapes.find(c);
  if (which == std::string_view::npos) return malformed("an unknown escape");
  out.push_back(kMeanings[which]);
  return true;
}

bool JsonReader::unescape_code_point(std::string& out) {
  auto unit = four_hex_digits();
  if (!unit) return malformed("expected four hexadecimal digits");
  if (*unit >= 0xD800 && *unit <= 0xDFFF) {
    const bool paired = *unit < 0xDC00 && end_ - at_ >= 2 && at_[0] == '\\' && at_[1] == 'u';
    if (!paired) return malformed("half a surrogate pair");
    at_ += 2;
    const auto low = four_hex_digits();
    if (!low || *low < 0xDC00 || *low > 0xDFFF) return malformed("half a surrogate pair");
    unit = 0x10000 + ((*unit - 0xD800) << 10) + (*low - 0xDC00);
  }
  append_utf8(out, *unit);
  return true;
}

std::optional<std::uint32_t> JsonReader::four_hex_digits() {
  if (end_ - at_ < 4) return std::nullopt;
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = *at_++;
    const int digit = is_digit(c)            ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    value = value << 4 | static_cast<std::uint32_t>(digit);
  }
  return value;
}

std::string_view JsonReader::read_number() {
  const char* const start = at_;
  const auto digits = [&] {
    const char* const first = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != first;
  };
  if (*at_ == '-') ++at_;
  const bool leading_zero = at_ != end_ && *at_ == '0';
  const char* const integer = at_;
  bool good = digits() && !(leading_zero && at_ - integer > 1);
  if (good && at_ != end_ && *at_ == '.') {
    ++at_;
    good = digits();
  }
  if (good && at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    good = digits();
  }
  if (!good) return malformed("a malformed number"), std::string_view();
  return {start, static_cast<std::size_t>(at_ - start)};
}

bool JsonReader::literal(std::string_view word) {
  if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(word))
    return malformed("an unknown word");
  at_ += word.size();
  return true;
}

void JsonReader::skip_value() {
  std::string_view key;
  switch (peek()) {
    case Token::kObject:
      enter_object();
      while (next_member(key)) skip_value();
      break;
    case Token::kArray:
      enter_array();
      while (next_element()) skip_value();
      break;
    case Token::kString:
      string(key_);
      break;
    case Token::kNumber:
      read_number();
      break;
    case Token::kTrue:
      literal("true");
      break;
    case Token::kFalse:
      literal("false");
      break;
    case Token::kNull:
      literal("null");
      break;
    case Token::kNone:
      malformed("expected a value");
      break;
  }
}

bool JsonReader::finish() {
  skip_space();
  if (!failed() && at_ != end_) malformed("something follows the request");
  return !failed();
}

}  // namespace stanchion::wire
