// What a command prints for the person who called it.
#pragma once

#include <string>
#include <string_view>

namespace stanchion {

// Prints "stanchion: PROBLEM" on standard error. A failure to write there is ignored.
void complain(std::string_view problem);
// The same, and returns the code to exit with.
int give_up(std::string_view problem, int exit_code);

// Prints a line on standard output that may or may not have a reader: a failure to write is
// ignored.
void announce(std::string_view line);

// What somebody typed or sent, safe to print: as printable() of base/printable.h, of limited length.
std::string shown(std::string_view typed);

}  // namespace stanchion
