#include "engine/deduplication.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "model/dates.h"
#include "model/limits.h"

namespace stanchion::engine {
namespace {

// In the store.
constexpr std::size_t kEntryBytes = 48;

// So many ids take as long to write as one message.
constexpr std::size_t kIdsPerLook = 16;

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
  const auto place = index_of(key).find(
      hash_of(key), [&](std::uint32_t candidate) { return at(candidate).key == key; });
  return place ? &at(*place).original : nullptr;
}

void DeduplicationWindow::remember(const Hash128& key, const Original& original, Instant now) {
  CHECK(find(key) == nullptr, "a repetition is not sent");
  if (pages_.empty() || pages_.back().full()) {
    const bool busy = !pages_.empty();
    pages_.emplace_back();
    if (busy) pages_.back().entries.reserve(kPageSize);
  }
  std::vector<Entry>& entries = pages_.back().entries;
  CHECK(entries.empty() || entries.back().expires <= now + limits::kDeduplicationWindow,
        "ids are remembered in order of their expiry");
  enter(key, place_of(end_page() - 1, entries.size()));
  entries.push_back({key, original, now + limits::kDeduplicationWindow});
  first_unsaved_ = std::min(first_unsaved_, end_page() - 1);
}

void DeduplicationWindow::enter(const Hash128& key, std::uint32_t place) {
  if (size_ == kSplitAt && indexes_.size() == 1) split_index();
  index_of(key).insert(hash_of(key), place);
  ++size_;
}

void DeduplicationWindow::split_index() {
  const HashPlaces whole = std::move(indexes_.front());
  indexes_.assign(kIndexes, {});
  whole.for_each([&](std::uint32_t hash, std::uint32_t place) {
    index_of(at(place).key).insert(hash, place);
  });
}

void DeduplicationWindow::expire(Instant now) {
  while (next_deadline() <= now) {
    Page& page = pages_.front();
    const Hash128& key = page.entries[page.expired].key;
    index_of(key).erase(hash_of(key), place_of(first_page_, page.expired));
    ++page.expired;
    --size_;
    if (page.expired < page.entries.size()) continue;
    if (has_pending() && saving_.next == first_page_) save_next_page();
    to_erase_ = to_erase_ || page.saved;
    pages_.pop_front();
    ++first_page_;
  }
  first_unsaved_ = std::max(first_unsaved_, first_page_);
  // The tables never shrink by themselves.
  if (size_ == 0) indexes_.assign(1, {});
}

Instant DeduplicationWindow::next_deadline() const {
  return pages_.empty() ? kNever : pages_.front().entries[pages_.front().expired].expires;
}

Key DeduplicationWindow::Page::key(StockName stock) const {
  return deduplication_key(stock, entries.front().expires, entries.front().original.seq);
}

void DeduplicationWindow::begin_save(Batch& batch, StockName stock) {
  CHECK(!has_pending(), "one checkpoint at a time");
  if (to_erase_) {
    KeyRange range = all_deduplication(stock);
    if (!pages_.empty()) range.end = pages_.front().key(stock).view();
    batch.erased_ranges.push_back(std::move(range));
    to_erase_ = false;
  }
  saving_ = {&batch, stock, first_unsaved_, end_page(),
             pages_.empty() ? 0 : pages_.back().entries.size()};
  first_unsaved_ = end_page();
}

std::size_t DeduplicationWindow::save_next_page() {
  Page& page = pages_[saving_.next - first_page_];
  const bool is_last = ++saving_.next == saving_.end;
  const std::size_t count = is_last ? saving_.last_entries : page.entries.size();
  saving_.batch->puts.push_back({page.key(saving_.stock), page.bytes(count), nullptr});
  page.saved = true;
  return 1 + count / kIdsPerLook;
}

std::size_t DeduplicationWindow::save_some(std::size_t count) {
  std::size_t looked_at = 0;
  while (has_pending() && looked_at < count) looked_at += save_next_page();
  return looked_at;
}

std::string DeduplicationWindow::Page::bytes(std::size_t count) const {
  std::string bytes;
  bytes.reserve(count * kEntryBytes);
  ByteWriter writer(bytes);
  for (const Entry& entry : std::span(entries).first(count)) {
    writer.i64(to_millis(entry.expires));
    writer.u64(entry.key.high);
    writer.u64(entry.key.low);
    writer.raw(as_text(entry.original.id.bytes));
    writer.u64(entry.original.seq.value());
  }
  return bytes;
}

Status DeduplicationWindow::load(StockName stock, std::string_view key, std::string_view value,
                                 Seq end, Instant at) {
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
    // In order of expiry.
    const Page* before = !page.entries.empty() ? &page : pages_.empty() ? nullptr : &pages_.back();
    if (!is_date(entry.expires) || entry.original.seq >= end ||
        (before != nullptr && entry.expires < before->entries.back().expires))
      return damaged;
    if (entry.expires <= at) ++page.expired;
    page.entries.push_back(entry);
  }
  if (page.key(stock).view() != key) return damaged;
  if (page.expired == page.entries.size()) {
    to_erase_ = true;
    return {};
  }
  pages_.push_back(std::move(page));
  const std::vector<Entry>& entries = pages_.back().entries;
  // The key of an expired entry may have been remembered anew since.
  for (std::size_t i = pages_.back().expired; i < entries.size(); ++i) {
    if (find(entries[i].key) != nullptr) return damaged;
    enter(entries[i].key, place_of(end_page() - 1, i));
  }
  first_unsaved_ = end_page();
  return {};
}

}  // namespace stanchion::engine
