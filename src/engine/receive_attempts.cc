#include "engine/receive_attempts.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "engine/store/sense.h"
#include "model/dates.h"
#include "model/limits.h"

namespace stanchion::engine {
namespace {

// The nodes of an attempt in three trees, and the allocator's overhead.
constexpr std::size_t kEntryBytes = 240;

// Before it is written and after it was read.
bool is_possible(const ReceiveAttempt& attempt) {
  return attempt.items.size() <= limits::kReceiveMessagesMax &&
         std::ranges::all_of(attempt.items, [](const ReceiveAttempt::Item& item) {
           return item.receive > 0 && is_date(item.visible_again);
         });
}

}  // namespace

const ReceiveAttempt* ReceiveAttempts::find(std::string_view id) const {
  const auto found = attempts_.find(id);
  return found == attempts_.end() ? nullptr : &found->second.attempt;
}

std::size_t ReceiveAttempts::bytes_of(const Attempts::value_type& entry) {
  return kEntryBytes + sizeof(Attempts::value_type) + entry.first.size() +
         entry.second.attempt.items.capacity() * sizeof(ReceiveAttempt::Item);
}

void ReceiveAttempts::remember(const std::string& id, ReceiveAttempt attempt) {
  const auto [at, is_new] = attempts_.try_emplace(id);
  Kept& kept = at->second;
  if (!is_new) {
    settle(at);
    bytes_ -= bytes_of(*at);
    by_expiry_.erase({kept.attempt.expires, at->first});
  } else if (!erased_.empty()) {
    kept.saved = erased_.erase(xxh3_128(id)) > 0;
  }
  kept.attempt = std::move(attempt);
  bytes_ += bytes_of(*at);
  by_expiry_.emplace(kept.attempt.expires, at->first);
  unsaved_.insert(at->first);
}

void ReceiveAttempts::forget(Attempts::iterator at) {
  settle(at);
  if (at->second.saved) erased_.insert(xxh3_128(at->first));
  unsaved_.erase(at->first);
  by_expiry_.erase({at->second.attempt.expires, at->first});
  bytes_ -= bytes_of(*at);
  attempts_.erase(at);
}

void ReceiveAttempts::expire(Instant now) {
  while (!by_expiry_.empty() && by_expiry_.begin()->first <= now)
    forget(attempts_.find(by_expiry_.begin()->second));
}

void ReceiveAttempts::begin_save(Batch& batch, StockName stock) {
  CHECK(!has_pending(), "one checkpoint at a time");
  pending_.swap(unsaved_);
  pending_erased_.swap(erased_);
  batch_ = &batch;
  stock_ = stock;
}

std::size_t ReceiveAttempts::save_some(std::size_t count) {
  std::size_t looked_at = 0;
  for (; !pending_erased_.empty() && looked_at < count; ++looked_at) {
    batch_->erased.push_back(attempt_key(stock_, *pending_erased_.begin()));
    pending_erased_.erase(pending_erased_.begin());
  }
  for (; !pending_.empty() && looked_at < count; ++looked_at)
    settle(attempts_.find(*pending_.begin()));
  return looked_at;
}

void ReceiveAttempts::write(Attempts::iterator at) {
  at->second.saved = true;
  const ReceiveAttempt& attempt = at->second.attempt;
  CHECK(is_possible(attempt), "what is written of an attempt can be read");
  Put put{attempt_key(stock_, xxh3_128(at->first)), {}, nullptr};
  ByteWriter writer(put.head);
  writer.text(at->first);
  writer.i64(to_millis(attempt.expires));
  writer.varint(attempt.items.size());
  for (const ReceiveAttempt::Item& item : attempt.items) {
    writer.u64(item.seq.value());
    writer.u32(item.receive);
    writer.i64(to_millis(item.visible_again));
  }
  batch_->puts.push_back(std::move(put));
}

Status ReceiveAttempts::load(StockName stock, std::string_view key, std::string_view value,
                             Seq end) {
  ByteReader reader(value);
  const std::string id(reader.text());
  ReceiveAttempt attempt;
  attempt.expires = from_millis(reader.i64());
  for (std::size_t left = reader.count(); left > 0; --left) {
    ReceiveAttempt::Item& item = attempt.items.emplace_back();
    item.seq = Seq(reader.u64());
    item.receive = reader.u32();
    item.visible_again = from_millis(reader.i64());
  }
  const bool possible =
      is_date(attempt.expires) && is_possible(attempt) &&
      std::ranges::all_of(attempt.items, [&](const auto& item) { return item.seq < end; });
  if (!reader.ok() || !reader.at_end() || !possible ||
      attempt_key(stock, xxh3_128(id)).view() != key || attempts_.contains(id))
    return makes_no_sense("a receive attempt");
  remember(id, std::move(attempt));
  unsaved_.erase(id);
  attempts_.find(id)->second.saved = true;
  return {};
}

}  // namespace stanchion::engine
