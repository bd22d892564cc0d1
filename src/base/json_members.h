// Members of JSON objects that are there more than once. Parsers keep one of them, silently;
// whoever wrote the other believes in it.
#pragma once

#include <string_view>

namespace stanchion {

// Whether any object in `json` has a member twice, however its name is escaped. What is no JSON has
// none from where it goes wrong.
bool repeats_a_member(std::string_view json);

}  // namespace stanchion
