#include "wire/escape.h"

#include <array>

namespace stanchion::wire {
namespace {

using Flags = std::array<bool, 256>;

constexpr Flags make_json_flags() {
  Flags special{};
  for (std::size_t c = 0; c < 0x20; ++c) special[c] = true;
  special['"'] = special['\\'] = true;
  return special;
}

constexpr Flags make_xml_flags() {
  Flags special{};
  for (std::size_t c = 0; c < 0x20; ++c) special[c] = c != '\t' && c != '\n';
  special['"'] = special['&'] = special['<'] = special['>'] = true;
  special[0xEF] = true;  // May begin U+FFFE or U+FFFF.
  return special;
}

constexpr Flags kJsonSpecial = make_json_flags();
constexpr Flags kXmlSpecial = make_xml_flags();

std::size_t plain_run(std::string_view text, const Flags& special) {
  std::size_t i = 0;
  while (i < text.size() && !special[static_cast<unsigned char>(text[i])]) ++i;
  return i;
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

// Appends what stands for the character at the front of `text`; returns its size in `text`.
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
    const std::size_t run = plain_run(text, kJsonSpecial);
    out.append(text.substr(0, run));
    if (run == text.size()) return;
    append_json_escape(out, text[run]);
    text.remove_prefix(run + 1);
  }
}

void append_xml_escaped(std::string& out, std::string_view text) {
  while (true) {
    const std::size_t run = plain_run(text, kXmlSpecial);
    out.append(text.substr(0, run));
    text.remove_prefix(run);
    if (text.empty()) return;
    text.remove_prefix(append_xml_escape(out, text));
  }
}

}  // namespace stanchion::wire
