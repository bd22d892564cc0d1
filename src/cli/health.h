// `stanchion health`: whether a server is ready, for checks of containers and load balancers.
#pragma once

#include <string>

#include "cli/settings.h"

namespace stanchion::cli {

// Where the server of these settings is found from this machine.
std::string local_url(const Settings& settings);

// Asks /health/ready; returns 0 if the server is ready, 1 if not.
int health(const std::string& url);

}  // namespace stanchion::cli
