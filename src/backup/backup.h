// A copy of a data directory that can be started: made by the server that runs on it, asked by its
// control socket, else by this process.
#pragma once

#include <string>

#include "base/result.h"

namespace stanchion::backup {

// Where a server whose data is there takes orders.
std::string control_socket(const std::string& data);

// Returns when the backup is complete and durable.
Status back_up(const std::string& data, const std::string& to);

}  // namespace stanchion::backup
