// `stanchion backup`: a copy of a data directory that can be started, from a running server by its
// control socket, else by this process.
#pragma once

#include <string>

#include "base/result.h"

namespace stanchion::cli {

// Where a server whose data is there takes orders.
std::string control_socket(const std::string& data);

// Returns when the backup is complete and durable.
Status back_up(const std::string& data, const std::string& to);

class Program;
void add_backup(Program& program);

}  // namespace stanchion::cli
