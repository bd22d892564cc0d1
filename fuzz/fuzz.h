// What a fuzz target provides to the driver: a function that takes any bytes, and inputs to begin
// with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Runs the code under test on `size` bytes at `data`. Anything is allowed except a crash, a failed
// CHECK or an endless run; the target itself checks what else must hold.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace stanchion::fuzz {

// Well-formed inputs: mutating these reaches further than starting from nothing.
std::vector<std::string> seeds();

}  // namespace stanchion::fuzz
