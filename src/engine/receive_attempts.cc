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
  return found == attempts_.end() ? nullptr : &found->second;
}

void ReceiveAttempts::remember(const std::string& id, ReceiveAttempt attempt) {
  settle(id);
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
      settle(found->first);
      unsaved_.insert(found->first);
      attempts_.erase(found);
    }
    order_.pop_front();
  }
}

void ReceiveAttempts::begin_save(Batch& batch, StockName stock) {
  CHECK(pending_.empty(), "one checkpoint at a time");
  pending_.swap(unsaved_);
  batch_ = &batch;
  stock_ = stock;
}

std::size_t ReceiveAttempts::save_some(std::size_t count) {
  std::size_t looked_at = 0;
  for (; !pending_.empty() && looked_at < count; ++looked_at) save(pending_.begin());
  return looked_at;
}

void ReceiveAttempts::save(std::set<std::string>::iterator pending) {
  const std::string id = std::move(pending_.extract(pending).value());
  const auto found = attempts_.find(id);
  if (found == attempts_.end()) {
    batch_->erased.push_back(attempt_key(stock_, id));
    return;
  }
  CHECK(is_possible(found->second), "what is written of an attempt can be read");
  Put put{attempt_key(stock_, id), {}, nullptr};
  ByteWriter writer(put.head);
  writer.text(id);
  writer.i64(to_millis(found->second.expires));
  writer.varint(found->second.items.size());
  for (const ReceiveAttempt::Item& item : found->second.items) {
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
  if (!reader.ok() || !reader.at_end() || !possible || attempt_key(stock, id).view() != key ||
      attempts_.contains(id))
    return makes_no_sense("a receive attempt");
  // Attempts are loaded in any order; they are few.
  const auto place = std::ranges::upper_bound(order_, attempt.expires, {}, &Entry::expires);
  order_.insert(place, {attempt.expires, id});
  attempts_.insert_or_assign(id, std::move(attempt));
  return {};
}

}  // namespace stanchion::engine
