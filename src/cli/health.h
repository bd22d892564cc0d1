// `stanchion health`: whether a server is ready, for health checks of containers and load
// balancers.
#pragma once

#include <string>

#include "settings/settings.h"

namespace stanchion::cli {

// Where the server of these settings is found from this machine.
std::string local_url(const settings::Settings& settings);

class Program;
void add_health(Program& program);

}  // namespace stanchion::cli
