// Where a server is found from its own machine.
#pragma once

#include <string>

#include "settings/settings.h"

namespace stanchion::settings {

std::string local_url(const Settings& settings);

}  // namespace stanchion::settings
