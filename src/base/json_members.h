// Duplicate members of JSON objects. Parsers silently keep one of the two; whoever wrote the other
// one believes that it counts.
#pragma once

#include <string_view>

namespace stanchion {

// Whether any object in `json` has a member twice, however its name is escaped. Text that is not
// JSON is searched up to where it goes wrong.
bool repeats_a_member(std::string_view json);

}  // namespace stanchion
