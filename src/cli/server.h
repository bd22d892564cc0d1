// The server as a whole: data directory, broker, reactors, HTTP. Everything that `serve` starts.
#pragma once

#include "cli/settings.h"
#include "cli/settings_sources.h"

namespace stanchion::cli {

// Runs until SIGTERM or SIGINT; returns the exit status of the process. SIGHUP reads the sources
// again and takes over accounts and certificate.
int serve(const Settings& settings, const Sources& sources);

}  // namespace stanchion::cli
