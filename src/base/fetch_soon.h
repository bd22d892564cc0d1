// Prefetch: asks the processor to load memory that will be needed soon.
#pragma once

#include <cstddef>

namespace stanchion {

constexpr std::size_t kCacheLine = 64;

inline void fetch_soon(const void* first, std::size_t bytes = 1) {
  const char* line = static_cast<const char*>(first);
  for (std::size_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(line + at);
  // Without this line, g++ treats a function that only prefetches as one without effects, and drops
  // its calls.
  asm volatile("");
}

}  // namespace stanchion
