// Converts the accounts of the settings to the key ring that callers are checked against.
#pragma once

#include <memory>

#include "service/key_ring.h"
#include "settings/settings.h"

namespace stanchion::settings {

std::shared_ptr<const service::KeyRing> make_key_ring(const Settings& settings);

}  // namespace stanchion::settings
