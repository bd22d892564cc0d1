// One run of the load generator: makes its queues, fills them, measures, checks, cleans up.
#pragma once

#include <atomic>
#include <functional>
#include <string_view>

#include "base/result.h"
#include "load/options.h"
#include "load/report.h"

namespace stanchion::load {

// Called for problems that do not end the run, with a text for the user.
using Complain = std::function<void(std::string_view problem)>;

// REQUIRES: find_problems(options) is empty. `interrupted` ends the run early; everything it
// created is still removed.
Result<Outcome> run(const Options& options, const std::atomic<bool>& interrupted,
                    const Complain& complain);

// The rate at which the disk makes small appends durable.
Result<Outcome> run_fdatasync(const Options& options, const std::atomic<bool>& interrupted);

}  // namespace stanchion::load
