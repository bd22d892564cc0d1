// Formats values as TOML, for the program's output.
#pragma once

#include <string>
#include <string_view>

#include "settings/settings.h"

namespace stanchion::settings {

// A basic string with its quotes.
std::string toml_string(std::string_view text);

// A key: bare where that is possible, else quoted.
std::string toml_key(std::string_view text);

// An attribute's value: numbers and booleans bare, everything else as a string.
std::string toml_scalar(std::string_view text);

// One [[queue]] with its tables.
std::string to_toml(const QueueSettings& queue);

// All settings, in a form that can be read again, except that secrets are hidden: the placeholder
// is refused until the secret is put back.
std::string to_toml(Settings settings);

}  // namespace stanchion::settings
