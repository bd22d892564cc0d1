#include "base/text.h"

#include "base/scan.h"
#include "base/unicode_letters.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace stanchion {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";
// The two hex digits of every byte, one pair after the other.
constexpr std::array<char, 512> make_hex_pairs() {
  std::array<char, 512> pairs{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    pairs[2 * byte] = kHexDigits[byte >> 4];
    pairs[2 * byte + 1] = kHexDigits[byte & 15];
  }
  return pairs;
}
constexpr auto kHexPairs = make_hex_pairs();

char* write_hex(char* to, std::uint8_t byte) {
  std::memcpy(to, &kHexPairs[2 * std::size_t{byte}], 2);
  return to + 2;
}

constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr std::array<std::int8_t, 256> make_base64_values() {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (int i = 0; i < 64; ++i)
    values[static_cast<unsigned char>(kBase64[i])] = static_cast<std::int8_t>(i);
  return values;
}
constexpr auto kBase64Values = make_base64_values();

// Whether all bytes are between 0x20 and 0x7F.
bool is_plain_ascii(Bytes bytes) {
  return !has_any(bytes - 0x20 >= 0x60);
}

struct Decoded {
  std::uint32_t code_point = 0;
  int size = 0;  // 0: not UTF-8 here.
};

// Decodes one multi-byte sequence at the start of `s`, whose first byte is >= 0x80.
Decoded decode_multibyte(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(s[i]); };
  const std::uint8_t lead = byte(0);
  const int size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || s.size() < static_cast<std::size_t>(size)) return {};
  std::uint32_t code_point = lead & (0xFFU >> (size + 1));
  for (int i = 1; i < size; ++i) {
    const std::uint8_t next = byte(static_cast<std::size_t>(i));
    if ((next & 0xC0) != 0x80) return {};
    code_point = code_point << 6 | (next & 0x3FU);
  }
  const bool overlong = (size == 3 && code_point < 0x800) || (size == 4 && code_point < 0x10000);
  const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  if (overlong || surrogate || code_point > 0x10FFFF) return {};
  return {code_point, size};
}

}  // namespace

std::string to_hex(std::string_view bytes) {
  std::string out(bytes.size() * 2, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(bytes[i]);
    out[2 * i] = kHexDigits[byte >> 4];
    out[2 * i + 1] = kHexDigits[byte & 15];
  }
  return out;
}

std::optional<std::string> from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string out;
  out.reserve(hex.size() / 2);
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const int high = hex_value(hex[i]), low = hex_value(hex[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<char>(high << 4 | low));
  }
  return out;
}

std::string to_base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4, '=');
  char* to = out.data();
  const auto byte = [&](std::size_t i) {
    return std::uint32_t{static_cast<std::uint8_t>(bytes[i])};
  };
  std::size_t i = 0;
  for (; i + 3 <= bytes.size(); i += 3, to += 4) {
    const std::uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    to[0] = kBase64[group >> 18];
    to[1] = kBase64[group >> 12 & 63];
    to[2] = kBase64[group >> 6 & 63];
    to[3] = kBase64[group & 63];
  }
  const std::size_t left = bytes.size() - i;
  if (left == 0) return out;
  const std::uint32_t group = byte(i) << 16 | (left == 2 ? byte(i + 1) << 8 : 0);
  to[0] = kBase64[group >> 18];
  to[1] = kBase64[group >> 12 & 63];
  if (left == 2) to[2] = kBase64[group >> 6 & 63];
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  const std::size_t digits = text.size() - padding;
  std::string out(text.size() / 4 * 3 - padding, '\0');
  char* to = out.data();
  const auto value = [&](std::size_t i) {
    return std::int32_t{kBase64Values[static_cast<unsigned char>(text[i])]};
  };
  std::int32_t all = 0;  // Negative as soon as one value is: then the text is not base64.
  std::size_t i = 0;
  for (; i + 4 <= digits; i += 4, to += 3) {
    const std::int32_t a = value(i), b = value(i + 1), c = value(i + 2), d = value(i + 3);
    all |= a | b | c | d;
    to[0] = static_cast<char>(a << 2 | b >> 4);
    to[1] = static_cast<char>(b << 4 | c >> 2);
    to[2] = static_cast<char>(c << 6 | d);
  }
  if (padding > 0) {
    const std::int32_t a = value(i), b = value(i + 1), c = padding == 1 ? value(i + 2) : 0;
    all |= a | b | c;
    to[0] = static_cast<char>(a << 2 | b >> 4);
    if (padding == 1) to[1] = static_cast<char>(b << 4 | c >> 2);
  }
  if (all < 0) return std::nullopt;
  return out;
}

