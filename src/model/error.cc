#include "model/error.h"

#include <array>

namespace stanchion {
namespace {

#define STANCHION_ERROR_INFO(name, type, query_code, status) ErrorInfo{type, query_code, status},
constexpr std::array kErrors{STANCHION_ERRORS(STANCHION_ERROR_INFO)};
#undef STANCHION_ERROR_INFO

}  // namespace

const ErrorInfo& info_of(ErrorCode code) {
  return kErrors[static_cast<std::size_t>(code)];
}

}  // namespace stanchion
