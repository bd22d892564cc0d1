// Delta debugging: makes a failing sequence as short and simple as it can while it still fails.
#pragma once

#include <functional>

#include "tests/model/operation.h"

namespace stanchion::reference {

// REQUIRES: fails(sequence). Calls `fails` at most `budget` times.
Sequence shrink(Sequence sequence, const std::function<bool(const Sequence&)>& fails, int budget);

}  // namespace stanchion::reference
