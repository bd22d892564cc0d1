// Text from outside, made safe to print on a terminal or a line of a log.
//
// What a terminal does not merely show is written as an escape: control characters, those of eight
// bits (U+0080 to U+009F) included, because U+009B begins a command as ESC [ does; characters that
// change the direction of the text after them, by which it can be made to read as another; and the
// separators of lines.
#pragma once

#include <string>
#include <string_view>

namespace stanchion {

// As \x1b, or \u009b above U+007F. Bytes that are not UTF-8 become \xNN. The result is one line.
std::string printable(std::string_view text);
// The same, but line ends stay.
std::string printable_lines(std::string_view text);

// `json` is a document in UTF-8: it stays the same document, with such characters as \u009b.
std::string printable_json(std::string_view json);

// Whether a character is written as an escape.
bool is_unprintable(char32_t character);

// The first character of a text that is not empty.
struct FirstCharacter {
  char32_t code = 0;  // The byte, if it is not UTF-8.
  std::size_t size = 1;
  bool is_utf8 = false;
};
FirstCharacter first_character(std::string_view text);

}  // namespace stanchion
