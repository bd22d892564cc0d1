#include "model/error_names.h"

#include <cstddef>
#include <iterator>

namespace stanchion {
namespace {

constexpr std::string_view kNames[] = {
#define STANCHION_ERROR_NAMED(name, type, query_code, status) #name,
    STANCHION_ERRORS(STANCHION_ERROR_NAMED)
#undef STANCHION_ERROR_NAMED
};
static_assert(std::size(kNames) == kErrorCount);

}  // namespace

std::string_view name_of(ErrorCode code) {
  return kNames[static_cast<std::size_t>(code)];
}

std::optional<ErrorCode> error_of_name(std::string_view name) {
  for (std::size_t i = 0; i < kErrorCount; ++i)
    if (kNames[i] == name) return static_cast<ErrorCode>(i);
  return std::nullopt;
}

}  // namespace stanchion
