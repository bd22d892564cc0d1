// Credentials that are asked for over HTTP: of a container's endpoint, of an instance's metadata.
#pragma once

#include <optional>
#include <string_view>

#include "client/credentials.h"
#include "client/settings.h"

namespace stanchion::client {

// nullopt if the environment names no endpoint of a container.
std::optional<Outcome<Credentials>> from_container(const Environment& environment);

// nullopt if there is no metadata service, or it may not be asked.
std::optional<Outcome<Credentials>> from_instance(const Environment& environment);

}  // namespace stanchion::client
