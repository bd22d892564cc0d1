// Escaping of text inside JSON strings and XML elements.
#pragma once

#include <string>
#include <string_view>

namespace stanchion::wire {

// REQUIRES: text is UTF-8. Without the surrounding quotes.
void append_json_escaped(std::string& out, std::string_view text);

// REQUIRES: text is UTF-8. CR is written as a reference, because parsers would drop it; characters
// that XML cannot hold at all become U+FFFD.
void append_xml_escaped(std::string& out, std::string_view text);

}  // namespace stanchion::wire
