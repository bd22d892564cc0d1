// Reads stanchion.toml strictly: an unknown key, or a value of the wrong type, is a problem,
// reported with file, line and name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "settings/settings.h"

namespace stanchion::settings {

// Adds the settings in the TOML text to `settings`; problems call the file `file`. Returns the
// problems; if there are any, the settings must not be used.
std::vector<std::string> read_settings_text(std::string_view text, const std::string& file,
                                            Settings& settings);

// The same, from the file itself.
std::vector<std::string> read_settings_file(const std::string& file, Settings& settings);

// The text of a small file.
Result<std::string> read_small_file(const std::string& path, std::size_t size_max);

}  // namespace stanchion::settings
