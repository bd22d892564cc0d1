// What the process takes of the machine.
#pragma once

#include <cstdint>

namespace stanchion::monitoring {

struct ProcessFigures {
  double started = 0;      // Seconds since 1970.
  double cpu_seconds = 0;  // Of all its threads.
  std::uint64_t resident_bytes = 0;
  std::uint64_t virtual_bytes = 0;
  std::uint64_t open_files = 0;
  std::uint64_t open_files_max = 0;
};

// What cannot be found out is 0. Opens files: not for a reactor's thread.
ProcessFigures look_at_process();

}  // namespace stanchion::monitoring
