#include "store/memory_store.h"

namespace stanchion::store {

Status MemoryStore::commit(const Batch& batch) {
  const std::lock_guard lock(mutex_);
  if (scans_ > 0) {
    // Running scans keep the old map; later ones share the new one.
    entries_ = std::make_shared<Entries>(*entries_);
    scans_ = 0;
  }
  Entries& entries = *entries_;
  for (const KeyRange& range : batch.erased_ranges) {
    if (range.begin >= range.end) continue;
    entries.erase(entries.lower_bound(range.begin), entries.lower_bound(range.end));
  }
  for (const Key& key : batch.erased) entries.erase(std::string(key));
  batch.for_each_put([&](std::string_view key, std::string_view head, const ContentPtr& content) {
    std::string& value = entries[std::string(key)];
    value = head;
    if (content != nullptr) value += content->encoded();
  });
  return {};
}

Status MemoryStore::scan(const KeyRange& range, const EntryVisitor& visit) const {
  std::shared_ptr<Entries> entries;
  {
    const std::lock_guard lock(mutex_);
    entries = entries_;
    ++scans_;
  }
  for (auto entry = entries->lower_bound(range.begin);
       entry != entries->end() && entry->first < range.end; ++entry) {
    if (!visit(entry->first, entry->second)) break;
  }
  const std::lock_guard lock(mutex_);
  if (entries == entries_) --scans_;
  return {};
}

Result<std::optional<std::string>> MemoryStore::get(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_->find(key);
  if (found == entries_->end()) return std::optional<std::string>();
  return std::optional<std::string>(found->second);
}

std::uint64_t MemoryStore::size_on_disk() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t size = 0;
  for (const auto& [key, value] : *entries_) size += key.size() + value.size();
  return size;
}

MemoryStore::Entries MemoryStore::entries() const {
  const std::lock_guard lock(mutex_);
  return *entries_;
}

}  // namespace stanchion::store
