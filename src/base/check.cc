#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace stanchion {

void check_failed(const char* expression, std::string_view detail, std::source_location where) {
  std::fprintf(stderr, "stanchion: check failed: %s (%.*s) in %s at %s:%u\n", expression,
               static_cast<int>(detail.size()), detail.data(), where.function_name(),
               where.file_name(), where.line());
  std::abort();
}

}  // namespace stanchion
