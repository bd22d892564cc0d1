#include "engine/receive_attempts.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "engine/store/dates.h"

namespace stanchion::engine {

const ReceiveAttempt* ReceiveAttempts::find(std::string_view id) const {
  const auto found = attempts_.find(id);
  return found == attempts_.end() ? nullptr : &found->second;
}

void ReceiveAttempts::remember(const std::string& id, ReceiveAttempt attempt) {
  const auto found = attempts_.find(id);
  if (found == attempts_.end() || found->second.expires != attempt.expires)
    order_.push_back({attempt.expires, id});
  attempts_.insert_or_assign(id, std::move(attempt));
  unsaved_.insert(id);
}

void ReceiveAttempts::expire(Instant now) {
  while (!order_.empty() && order_.front().expires <= now) {
    const auto found = attempts_.find(order_.front().id);
    if (found != attempts_.end() && found->second.expires <= now) {
      unsaved_.insert(found->first);
      attempts_.erase(found);
    }
    order_.pop_front();
  }
}

void ReceiveAttempts::save(Batch& batch, StockName stock) {
  for (const std::string& id : std::exchange(unsaved_, {})) {
    const auto found = attempts_.find(id);
    if (found == attempts_.end()) {
      batch.erased.push_back(attempt_key(stock, id));
      continue;
    }
    Put put{attempt_key(stock, id), {}, nullptr};
    ByteWriter writer(put.head);
    writer.text(id);
    writer.i64(to_millis(found->second.expires));
    writer.varint(found->second.items.size());
    for (const ReceiveAttempt::Item& item : found->second.items) {
      writer.u64(item.seq.value());
      writer.u32(item.receive);
      writer.i64(to_millis(item.visible_again));
    }
    batch.puts.push_back(std::move(put));
  }
}

Status ReceiveAttempts::load(std::string_view value) {
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
  const bool dated =
      is_date(attempt.expires) &&
      std::ranges::all_of(attempt.items, is_date, &ReceiveAttempt::Item::visible_again);
  if (!reader.ok() || !dated || attempts_.contains(id))
    return fail("the store is damaged: a receive attempt makes no sense");
  // Attempts are loaded in any order; they are few.
  const auto place = std::ranges::upper_bound(order_, attempt.expires, {}, &Entry::expires);
  order_.insert(place, {attempt.expires, id});
  attempts_.insert_or_assign(id, std::move(attempt));
  return {};
}

}  // namespace stanchion::engine
