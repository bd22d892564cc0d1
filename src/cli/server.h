// The server as a whole: data directory, broker, reactors, HTTP. Everything that `serve` starts.
#pragma once

#include "cli/settings.h"

namespace stanchion::cli {

// Runs until SIGTERM or SIGINT; returns the exit status of the process.
int serve(const ServeSettings& settings);

}  // namespace stanchion::cli
