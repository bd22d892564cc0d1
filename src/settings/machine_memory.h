// How much memory this process may use.
#pragma once

#include <cstdint>
#include <string>

namespace stanchion::settings {

// The least of the machine's memory and the limits of the cgroups that the process is in, of version 1
// or 2; 0 if nothing is known. `root` is where /proc and /sys are, for tests.
std::uint64_t memory_of_this_process(const std::string& root = "");

}  // namespace stanchion::settings
