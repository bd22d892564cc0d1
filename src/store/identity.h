// Whose store it is: a file in its folder that names data directory and shard. Stores that were
// exchanged, or brought from elsewhere, are noticed before anything is read from them.
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

// Written aside and renamed; durable when it returns.
Status write_identity(os::Directory& store, std::string_view identity);

// Fails if the store is another's, or was someone's and does not say whose.
Status check_identity(os::Directory& store, std::string_view identity);

}  // namespace stanchion::store
