// A directory for one measurement, on the disk that is to be measured: $STANCHION_BENCH_DIR, or the
// build directory, so that a killed run leaves nothing among the sources.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/check.h"

namespace stanchion {

class ScratchDirectory {
 public:
  ScratchDirectory() {
    const char* base = std::getenv("STANCHION_BENCH_DIR");
    path = std::string(base != nullptr ? base : STANCHION_BUILD_DIR) + "/bench-XXXXXX";
    CHECK(::mkdtemp(path.data()) != nullptr, path);
  }
  ~ScratchDirectory() { std::filesystem::remove_all(path); }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  std::string path;
};

}  // namespace stanchion
