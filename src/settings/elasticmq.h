// An ElasticMQ configuration as stanchion.toml.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace stanchion::settings {

// The TOML text. What has no equivalent is said in comments where it would have stood.
Result<std::string> import_elasticmq(std::string_view text);

}  // namespace stanchion::settings
