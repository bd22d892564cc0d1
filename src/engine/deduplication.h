// The FIFO deduplication window: the ids sent in the last five minutes. They are kept apart from
// the messages, because a message that was received and deleted still suppresses its repetitions.
//
// There may be millions of ids, as many arrive each second as messages, and no request may stall
// for the sake of the index. So ids are kept in pages, in order of expiry, and a page is also the
// unit that is written to the store; and the index consists of many small hash tables, because one
// big table would have to grow as a whole.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "base/time.h"
#include "engine/hash_places.h"
#include "engine/store/store_keys.h"
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

  // The key under which a message is remembered: a hash of 128 bits stands for the ids. An
  // accidental collision is practically impossible, and a client that constructs one only harms its
  // own messages.
  static Hash128 key_of(DeduplicationScope scope, std::string_view group,
                        std::string_view deduplication_id);

  // Announces a lookup of this key: prefetches the cache line that it will need.
  void expect(const Hash128& key) const { index_of(key).expect(hash_of(key)); }
  const Original* find(const Hash128& key) const;
  void remember(const Hash128& key, const Original& original, Instant now);
  void expire(Instant now);

  // A checkpoint writes what differs from the last one: begin_save() fixes what that is, and calls
  // of save_some() write it, each of which does about as much as writing this many messages takes,
  // and returns how much it did. The batch must live until nothing is pending.
  void begin_save(Batch& batch, StockName stock);
  bool has_pending() const { return saving_.next < saving_.end; }
  std::size_t save_some(std::size_t count);
  // Reads a page back, in order of their keys. The checkpoint was made `at` a time, when the queue
  // had given the numbers below `end`.
  Status load(StockName stock, std::string_view key, std::string_view value, Seq end, Instant at);

  Instant next_deadline() const;
  std::size_t size() const { return size_; }
  // Of memory: an entry, its place in the index, and what both have to spare.
  std::size_t bytes() const { return size_ * (sizeof(Entry) + kIndexBytes); }

  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (const Page& page : pages_)
      for (std::size_t i = page.expired; i < page.entries.size(); ++i)
        visit(page.entries[i].key, page.entries[i].original, page.entries[i].expires);
  }

 private:
  struct Entry {
    Hash128 key;
    Original original;
    Instant expires;  // Every entry lives equally long, so the order of arrival is that of expiry.
  };
  static constexpr std::size_t kIndexBytes = 22;
  static constexpr std::size_t kPageSize = 256;
  struct Page {
    std::vector<Entry> entries;
    std::size_t expired = 0;  // The first entries, this many, have expired.
    bool saved = false;       // The store has the page, or its first entries.

    bool full() const { return entries.size() == kPageSize; }
    Key key(StockName stock) const;
    std::string bytes(std::size_t count) const;  // Of the first entries, this many.
  };

  // Pages are numbered in order of creation. The place of an entry consists of its page's number,
  // modulo kPageNumbers, and its index in the page.
  static constexpr std::uint64_t kPageNumbers = 1 << 23;
  static std::uint32_t place_of(std::uint64_t page, std::size_t entry) {
    return static_cast<std::uint32_t>(page % kPageNumbers * kPageSize + entry);
  }
  const Entry& at(std::uint32_t place) const {
    return pages_[(place / kPageSize - first_page_) % kPageNumbers].entries[place % kPageSize];
  }

  static constexpr std::size_t kIndexes = 256;
  static constexpr std::size_t kSplitAt = 4'096;
  static std::uint32_t hash_of(const Hash128& key) { return static_cast<std::uint32_t>(key.low); }
  const HashPlaces& index_of(const Hash128& key) const {
    return indexes_[indexes_.size() == 1 ? 0 : key.high % kIndexes];
  }
  HashPlaces& index_of(const Hash128& key) {
    return const_cast<HashPlaces&>(std::as_const(*this).index_of(key));
  }
  void split_index();
  void enter(const Hash128& key, std::uint32_t place);
  std::size_t save_next_page();
  std::uint64_t end_page() const { return first_page_ + pages_.size(); }

  std::deque<Page> pages_;  // No page is empty or fully expired.
  std::uint64_t first_page_ = 0;
  std::vector<HashPlaces> indexes_ = std::vector<HashPlaces>(1);  // One, or kIndexes.
  std::size_t size_ = 0;
  std::uint64_t first_unsaved_ = 0;  // The pages before this one are unchanged in the store.
  bool to_erase_ = false;            // The store still has pages that expired.
  // The pages that the checkpoint under way has yet to write; the last of them has grown since.
  struct Saving {
    Batch* batch = nullptr;
    StockName stock;
    std::uint64_t next = 0;
    std::uint64_t end = 0;
    std::size_t last_entries = 0;
  };
  Saving saving_;
};

}  // namespace stanchion::engine
