#include "policy/pattern.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/text.h"

namespace stanchion::policy {
namespace {

using PatternView = std::u16string_view;

char16_t literal(char byte) {
  return static_cast<unsigned char>(byte);
}

char16_t wildcard_or_literal(char byte) {
  return byte == '*' ? kAnyText : byte == '?' ? kAnyCharacter : literal(byte);
}

char16_t as_written(char16_t element) {
  return element == kAnyText ? u'*' : element == kAnyCharacter ? u'?' : element;
}

char16_t to_lower(char16_t element) {
  return element >= u'A' && element <= u'Z' ? static_cast<char16_t>(element - u'A' + u'a')
                                            : element;
}

char16_t element(char byte) {
  return wildcard_or_literal(byte);
}

char16_t element(char16_t element) {
  return element;
}

// Follows all ways in which a pattern may match at once, each state of the match being a bit: state
// i is that the first i elements, stars not counted, match what was read.
class States {
 public:
  template <class View>
  explicit States(View pattern)
      : words_(pattern.size() / kBits + 1),
        of_byte_(256 * words_),
        of_any_character_(words_),
        of_any_text_(words_),
        reached_(words_) {
    for (const auto part : pattern) {
      const char16_t next = element(part);
      if (next == kAnyText)
        add(of_any_text_.data(), last_);
      else if (next == kAnyCharacter)
        add(of_any_character_.data(), ++last_);
      else
        add(&of_byte_[next * words_], ++last_);
    }
    add(reached_.data(), 0);
  }

  bool end_with(std::string_view text) {
    const bool has_characters = is_utf8(text);
    for (const char byte : text) {
      const bool continues = has_characters && (byte & 0xC0) == 0x80;
      if (!step(&of_byte_[literal(byte) * words_], continues)) return false;
    }
    return (reached_[last_ / kBits] >> last_ % kBits & 1) != 0;
  }

 private:
  using Word = std::uint64_t;
  static constexpr std::size_t kBits = 64;

  static void add(Word* states, std::size_t state) {
    states[state / kBits] |= Word{1} << state % kBits;
  }

  // A '?' takes the first byte of a character, and then the others. False if no way is left.
  bool step(const Word* of_this_byte, bool continues) {
    Word carry = 0, any = 0;
    for (std::size_t i = 0; i < words_; ++i) {
      const Word character = of_any_character_[i];
      const Word entered = of_this_byte[i] | (continues ? 0 : character);
      const Word kept = of_any_text_[i] | (continues ? character : 0);
      const Word before = reached_[i];
      reached_[i] = ((before << 1 | carry) & entered) | (before & kept);
      carry = before >> (kBits - 1);
      any |= reached_[i];
    }
    return any != 0;
  }

  std::size_t words_;
  std::size_t last_ = 0;
  std::vector<Word> of_byte_;  // For each byte, the states that are entered by it.
  std::vector<Word> of_any_character_, of_any_text_;
  std::vector<Word> reached_;
};

template <class View>
bool matches_view(View pattern, std::string_view text) {
  // Most patterns are plain up to a star at their end, if there is one.
  while (!pattern.empty() && !text.empty() && element(pattern.front()) == literal(text.front())) {
    pattern.remove_prefix(1);
    text.remove_prefix(1);
  }
  if (pattern.empty()) return text.empty();
  if (pattern.size() == 1 && element(pattern.front()) == kAnyText) return true;
  return States(pattern).end_with(text);
}

}  // namespace

void append_with_wildcards(Pattern& pattern, std::string_view text) {
  std::ranges::transform(text, std::back_inserter(pattern), wildcard_or_literal);
}

void append_literally(Pattern& pattern, std::string_view text) {
  std::ranges::transform(text, std::back_inserter(pattern), literal);
}

bool matches(const Pattern& pattern, std::string_view text) {
  return matches_view(PatternView(pattern), text);
}

bool matches_arn(const Pattern& pattern, std::string_view arn) {
  PatternView rest = pattern;
  for (int part = 0; part < 5; ++part) {
    const std::size_t pattern_colon = rest.find(u':'), arn_colon = arn.find(':');
    if (pattern_colon == PatternView::npos || arn_colon == std::string_view::npos)
      return rest == PatternView(&kAnyText, 1);
    if (!matches_view(rest.substr(0, pattern_colon), arn.substr(0, arn_colon))) return false;
    rest.remove_prefix(pattern_colon + 1);
    arn.remove_prefix(arn_colon + 1);
  }
  return matches_view(rest, arn);
}

bool spells(const Pattern& pattern, std::string_view text) {
  return std::ranges::equal(pattern, text, {}, as_written, literal);
}

bool spells_ignoring_ascii_case(const Pattern& pattern, std::string_view text) {
  return std::ranges::equal(
      pattern, text, {}, [](char16_t element) { return to_lower(as_written(element)); },
      [](char byte) { return to_lower(literal(byte)); });
}

bool matches_wildcards(std::string_view pattern, std::string_view text) {
  return matches_view(pattern, text);
}

}  // namespace stanchion::policy
