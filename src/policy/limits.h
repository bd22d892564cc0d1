// Upper bounds on the parts of a policy, in addition to those of model/limits.h.
#pragma once

#include <cstddef>

namespace stanchion::policy {

inline constexpr std::size_t kPolicyPrincipalsMax = 50;
inline constexpr std::size_t kPolicyConditionsMax = 10;
inline constexpr std::size_t kPolicyStepsMax = 2'000'000;  // Some ten milliseconds.
inline constexpr std::size_t kPolicyDepthMax = 8;

}  // namespace stanchion::policy
