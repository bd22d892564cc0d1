// Files with credentials and keys: small, and read as a whole.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/result.h"

namespace stanchion::client {

// Nothing if there is no such file. A failure names the file. Never waits: a named pipe, which has an
// end only if somebody writes to it, is refused.
Result<std::optional<std::string>> read_small_file(const std::string& path, std::size_t size_max);

}  // namespace stanchion::client
