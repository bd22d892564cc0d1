// Letters and digits of all scripts.
#pragma once

#include <cstdint>

namespace stanchion {

// Unicode's categories L (letters) and Nd (decimal digits), as in Java's isLetterOrDigit.
bool is_letter_or_digit(std::uint32_t code_point);

}  // namespace stanchion
