#include "wire/policy_pattern.h"

#include <algorithm>
#include <iterator>

namespace stanchion::wire {
namespace {

using PatternView = std::u16string_view;

char16_t literal(char byte) {
  return static_cast<unsigned char>(byte);
}

char16_t wildcard_or_literal(char byte) {
  return byte == '*' ? kAnyText : byte == '?' ? kAnyByte : literal(byte);
}

char16_t as_written(char16_t element) {
  return element == kAnyText ? u'*' : element == kAnyByte ? u'?' : element;
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

template <class View>
bool matches_view(View pattern, std::string_view text) {
  std::size_t p = 0, t = 0;
  std::size_t star = View::npos, retry = 0;
  while (t < text.size()) {
    const char16_t next = p < pattern.size() ? element(pattern[p]) : char16_t{};
    if (p < pattern.size() && next == kAnyText) {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && (next == kAnyByte || next == literal(text[t]))) {
      ++p;
      ++t;
    } else if (star != View::npos) {
      p = star + 1;  // Let the last star match one more character.
      t = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && element(pattern[p]) == kAnyText) ++p;
  return p == pattern.size();
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

}  // namespace stanchion::wire