std::optional<std::uint64_t> parse_decimal(std::string_view text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

char* HexOf::write(char* to) const {
  for (const std::uint8_t byte : bytes) to = write_hex(to, byte);
  return to;
}

char* UuidOf::write(char* to) const {
  const std::uint8_t* from = bytes.data();
  const auto write_group = [&](int size) {
    for (int i = 0; i < size; ++i) to = write_hex(to, *from++);
  };
  write_group(4);
  for (int i = 0; i < 3; ++i) {
    *to++ = '-';
    write_group(2);
  }
  *to++ = '-';
  write_group(6);
  return to;
}

std::string format_uuid(std::span<const std::uint8_t, 16> bytes) {
  std::string out(UuidOf::size(), '\0');
  UuidOf{bytes}.write(out.data());
  return out;
}

std::optional<std::array<std::uint8_t, 16>> parse_uuid(std::string_view text) {
  if (text.size() != 36) return std::nullopt;
  std::string hex;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash != (text[i] == '-')) return std::nullopt;
    if (!dash) hex.push_back(text[i]);
  }
  const auto bytes = from_hex(hex);
  if (!bytes) return std::nullopt;
  std::array<std::uint8_t, 16> out{};
  std::copy(bytes->begin(), bytes->end(), out.begin());
  return out;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    if (static_cast<std::uint8_t>(text.front()) < 0x80) {
      text.remove_prefix(1);
      continue;
    }
    const Decoded d = decode_multibyte(text);
    if (d.size == 0) return false;
    text.remove_prefix(static_cast<std::size_t>(d.size));
  }
  return true;
}

std::optional<std::uint32_t> find_forbidden_character(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    if (i + sizeof(Bytes) <= text.size() && is_plain_ascii(load_bytes(text.data() + i))) {
      i += sizeof(Bytes);
      continue;
    }
    const auto byte = static_cast<std::uint8_t>(text[i]);
    if (byte >= 0x20 && byte < 0x80) {
      ++i;
    } else if (byte < 0x20) {
      if (byte != 0x9 && byte != 0xA && byte != 0xD) return byte;
      ++i;
    } else {
      const Decoded d = decode_multibyte(text.substr(i));
      if (d.size == 0) return byte;
      if (d.code_point == 0xFFFE || d.code_point == 0xFFFF) return d.code_point;
      i += static_cast<std::size_t>(d.size);
    }
  }
  return std::nullopt;
}

bool has_only_letters_digits_and(std::string_view also, std::string_view text) {
  while (!text.empty()) {
    const auto byte = static_cast<std::uint8_t>(text.front());
    const bool is_ascii = byte < 0x80;
    const Decoded d = is_ascii ? Decoded{byte, 1} : decode_multibyte(text);
    if (d.size == 0) return false;
    const bool listed = is_ascii && also.find(text.front()) != std::string_view::npos;
    if (!listed && !is_letter_or_digit(d.code_point)) return false;
    text.remove_prefix(static_cast<std::size_t>(d.size));
  }
  return true;
}

std::string to_lower_ascii(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool equals_ignoring_ascii_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    // The two cases of a letter differ in one bit.
    const char lower = static_cast<char>(a[i] | 0x20);
    if ((a[i] ^ b[i]) != 0x20 || lower < 'a' || lower > 'z') return false;
  }
  return true;
}

}  // namespace stanchion
