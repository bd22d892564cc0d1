// What a process tells the one that started it, and asks of the machine.
#pragma once

#include <cstdint>
#include <string_view>

namespace stanchion::cli {

// Tells systemd, if it wants to know ($NOTIFY_SOCKET): "READY=1", "STOPPING=1".
void notify_service_manager(std::string_view state);

// Lets this process open as many files as it may: each connection is one.
void raise_open_files_limit();
// How many that are; 0 if nobody knows.
std::uint64_t open_files_limit();

}  // namespace stanchion::cli
