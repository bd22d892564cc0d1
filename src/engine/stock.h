// The messages of a queue since it was last purged, in memory or in the store, and what a
// checkpoint has to write of them.
//
// Keeps the structures together; the rules of a queue are in queue.cc. How messages leave memory
// and come back does not change the queue: nothing that a client sees depends on it.
//
// A checkpoint is decided at once and written little by little: chunks that it has to write are
// pending, and are written at the latest before anything of them changes.
//
//   K1  unsaved chunks and strangers are exactly those that differ from the last checkpoint, where
//       a pending chunk counts as written.
//   K2  A cold chunk is in cold_by_first and cold_by_expiry, a resident one with members in deep or
//       near.
#pragma once

#include <algorithm>
#include <boost/intrusive/list.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/lane_set.h"
#include "engine/message_table.h"
#include "engine/store_keys.h"
#include "model/batch.h"

namespace stanchion::engine {

struct Counts {
  std::size_t visible = 0;
  std::size_t in_flight = 0;
  std::size_t delayed = 0;

  friend bool operator==(const Counts&, const Counts&) = default;
};

// How a shard's messages are kept in memory. Tests make everything small.
struct MemoryOptions {
  std::uint32_t chunk_messages = 256;
  std::uint32_t chunk_bytes = 256 << 10;
  // Messages that the lanes which are received from have ready, together; each at least a chunk.
  std::uint32_t read_ahead = 4096;
  std::uint32_t read_ahead_bytes = 4 << 20;  // No more than this, but for the first chunk of each.
  std::uint32_t near_messages = 1024;        // Behind so many others a new chunk is far away.
  std::size_t spare = std::size_t{1} << 20;  // Bytes of lanes and chunks that do not count.
  // Bytes of messages that may have to come back for a new delay of their FIFO queue.
  std::size_t delayed_again = std::size_t{64} << 20;
};

// What the stocks of a shard share.
struct Memory {
  MemoryOptions options;
  std::size_t messages = 0;              // Bytes of messages, some of which can leave …
  std::size_t structure = 0;             // … and of lanes and chunks, which cannot.
  std::uint64_t checkpoint = 0;          // The last one that was begun …
  std::uint64_t durable_checkpoint = 0;  // … and the last one that is durable.
  std::unique_ptr<Batch> batch{};        // What the former has, until it is taken.
  std::vector<ColdRead> wanted;          // Reads to be made, in order.
};

class Stock {
 public:
  struct Due {
    Instant at;
    Seq seq;
    friend auto operator<=>(const Due&, const Due&) = default;
  };

  Stock(StockName name, bool fifo, Memory& memory);
  ~Stock();
  Stock(const Stock&) = delete;
  Stock& operator=(const Stock&) = delete;

  // It is about to be destroyed, perhaps by another thread: no longer counts as memory.
  void forsake();

  // What it takes in memory, lanes and chunks included.
  std::size_t bytes() const { return bytes_ + structure.bytes(); }

  const StockName name;
  MessageTable messages;
  MemoryShare structure;  // Of lanes and chunks.
  LaneSet lanes;
  IndexedHeap<Message, Due, &Message::heap_index> timers;
  // Messages whose retention clock started before they came, so that they expire out of turn.
  IndexedHeap<Message, Due, &Message::early_index> early;
  Counts counts;
  std::map<Seq, Chunk*> cold_by_first;
  IndexedHeap<Chunk, Instant, &Chunk::expiry_index> cold_by_expiry;

  Message& insert(std::unique_ptr<Message> message);
  std::unique_ptr<Message> extract(Message& message);

  // A message that just came finds its home: as a member at the end of the line, or as a stranger.
  void join(Message& message);
  void lodge(Message& message);

  // A delayed stranger of a standard queue becomes a member, in its place.
  void come_home(Message& message);

  // Out of the line, or of the returned ones: a stranger from now on.
  void leave(Message& message);

  // A stranger leaves for another queue: its content is not to be found here any more …
  void depart(Message& message);
  // … and comes back after all.
  void come_back(Message& message);

  // A stranger's home need not wait for it any longer.
  void part(Message& message);

  // A stranger's record changed.
  void changed(Message& message);

  // A member is not what the store has of it.
  void entry_changed(Message& message);

  // Cold chunks.
  void want_chunk(Chunk& chunk);
  // Of a packed chunk the members: their expiry will change it.
  void want_expiries(Chunk& chunk);
  void want_content(Message& message);
  // Somebody waits for the contents of several messages together: those that have come do not leave
  // again until the next read is installed, after which whoever still waits says so anew.
  void await(Seq seq) {
    if (!is_awaited(seq)) awaited_.push_back(seq);
  }
  void forget_awaited() {
    awaited_.clear();
    held_ = false;
  }
  // The same for all chunks of the stock.
  void hold(bool on) { held_ = on; }
  bool is_held() const { return held_; }
  // Asks for what a consumer of this lane will want soon.
  void read_ahead(const Lane& lane);
  Chunk* find_chunk(const std::string& group, Seq from);
  // The members of a cold chunk come into memory. Fails if the store does not hold what it should.
  Status bring_in(Chunk& chunk, std::vector<StoredMessage> found, Instant now);
  Status learn_expiries(Chunk& chunk, const std::vector<StoredMessage>& found);
  void set_content(Message& message, ContentPtr content);
  // Members of a cold chunk expire: all of them, or those that are known to by `deadline`.
  void drop_members(Chunk& chunk);
  void drop_expired_members(Chunk& chunk, Instant deadline);

