// AddPermission and RemovePermission: edits of the policy that a queue keeps as JSON text.
#pragma once

#include <string>

#include "model/error.h"
#include "model/request.h"

namespace stanchion::engine {

class Queue;

// The queue's policy with the statement added or removed; empty if no statement is left.
Answer<std::string> policy_with_permission(const Queue& queue, const AddPermission& request);
Answer<std::string> policy_without_permission(const Queue& queue, const RemovePermission& request);

}  // namespace stanchion::engine
