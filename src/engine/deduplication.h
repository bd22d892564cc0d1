// The FIFO deduplication window: what was sent in the last five minutes, kept apart from the
// messages, because a message that was received and deleted still makes its repetitions disappear.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>
#include <string_view>

#include "base/digest.h"
#include "base/time.h"
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
  void clear();

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
};

}  // namespace stanchion::engine
