// The machine's own directories and files, by POSIX calls on descriptors.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/file.h"

namespace stanchion::os {

// Opens `path`, creating it (and missing parents, durably) if it does not exist.
Result<std::unique_ptr<Directory>> open_real_directory(const std::string& path);

// Opens `path` only if it exists: for programs that must not change anything.
Result<std::unique_ptr<Directory>> open_existing_directory(const std::string& path);

// Whether something has this name. It is a failure if that cannot be found out: whoever took that
// for a no would lose data that cannot be read at the moment.
Result<bool> exists(const std::string& path);

// Exchanges two names on one file system, atomically. Durable once their directories are synced.
Status exchange(const std::string& a, const std::string& b);

}  // namespace stanchion::os
