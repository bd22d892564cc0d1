// What looks wrong about a policy that AWS accepts all the same: parts of it that can never take
// effect, or whose effect does not depend on what they name. Sentences for whoever wrote it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"

namespace stanchion::policy {

// Of a policy for this queue; empty if nothing looks wrong.
std::vector<std::string> warnings_about(const Policy& policy, std::string_view queue_arn);

// In one sentence: a policy of twenty statements has a few examples. Empty if there are none.
std::string summary_of(std::vector<std::string> warnings);

}  // namespace stanchion::policy
