#include "engine/deduplication.h"

#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "model/limits.h"

namespace stanchion::engine {

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
  const auto found = originals_.find(key);
  return found == originals_.end() ? nullptr : &found->second;
}

void DeduplicationWindow::remember(const Hash128& key, const Original& original, Instant now) {
  const bool added = originals_.emplace(key, original).second;
  CHECK(added, "a repetition is not sent");
  order_.push_back({key, now + limits::kDeduplicationWindow});
}

void DeduplicationWindow::expire(Instant now) {
  while (!order_.empty() && order_.front().expires <= now) {
    if (saved_ > 0) {
      --saved_;
      expired_ = order_.front().expires;
    }
    originals_.erase(order_.front().key);
    order_.pop_front();
  }
}

void DeduplicationWindow::save(Batch& batch, StockName stock) {
  if (expired_) {
    batch.erased_ranges.push_back(deduplication_before(stock, *expired_ + Duration(1)));
    expired_.reset();
  }
  for (; saved_ < order_.size(); ++saved_) {
    const Entry& entry = order_[saved_];
    const Original& original = originals_.at(entry.key);
    Put put{deduplication_key(stock, entry.expires, entry.key), {}, nullptr};
    ByteWriter writer(put.head);
    writer.raw(as_text(original.id.bytes));
    writer.u64(original.seq.value());
    batch.puts.push_back(std::move(put));
  }
}

Status DeduplicationWindow::load(const Hash128& key, Instant expires, std::string_view value) {
  ByteReader reader(value);
  Original original;
  const std::string_view id = reader.raw(original.id.bytes.size());
  original.seq = Seq(reader.u64());
  if (!reader.ok()) return fail("the store is damaged: a deduplication id makes no sense");
  std::ranges::copy(id, original.id.bytes.begin());
  originals_.emplace(key, original);
  order_.push_back({key, expires});
  ++saved_;
  return {};
}

}  // namespace stanchion::engine
