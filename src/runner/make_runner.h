// The runner that the command line of `stanchion work` asks for.
#pragma once

#include <memory>

#include "base/result.h"
#include "runner/job_status.h"
#include "runner/runner.h"
#include "runner/settings.h"
#include "runner/task_seal.h"

namespace stanchion::runner {

// REQUIRES: the settings name exactly one way. What is given outlives the runner. `periodic`: the
// tasks of --cron, or null.
Result<std::unique_ptr<Runner>> make_runner(const WorkSettings& settings,
                                            const SealedTasks* periodic, JobStatus& job_status);

}  // namespace stanchion::runner
