// Repeats a system call that a signal interrupted, and none that failed for another reason.
#pragma once

#include <cerrno>

namespace stanchion::os {

// `call` returns a negative number and sets errno if it fails.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace stanchion::os
