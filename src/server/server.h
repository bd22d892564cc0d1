// The server as a whole: data directory, broker, reactors, HTTP. Everything that `serve` starts.
#pragma once

#include "settings/settings.h"
#include "settings/settings_sources.h"

namespace stanchion::server {

// Runs until SIGTERM or SIGINT; returns the exit status of the process. SIGHUP reads the sources
// again and applies accounts and certificate.
int serve(const settings::Settings& settings, const settings::Sources& sources);

}  // namespace stanchion::server
