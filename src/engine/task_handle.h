// The handle of a move task, by which clients cancel it. It contains what the task is found by.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/ids.h"

namespace stanchion::engine {

struct TaskHandle {
  TaskId task;
  QueueRef source;
};

std::string format_task_handle(const TaskId& task, const std::string& source_arn);

// nullopt for anything that is not a handle.
std::optional<TaskHandle> parse_task_handle(std::string_view handle);

}  // namespace stanchion::engine
