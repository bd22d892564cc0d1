// Random sequences of operations: the same seed gives the same sequence on every machine.
#pragma once

#include <cstdint>

#include "tests/model/operation.h"

namespace stanchion::reference {

Sequence generate(std::uint64_t seed, int operations, int check_every);

}  // namespace stanchion::reference
