// What somebody meant who slipped: "did you mean …?".
#pragma once

#include <string_view>
#include <vector>

namespace stanchion {

// The one of `known` that `word` was most likely meant to be; empty if none is near.
std::string_view nearest_word(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace stanchion
