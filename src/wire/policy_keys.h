// The keys that conditions of policies may ask for. A condition on a key that is never filled looks
// strict and is not: a Deny on it denies nobody. So only those are taken of which the server knows
// what AWS would have found, a value or that there is none.
#pragma once

#include <string_view>

namespace stanchion::wire {

// `key` in lower case.
bool is_condition_key(std::string_view key);

}  // namespace stanchion::wire
