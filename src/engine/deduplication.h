// The FIFO deduplication window: what was sent in the last five minutes, kept apart from the
// messages, because a message that was received and deleted still makes its repetitions disappear.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>
#include <optional>
#include <string_view>

#include "base/digest.h"
#include "base/result.h"
#include "base/time.h"
#include "engine/store_keys.h"
#include "model/batch.h"
#include "model/ids.h"
#include "model/queue_attributes.h"

namespace stanchion::engine {

class DeduplicationWindow {
 public:
  struct Original {
    MessageId id;
    Seq seq;
  };

  // The key under which a message is remembered. 128 bits stand for the ids themselves: a chance
  // collision is out of the question, and a client that seeks one only harms its own messages.
  static Hash128 key_of(DeduplicationScope scope, std::string_view group,
                        std::string_view deduplication_id);

  const Original* find(const Hash128& key) const;
  void remember(const Hash128& key, const Original& original, Instant now);
  void expire(Instant now);

  // Writes what differs from the last checkpoint, and reads one entry back, in order of expiry.
  void save(Batch& batch, StockName stock);
  Status load(const Hash128& key, Instant expires, std::string_view value);

  Instant next_deadline() const { return order_.empty() ? kNever : order_.front().expires; }
  std::size_t size() const { return originals_.size(); }

  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (const Entry& entry : order_) visit(entry.key, originals_.at(entry.key), entry.expires);
  }

 private:
  struct Entry {
    Hash128 key;
    Instant expires;
  };
  struct TakeLow {
    using is_avalanching = void;
    std::size_t operator()(const Hash128& key) const { return key.low; }
  };

  boost::unordered_flat_map<Hash128, Original, TakeLow> originals_;
  std::deque<Entry> order_;  // Every entry lives equally long, so this is also the order of expiry.
  std::size_t saved_ = 0;    // The first so many of order_ are in the store.
  std::optional<Instant> expired_;  // The latest expiry of an entry that is still in the store.
};

}  // namespace stanchion::engine
