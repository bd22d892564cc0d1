#include "engine/deduplication.h"

#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "model/limits.h"

namespace stanchion::engine {
namespace {

// In the store.
constexpr std::size_t kEntryBytes = 48;

}  // namespace

Hash128 DeduplicationWindow::key_of(DeduplicationScope scope, std::string_view group,
                                    std::string_view deduplication_id) {
  if (scope == DeduplicationScope::kQueue) return xxh3_128(deduplication_id);
  // Ids hold no NUL, so group and id cannot be confused, nor a scoped key with an unscoped one.
  std::string key(group);
  key.push_back('\0');
  key.append(deduplication_id);
  return xxh3_128(key);
}

const DeduplicationWindow::Original* DeduplicationWindow::find(const Hash128& key) const {
  const Index& index = index_of(key);
  const auto found = index.find(key);
  if (found == index.end()) return nullptr;
  const Place& place = found->second;
  return &pages_[place.page - first_page_].entries[place.entry].original;
}

void DeduplicationWindow::remember(const Hash128& key, const Original& original, Instant now) {
  if (pages_.empty() || pages_.back().full()) pages_.emplace_back();
  Page& page = pages_.back();
  const Place place{end_page() - 1, page.entries.size()};
  CHECK(enter(key, place), "a repetition is not sent");
  page.entries.push_back({key, original, now + limits::kDeduplicationWindow});
  first_unsaved_ = std::min(first_unsaved_, place.page);
}

bool DeduplicationWindow::enter(const Hash128& key, const Place& place) {
  if (size_ == kSplitAt && indexes_.size() == 1) {
    const Index whole = std::move(indexes_.front());
    indexes_.assign(kIndexes, {});
    for (const auto& [known, its_place] : whole) index_of(known).emplace(known, its_place);
  }
  const bool added = index_of(key).emplace(key, place).second;
  if (added) ++size_;
  return added;
}

void DeduplicationWindow::expire(Instant now) {
  while (next_deadline() <= now) {
    Page& page = pages_.front();
    index_of(page.entries[page.expired].key).erase(page.entries[page.expired].key);
    ++page.expired;
    --size_;
    if (page.expired < page.entries.size()) continue;
    to_erase_ = to_erase_ || page.saved;
    pages_.pop_front();
    ++first_page_;
  }
  first_unsaved_ = std::max(first_unsaved_, first_page_);
  // The maps never shrink by themselves.
  if (size_ == 0) indexes_.assign(1, {});
}

Instant DeduplicationWindow::next_deadline() const {
  return pages_.empty() ? kNever : pages_.front().entries[pages_.front().expired].expires;
}

Key DeduplicationWindow::Page::key(StockName stock) const {
  return deduplication_key(stock, entries.front().expires, entries.front().original.seq);
}

void DeduplicationWindow::save(Batch& batch, StockName stock) {
  if (to_erase_) {
    KeyRange range = all_deduplication(stock);
    if (!pages_.empty()) range.end = pages_.front().key(stock).view();
    batch.erased_ranges.push_back(std::move(range));
    to_erase_ = false;
  }
  for (; first_unsaved_ < end_page(); ++first_unsaved_) {
    Page& page = pages_[first_unsaved_ - first_page_];
    batch.puts.push_back({page.key(stock), page.bytes(), nullptr});
    page.saved = true;
  }
}

std::string DeduplicationWindow::Page::bytes() const {
  std::string bytes;
  bytes.reserve(entries.size() * kEntryBytes);
  ByteWriter writer(bytes);
  for (const Entry& entry : entries) {
    writer.i64(to_millis(entry.expires));
    writer.u64(entry.key.high);
    writer.u64(entry.key.low);
    writer.raw(as_text(entry.original.id.bytes));
    writer.u64(entry.original.seq.value());
  }
  return bytes;
}

Status DeduplicationWindow::load(std::string_view value, Instant at) {
  const auto damaged = fail("the store is damaged: deduplication ids make no sense");
  if (value.empty() || value.size() % kEntryBytes != 0 || value.size() > kPageSize * kEntryBytes)
    return damaged;
  Page page;
  page.saved = true;
  for (ByteReader reader(value); !reader.at_end();) {
    Entry entry;
    entry.expires = from_millis(reader.i64());
    entry.key.high = reader.u64();
    entry.key.low = reader.u64();
    std::ranges::copy(reader.raw(entry.original.id.bytes.size()), entry.original.id.bytes.begin());
    entry.original.seq = Seq(reader.u64());
    const Place place{end_page(), page.entries.size()};
    if (entry.expires <= at) {
      // Its key may have been remembered anew since.
      if (page.expired++ != place.entry) return damaged;
    } else if (!enter(entry.key, place)) {
      return damaged;
    }
    page.entries.push_back(entry);
  }
  if (page.expired == page.entries.size()) {
    to_erase_ = true;
    return {};
  }
  pages_.push_back(std::move(page));
  first_unsaved_ = end_page();
  return {};
}

}  // namespace stanchion::engine
