// What a process tells its service manager, and asks of the machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stanchion::server {

// Notifies systemd, if $NOTIFY_SOCKET is set: "READY=1", "STOPPING=1".
void notify_service_manager(std::string_view state);

// Prints a line on standard output for whoever started the process. One that nobody takes within a
// moment, because a pipe is full, is dropped: the process goes on.
void announce_if_taken(std::string_view line);

// Raises the limit of open files to the hard limit: each connection needs one.
void raise_open_files_limit();
// The limit; 0 if it is unknown.
std::uint64_t open_files_limit();

// The name of the machine in printable ASCII; empty if it is unknown.
std::string name_of_machine();

}  // namespace stanchion::server
