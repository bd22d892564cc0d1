// Walking through a store of which some keys cannot be read.
//
//   range   [ entries ][ cannot be read ][ entries ]…
//              visited    a hole            visited
//
// Only what a walk that succeeded has seen is visited: a table that cannot be read may hide that
// something was erased. A hole ends at the first key from which a walk succeeds, which is found by
// looking ever further ahead, and then between.
#pragma once

#include <functional>
#include <string_view>

#include "engine/engine.h"

namespace stanchion::engine {

using VisitEntry = std::function<void(std::string_view key, std::string_view value)>;

// Visits what can be read, in order of key. False: there were holes.
bool walk_carefully(const Engine::ScanStore& scan, KeyRange range, const VisitEntry& visit);

}  // namespace stanchion::engine
