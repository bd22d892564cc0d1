// Checks that the manifest still holds every acknowledged commit.
//
// RocksDB mistakes a damaged record of its manifest for the torn end, forgets everything after it,
// and then removes the tables that nothing refers to any more. So after each commit the length of
// the manifest is noted in a separate file, and before a store is opened the manifest must be
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
