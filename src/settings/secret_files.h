// Files with secrets that everybody on the machine can get at.
#pragma once

#include <string>
#include <vector>

#include "settings/settings.h"

namespace stanchion::settings {

// One sentence for each file: the settings with secret keys in them, files of secret keys, and the
// key of TLS. A file below a directory that others may not enter is not theirs to read.
std::vector<std::string> exposed_secrets(const Settings& settings);

}  // namespace stanchion::settings