  // Lets a few chunks leave memory, those that are far from being received first, until `target`
  // bytes are gone.
  struct Evicted {
    std::size_t bytes;
    bool more;  // There are chunks that were not looked at yet.
  };
  Evicted evict(std::size_t target, bool near_too);
  // Lets go of contents of strangers.
  std::size_t evict_contents(std::size_t target);
  bool has_deep() const { return !deep_.empty(); }

  // What is not in memory, read at once; changes nothing.
  using ReadNow = std::function<std::vector<StoredMessage>(const KeyRange&)>;
  std::vector<StoredMessage> read_members(const Chunk& chunk, const ReadNow& read) const;
  ContentPtr read_content(const Message& message, const ReadNow& read) const;

  // Decides what the checkpoint that was begun writes of what differs from the last one, and writes
  // all but the chunks, which are pending then.
  void begin_save();
  // Writes pending chunks until so many messages were looked at; returns how many were.
  std::size_t save_some(std::size_t count);
  bool has_pending() const { return !pending_chunks_.empty(); }
  // Writes the chunk if it is pending. Comes before any change of it, or of a member's entry.
  void settle(Chunk& chunk) {
    if (chunk.pending_index != kNotInHeap) save(chunk);
  }

  // Recovery.
  Result<Chunk*> load_chunk(LaneName lane, Seq from, std::string_view value);
  Chunk* find_loaded(LaneName lane, Seq from) const;
  Lane* find_loaded(LaneName lane) const;
  void loaded();
  // Makes the chunk the home of a stranger whose record was loaded.
  void adopt(Message& message, Chunk& home);

  void check_invariants() const;

 private:
  struct DeadTerritory {
    LaneName lane;
    Seq from;
    Seq until;
  };
  using ResidentList = boost::intrusive::list<
      Chunk, boost::intrusive::member_hook<Chunk, ResidentHook, &Chunk::resident_hook>,
      boost::intrusive::constant_time_size<false>>;

  bool is_awaited(Seq seq) const { return std::ranges::find(awaited_, seq) != awaited_.end(); }
  Chunk& open_chunk(Message& message);
  Chunk& append_chunk(Lane& lane, Seq from);
  void link_last(Chunk& chunk, Message& message);
  void link_in_order(Chunk& chunk, Message& message);
  void unlink(Chunk& chunk, Message& message);
  void find_front(Lane& lane);
  void fetch_members(const Chunk& chunk) const;
  void list_resident(Chunk& chunk);
  void unlist_resident(Chunk& chunk);
  void index_cold(Chunk& chunk);
  void unindex_cold(Chunk& chunk);
  void mark_unsaved(Chunk& chunk);
  void forget_unsaved(Message& message);
  void bury(Chunk& chunk);
  void bury_if_empty(Chunk& chunk);
  void remove_chunk(Chunk& chunk);
  void merge_into_previous(Chunk& chunk);
  bool is_full(const Chunk& chunk) const;
  bool may_leave_memory(const Chunk& chunk) const;
  std::size_t make_cold(Chunk& chunk);
  bool is_member(const Chunk& chunk, const StoredMessage& stored) const;
  ColdRead read_of(const Chunk& chunk, ColdRead::Purpose purpose) const;
  void save(Message& stranger);
  void save(Chunk& chunk);
  ChunkSummary save_members(Chunk& chunk, LaneName lane);
  void erase_pack(Chunk& chunk, LaneName lane);

  // Of a cold chunk: its summary, and its places in the map and the heap.
  static constexpr std::size_t kColdBytes =
      sizeof(ColdMembers) + 6 * sizeof(void*) + 3 * sizeof(std::uint64_t);

  Memory& memory_;
  std::size_t bytes_ = 0;  // This stock's part of memory_.messages.
  std::vector<Chunk*> unsaved_chunks_;
  std::vector<Chunk*> pending_chunks_;
  std::vector<Message*> unsaved_strangers_;
  std::vector<Key> erased_;
  boost::unordered_flat_set<Seq, std::hash<Seq>> erased_strangers_;
  std::vector<DeadTerritory> dead_;
  std::vector<Seq> awaited_;  // Few: the messages of a receive.
  bool held_ = false;
  // Only while the stock is read back, in order of lane and Seq.
  struct Loaded {
    LaneName lane;
    Seq from;
    Chunk* chunk;
  };
  std::vector<Loaded> loaded_;
  std::vector<Loaded>::const_iterator first_loaded(LaneName lane, Seq from) const;
  ResidentList deep_;
  ResidentList near_;
  // Where evict() goes on: each chunk is looked at once after every checkpoint that is durable.
  struct Evicting {
    Chunk* next = nullptr;
    std::uint64_t checkpoint = UINT64_MAX;
  };
  Evicting evict_deep_;
  Evicting evict_near_;
};

// What a message takes in memory, with its share of the allocator's own.
std::size_t memory_of(const Message& message);

}  // namespace stanchion::engine
