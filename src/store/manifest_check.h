// Whether the manifest still holds every commit that was acknowledged.
//
// RocksDB takes a damaged record of its manifest for the torn end of it, forgets all that comes
// behind, and then removes the tables that nobody knows any more. So after each commit the length
// of the manifest is noted in a file of its own, and before a store is opened the manifest must be
// readable at least that far.
//
//   COMMITTED:  "MANIFEST-000005 1234 <XXH3-64 of what is before it, 16 hex digits>\n", padded with
//               spaces to 80 bytes, written in place
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/file.h"

namespace stanchion::store {

inline constexpr std::string_view kNoteName = "COMMITTED";

// Durable when it returns.
Status note_manifest(os::Directory& directory, const std::string& manifest, std::uint64_t size);

// Passes if there is no note, or one that was torn by a crash.
Status check_manifest(os::Directory& directory);

}  // namespace stanchion::store
