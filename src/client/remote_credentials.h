// Credentials fetched over HTTP: from a container's endpoint, or from an instance's metadata
// service.
#pragma once

#include <optional>
#include <string_view>

#include "client/credentials.h"
#include "client/settings.h"

namespace stanchion::client {

// nullopt if the environment names no container endpoint.
std::optional<Outcome<Credentials>> from_container(const Environment& environment);

// nullopt if there is no metadata service, or it is disabled.
std::optional<Outcome<Credentials>> from_instance(const Environment& environment);

}  // namespace stanchion::client
