// Checks that are always on, for conditions that only a bug of ours could break.
//
// A failed check prints the expression, the place and a detail, and aborts the process. A check is
// never used for a mistake of a client or a failure of the machine.
#pragma once

#include <source_location>
#include <string_view>

namespace stanchion {

[[noreturn]] void check_failed(const char* expression, std::string_view detail,
                               std::source_location where);

}  // namespace stanchion

#define CHECK(condition, detail) \
  (static_cast<bool>(condition)  \
       ? static_cast<void>(0)    \
       : ::stanchion::check_failed(#condition, detail, std::source_location::current()))
