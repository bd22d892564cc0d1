// Shell commands that handle messages. One process a message: its input is the body, and its
// environment says the rest.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/fd.h"
#include "worker/task.h"

namespace stanchion::runner {

// How long a process has after SIGTERM before it gets SIGKILL.
inline constexpr std::chrono::seconds kKillAfter(5);

struct Child {
  pid_t id = -1;  // Also of its process group.
  os::Fd handle;  // Can be read once the process has ended.

  void signal_group(int signal) const;
};

// Starts `/bin/sh -c command` with this environment besides our own, in a process group of its own,
// without the signals that we block or ignore. `output` -1: where ours goes.
Result<Child> spawn_shell(const std::string& command, std::vector<std::string> environment,
                          int input, int output = -1);

struct ChildEnd {
  int wait_status = 0;     // Of waitpid().
  int exit_status = 0;     // 128 + N if signal N ended it, as in a shell.
  bool timed_out = false;  // It was killed because it took too long.
};

// Runs the command and waits for it. A child that outlives the timeout (0: none), or whose message
// is lost, is sent SIGTERM with all processes of its group, and those that are there after kKillAfter
// get SIGKILL. It returns when none of them is left.
Result<ChildEnd> run_child(const std::string& command, const worker::TaskInformation& task,
                           std::chrono::seconds timeout);

// "ended with 3", "was ended by signal 9 (Killed)".
std::string end_in_words(int wait_status);

// "SQS_MESSAGE_ID=…" and the like.
std::vector<std::string> environment_of(const worker::TaskInformation& task);

}  // namespace stanchion::runner
