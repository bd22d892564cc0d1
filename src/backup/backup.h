// A copy of a data directory that can be started: made by the server that runs on it, if there is
// one, on request through its control socket, else by this process.
#pragma once

#include <string>

#include "base/result.h"

namespace stanchion::backup {

// The control socket of a server with this data directory.
std::string control_socket(const std::string& data);

// Returns when the backup is complete and durable.
Status back_up(const std::string& data, const std::string& to);

}  // namespace stanchion::backup
