#include "os/file.h"

#include <cerrno>

namespace stanchion::os {

bool is_out_of_space(const Failure& failure) {
  switch (failure.os_error) {
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
      return true;
    default:
      return false;
  }
}

bool is_plain_name(std::string_view name) {
  constexpr std::string_view kForbidden("/\0", 2);
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(kForbidden) == std::string_view::npos;
}

}  // namespace stanchion::os
