// The owner of a store: a file in its folder names the data directory and the shard. Stores that
// were exchanged, or copied from elsewhere, are noticed before anything is read from them.
//
//   SHARD:  a text that the owner of the store chooses, lines "name value"
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "os/file.h"

namespace stanchion::store {

inline constexpr std::string_view kIdentityName = "SHARD";

// Empty if there is none.
Result<std::string> read_identity(os::Directory& store);

// Written to a temporary file and renamed; durable on return.
Status write_identity(os::Directory& store, std::string_view identity);

// Fails if the store is another shard's, or lost the file that says whose it is.
Status check_identity(os::Directory& store, std::string_view identity);

}  // namespace stanchion::store
