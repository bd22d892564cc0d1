#include "base/printable.h"

#include <fmt/format.h>

#include "base/text.h"

namespace stanchion {
namespace {

std::string escape(std::string_view text, bool keeps_lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const FirstCharacter first = first_character(text);
    if (keeps_lines && first.code == '\n')
      out += '\n';
    else if (!first.is_utf8 || (first.code < 0x80 && is_unprintable(first.code)))
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(first.code));
    else if (is_unprintable(first.code))
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(first.code));
    else
      out += text.substr(0, first.size);
    text.remove_prefix(first.size);
  }
  return out;
}

}  // namespace

bool is_unprintable(char32_t c) {
  const auto between = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  return c < 0x20 || between(0x7F, 0x9F) || c == 0x061C || between(0x200E, 0x200F) ||
         between(0x2028, 0x202E) || between(0x2066, 0x2069);
}

FirstCharacter first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return {.code = lead, .size = 1, .is_utf8 = true};
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  const std::string_view character = text.substr(0, size);
  if (!is_utf8(character)) return {.code = lead};
  char32_t code = lead & (0xFFU >> (size + 1));
  for (const char c : character.substr(1))
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3F);
  return {.code = code, .size = size, .is_utf8 = true};
}

std::string printable(std::string_view text) {
  return escape(text, false);
}

std::string printable_lines(std::string_view text) {
  return escape(text, true);
}

std::string printable_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const FirstCharacter first = first_character(json);
    // Below U+0020 there is only space between values: strings have such characters escaped.
    if (first.is_utf8 && first.code >= 0x20 && is_unprintable(first.code))
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(first.code));
    else
      out += json.substr(0, first.size);
    json.remove_prefix(first.size);
  }
  return out;
}

}  // namespace stanchion
