// The accounts of the settings as the ring of keys that callers are checked against.
#pragma once

#include <memory>

#include "cli/settings.h"
#include "service/key_ring.h"

namespace stanchion::cli {

std::shared_ptr<const service::KeyRing> make_key_ring(const Settings& settings);

}  // namespace stanchion::cli
