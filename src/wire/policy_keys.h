// The keys that conditions of policies may use. A condition on a key that is never filled in looks
// strict and is not: a Deny on it denies nobody. So a key is accepted only if the server knows what
// AWS would have found: a value, or that there is none.
#pragma once

#include <string_view>

namespace stanchion::wire {

// `key` in lower case.
bool is_condition_key(std::string_view key);

}  // namespace stanchion::wire
