// Converts an ElasticMQ configuration to a stanchion.toml.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace stanchion::settings {

// The TOML text. Settings without an equivalent become comments in their place.
Result<std::string> import_elasticmq(std::string_view text);

}  // namespace stanchion::settings
