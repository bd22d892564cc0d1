// Suggestions for mistyped words: "did you mean …?".
#pragma once

#include <string_view>
#include <vector>

namespace stanchion {

// The word of `known` that `word` was most likely meant to be; empty if none is close.
std::string_view nearest_word(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace stanchion
