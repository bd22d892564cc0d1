#include "base/text.h"

#include <algorithm>
#include <charconv>

namespace stanchion {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";
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
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < left ? static_cast<std::uint8_t>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      out.push_back(k <= left ? kBase64[group >> (18 - 6 * k) & 63] : '=');
  }
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  const std::string_view digits = text.substr(0, text.size() - padding);
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : digits) {
    const int value = kBase64Values[static_cast<unsigned char>(c)];
    if (value < 0) return std::nullopt;
    group = group << 6 | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out.push_back(static_cast<char>(group >> bits & 0xFF));
    }
  }
  return out;
}

std::optional<std::uint64_t> parse_decimal(std::string_view text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string format_uuid(std::span<const std::uint8_t, 16> bytes) {
  std::string out(36, '-');
  std::size_t at = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) ++at;
    out[at++] = kHexDigits[bytes[i] >> 4];
    out[at++] = kHexDigits[bytes[i] & 15];
  }
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

std::string to_lower_ascii(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool equals_ignoring_ascii_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace stanchion
