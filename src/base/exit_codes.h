// The exit statuses of the program; docs/operations.md tells users what to do about each.
#pragma once

namespace stanchion {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;    // The machine: a port, a disk, damaged data.
inline constexpr int kExitSettings = 2;  // The command line, the environment or the file.
inline constexpr int kExitJournalFailed = 70;

}  // namespace stanchion
