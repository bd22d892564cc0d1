// What is said of an entry of the store that contradicts itself, or another.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace stanchion::engine {

inline std::unexpected<Failure> makes_no_sense(std::string_view what) {
  return fail("the store is damaged: " + std::string(what) + " makes no sense");
}

}  // namespace stanchion::engine
