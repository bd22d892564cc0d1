#include "os/file.h"

#include <cerrno>

namespace stanchion::os {

bool is_out_of_space(const Failure& failure) {
  return failure.os_error == ENOSPC || failure.os_error == EDQUOT;
}

bool is_plain_name(std::string_view name) {
  constexpr std::string_view kForbidden("/\0", 2);
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(kForbidden) == std::string_view::npos;
}

}  // namespace stanchion::os
