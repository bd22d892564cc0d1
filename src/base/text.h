// Text: hex, base64, numbers, UTF-8 and the characters that SQS accepts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stanchion {

std::string to_hex(std::string_view bytes);
std::optional<std::string> from_hex(std::string_view hex);

std::string to_base64(std::string_view bytes);
// Strict: padding required, no white space. nullopt if the text is not base64.
std::optional<std::string> from_base64(std::string_view text);

// Plain decimal digits only: no sign, no space, no leading plus; nullopt on overflow.
std::optional<std::uint64_t> parse_decimal(std::string_view text);

// These two write to where the digits are wanted instead of returning a copy, because replies are
// full of them.
struct HexOf {
  std::span<const std::uint8_t, 16> bytes;
  static constexpr std::size_t size() { return 32; }
  char* write(char* to) const;
};
// In the form 8-4-4-4-12, lower case.
struct UuidOf {
  std::span<const std::uint8_t, 16> bytes;
  static constexpr std::size_t size() { return 36; }
  char* write(char* to) const;
};

std::string format_uuid(std::span<const std::uint8_t, 16> bytes);
std::optional<std::array<std::uint8_t, 16>> parse_uuid(std::string_view text);

bool is_utf8(std::string_view text);

// The first code point of `text` that SQS does not accept in bodies and attribute values. Accepted
// are #x9 | #xA | #xD | #x20-#xD7FF | #xE000-#xFFFD | #x10000-#x10FFFF. If a byte is not UTF-8,
// that byte's value is returned.
std::optional<std::uint32_t> find_forbidden_character(std::string_view text);

// Whether `text` is UTF-8 and each of its characters a letter or digit of any script, or one of
// `also`.
bool has_only_letters_digits_and(std::string_view also, std::string_view text);

std::string to_lower_ascii(std::string_view text);
bool equals_ignoring_ascii_case(std::string_view a, std::string_view b);

// Empties a string and frees its memory, which an assignment does not do.
inline void release(std::string& text) {
  std::string().swap(text);
}

}  // namespace stanchion
