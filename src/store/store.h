// What a shard keeps on disk besides its journal: an ordered map of bytes that changes by whole
// checkpoints. The store does not interpret keys.
//
//   journal ─▶ … ─▶ checkpoint: one Batch ─▶ commit ─▶ durable, and the journal may be trimmed
//   cold messages ◀── scan
//
// Implementations: RocksStore (in a server), SimStore (in the simulation).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/batch.h"

namespace stanchion::store {

// Called for each entry, in order of key; false ends the scan.
using EntryVisitor = std::function<bool(std::string_view key, std::string_view value)>;

class Store {
 public:
  virtual ~Store() = default;

  // Applies all of the batch or nothing, durably. May take seconds. A failure with os_error ENOSPC
  // has changed nothing, and the same batch may be tried again; after any other failure the process
  // must end. One thread at a time; scans on other threads go on meanwhile.
  virtual Status commit(const Batch& batch) = 0;

  // Visits the entries as the last commit left them that had ended when the scan began. Fails if
  // something in the range is damaged. Any thread.
  virtual Status scan(const KeyRange& range, const EntryVisitor& visit) const = 0;

  // Any thread.
  virtual Result<std::optional<std::string>> get(std::string_view key) const = 0;

  // Bytes of all files. Any thread.
  virtual std::uint64_t size_on_disk() const = 0;

  // Bytes of free space, as far as it is known. Any thread; does not block.
  virtual std::uint64_t free_space() const { return UINT64_MAX; }
};

}  // namespace stanchion::store
