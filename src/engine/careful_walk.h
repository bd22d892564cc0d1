// Scanning a store in which some keys cannot be read.
//
//   range   [ entries ][ cannot be read ][ entries ]…
//              visited    a hole            visited
//
// Only entries of a successful scan are visited: a table that cannot be read may hide that
// something was erased. A hole ends at the first key from which a scan succeeds; it is found by
// looking ever further ahead, and then by bisection.
#pragma once

#include <functional>
#include <string_view>

#include "engine/engine.h"

namespace stanchion::engine {

using VisitEntry = std::function<void(std::string_view key, std::string_view value)>;

// Visits everything that can be read, in order of key. False: there were holes.
bool walk_carefully(const Engine::ScanStore& scan, KeyRange range, const VisitEntry& visit);

}  // namespace stanchion::engine
