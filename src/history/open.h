// Where a server keeps its history: a store of its own in the data directory, which can be lost
// without harm to any queue.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "history/history.h"

namespace stanchion::history {

// At `path`, made if there is nothing; in memory if it is empty. See Space for `bytes_max`. What cannot
// be made as a whole is removed again.
Result<std::unique_ptr<History>> open_history(const std::string& path, Instant now,
                                              std::size_t bytes_max);

// Whether a failure says nothing about the history: the machine has no room or no file descriptors
// left, and a later try may succeed.
bool is_passing(const Failure& failure);

// Renames a history that cannot be used, so that another one can begin at its place, and returns
// its new name. One that was set aside earlier is removed: there is never more than one. Without
// anything at `path`, it fails and removes nothing.
Result<std::string> set_aside(const std::string& path);

}  // namespace stanchion::history
