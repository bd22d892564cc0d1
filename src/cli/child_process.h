// A shell command that handles one message: its input is the body, its environment says the rest.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "worker/task.h"

namespace stanchion::cli {

struct ChildEnd {
  int exit_status = 0;     // 128 + N if signal N ended it, as in a shell.
  bool timed_out = false;  // It was killed because it took too long.
};

// Runs the command and waits for it. A child that outlives the timeout (0: none), or whose message
// is lost, is sent SIGTERM with all processes of its group, and SIGKILL five seconds later.
Result<ChildEnd> run_child(const std::string& command, const worker::TaskInformation& task,
                           std::chrono::seconds timeout);

// "SQS_MESSAGE_ID=…" and the like.
std::vector<std::string> environment_of(const worker::TaskInformation& task);

}  // namespace stanchion::cli
