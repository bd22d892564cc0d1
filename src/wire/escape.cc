#include "wire/escape.h"

#include "base/scan.h"

namespace stanchion::wire {
namespace {

// The size of the prefix of `text` that JSON accepts unescaped.
std::size_t json_run(std::string_view text) {
  const char* const end = text.data() + text.size();
  const char* const stop = find_byte(
      text.data(), end,
      [](Bytes bytes) {
        return bytes_equal(bytes, '"') | bytes_equal(bytes, '\\') | bytes_below(bytes, 0x20);
      },
      [](unsigned char byte) { return byte == '"' || byte == '\\' || byte < 0x20; });
  return static_cast<std::size_t>(stop - text.data());
}

constexpr unsigned char kLeadOfNonCharacters = 0xEF;  // May begin U+FFFE or U+FFFF.

// The same for XML. The prefix ends at '<', '>', '&', '"' and at any control character, though some
// control characters are then written unescaped.
std::size_t xml_run(std::string_view text) {
  const char* const end = text.data() + text.size();
  const char* const stop = find_byte(
      text.data(), end,
      [](Bytes bytes) {
        return bytes_equal(bytes, '"') | bytes_equal(bytes, '&') | bytes_equal(bytes, '<') |
               bytes_equal(bytes, '>') | bytes_below(bytes, 0x20) |
               bytes_equal(bytes, kLeadOfNonCharacters);
      },
      [](unsigned char byte) {
        return byte == '"' || byte == '&' || byte == '<' || byte == '>' || byte < 0x20 ||
               byte == kLeadOfNonCharacters;
      });
  return static_cast<std::size_t>(stop - text.data());
}

void append_json_escape(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      constexpr char kHex[] = "0123456789abcdef";
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
  }
}

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Appends the escaped form of the character at the front of `text`; returns its size in `text`.
std::size_t append_xml_escape(std::string& out, std::string_view text) {
  switch (text.front()) {
    case '&':
      out += "&amp;";
      return 1;
    case '<':
      out += "&lt;";
      return 1;
    case '>':
      out += "&gt;";
      return 1;
    case '"':
      out += "&quot;";
      return 1;
    case '\r':
      out += "&#xD;";
      return 1;
    case '\t':
    case '\n':
      out += text.front();
      return 1;
    case '\xEF':
      if (text.starts_with("\xEF\xBF\xBE") || text.starts_with("\xEF\xBF\xBF")) {
        out += kReplacement;
        return 3;
      }
      out += '\xEF';
      return 1;
    default:
      out += kReplacement;
      return 1;
  }
}

}  // namespace

void append_json_escaped(std::string& out, std::string_view text) {
  while (true) {
    const std::size_t run = json_run(text);
    out.append(text.substr(0, run));
    if (run == text.size()) return;
    append_json_escape(out, text[run]);
    text.remove_prefix(run + 1);
  }
}

void append_xml_escaped(std::string& out, std::string_view text) {
  while (true) {
    const std::size_t run = xml_run(text);
    out.append(text.substr(0, run));
    text.remove_prefix(run);
    if (text.empty()) return;
    text.remove_prefix(append_xml_escape(out, text));
  }
}

}  // namespace stanchion::wire
