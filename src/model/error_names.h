// The names that errors have in this program. By them nodes of different releases understand each
// other: numbers change when an error is added to the table.
#pragma once

#include <optional>
#include <string_view>

#include "model/error.h"

namespace stanchion {

std::string_view name_of(ErrorCode code);
// nullopt if there is none of this name.
std::optional<ErrorCode> error_of_name(std::string_view name);

}  // namespace stanchion
