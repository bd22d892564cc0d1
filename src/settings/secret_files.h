// Warnings about files with secrets that everybody on the machine can read or change.
#pragma once

#include <string>
#include <vector>

#include "settings/settings.h"

namespace stanchion::settings {

// One sentence for each file: settings that contain secret keys, files of secret keys, and the key
// of TLS. A file below a directory that others may not enter is safe.
std::vector<std::string> exposed_secrets(const Settings& settings);

}  // namespace stanchion::settings
