// A store that keeps everything in memory and loses it with the process: for the history of a server
// that keeps nothing on disk, for tests, and as the obviously correct twin with which RocksStore is
// compared.
//
// Any thread may call anything; scans see the entries as they were when the scan began.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "store/store.h"

namespace stanchion::store {

class MemoryStore : public Store {
 public:
  using Entries = std::map<std::string, std::string, std::less<>>;

  MemoryStore() = default;
  explicit MemoryStore(Entries entries) : entries_(std::make_shared<Entries>(std::move(entries))) {}

  Status commit(const Batch& batch) override;
  Status scan(const KeyRange& range, const EntryVisitor& visit) const override;
  Result<std::optional<std::string>> get(std::string_view key) const override;

  // Bytes of all keys and values.
  std::uint64_t size_on_disk() const override;

  // A copy of everything, to begin another store from.
  Entries entries() const;

 private:
  mutable std::mutex mutex_;
  // A commit changes the map in place unless a scan is reading it.
  mutable int scans_ = 0;
  std::shared_ptr<Entries> entries_ = std::make_shared<Entries>();
};

}  // namespace stanchion::store
