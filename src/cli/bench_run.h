// One run of the load generator: makes its queues, fills them, measures, checks, cleans up.
#pragma once

#include <atomic>

#include "base/result.h"
#include "cli/bench_options.h"
#include "cli/bench_report.h"

namespace stanchion::cli::bench {

// REQUIRES: find_problems(options) is empty. `interrupted` ends the run early, and what it made is
// still cleaned up.
Result<Outcome> run(const Options& options, const std::atomic<bool>& interrupted);

// The rate at which the disk makes small appends durable.
Result<Outcome> run_fdatasync(const Options& options, const std::atomic<bool>& interrupted);

}  // namespace stanchion::cli::bench
