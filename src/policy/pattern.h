// Texts with wildcards: '*' stands for any characters, '?' for one.
//
// Matching takes steps for the bytes of the text times a 64th of those of the pattern, whatever both
// say: callers choose the one, and owners of queues the other.
#pragma once

#include <string>
#include <string_view>

namespace stanchion::policy {

// What the author of a policy wrote, in which '*' and '?' are wildcards, and what was put in place
// of variables, in which they are characters like any other. So an element is a byte, or one of the
// wildcards, which no byte can be.
using Pattern = std::u16string;

inline constexpr char16_t kAnyText = 0x100;
inline constexpr char16_t kAnyCharacter = 0x101;  // A byte where the text is no UTF-8.

void append_with_wildcards(Pattern& pattern, std::string_view text);
void append_literally(Pattern& pattern, std::string_view text);

bool matches(const Pattern& pattern, std::string_view text);

// Wildcards in an ARN do not match across its colons, except in the last of its six parts.
bool matches_arn(const Pattern& pattern, std::string_view arn);

// Whether it is this text, its wildcards being taken for the characters with which they are written.
bool spells(const Pattern& pattern, std::string_view text);
bool spells_ignoring_ascii_case(const Pattern& pattern, std::string_view text);

// As matches(), of a pattern without variables.
bool matches_wildcards(std::string_view pattern, std::string_view text);

}  // namespace stanchion::policy
