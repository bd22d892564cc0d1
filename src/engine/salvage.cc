#include "engine/salvage.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/bytes.h"
#include "engine/careful_walk.h"
#include "engine/queue.h"
#include "engine/store/chunk_record.h"
#include "engine/store/store_keys.h"
#include "engine/store/stored_message.h"
#include "engine/transfers.h"

namespace stanchion::engine {
namespace {

// One part of the output, and the messages of a chunk that is rebuilt.
constexpr std::size_t kBatchBytes = std::size_t{16} << 20;
constexpr std::size_t kChunkMessages = 256;

// Collects the output.
class Output {
 public:
  explicit Output(const WriteBatch& write) : write_(write) {}

  void put(Put put) {
    bytes_ +=
        put.key.view().size() + put.head.size() + (put.content ? put.content->encoded().size() : 0);
    batch_.puts.push_back(std::move(put));
    if (bytes_ >= kBatchBytes) flush();
  }
  void put(std::string_view key, std::string_view value) {
    put({key, std::string(value), nullptr});
  }
  Status finish() {
    flush();
    return status_;
  }

 private:
  void flush() {
    if (status_ && !batch_.empty()) status_ = write_(batch_);
    batch_ = {};
    bytes_ = 0;
  }

  const WriteBatch& write_;
  Batch batch_;
  std::size_t bytes_ = 0;
  Status status_;
};

// Where a chunk is, in the order of the store.
struct ChunkPlace {
  LaneName lane;
  Seq from;
  friend bool operator<(const ChunkPlace& a, const ChunkPlace& b) {
    return std::tuple(a.lane.high, a.lane.low, a.from) <
           std::tuple(b.lane.high, b.lane.low, b.from);
  }
};

// What must be assigned to a chunk although it is not a member.
struct Guests {
  std::map<Seq, std::string> detached;  // Records of detached messages.
  std::set<Seq> leaving;
  std::string group;  // Known from a message that is leaving.

  bool empty() const { return detached.empty() && leaving.empty(); }
};

struct Entry {
  StoredMessage message;
  std::string key;
};

// An entry of the store as it is: a message, or a pack of messages.
using RawEntry = std::pair<std::string, std::string>;

KeyRange range_of(KeyType type, StockName stock) {
  for (KeyRange& range : stock_ranges(stock.queue, stock.incarnation, stock.incarnation))
    if (static_cast<KeyType>(range.begin[0]) == type) return std::move(range);
  return {};
}

class QueueSalvage {
 public:
  QueueSalvage(const Engine::ScanStore& scan, const Queue& queue, Instant at, Output& output)
      : scan_(scan), queue_(queue), name_(queue.stock().name()), at_(at), output_(output) {
    report_.id = queue.id;
    report_.ref = queue.ref;
  }

  void expect_departure(const Message& message, Seq home) {
    const std::string_view group = message.content->group();
    Guests& guests = guests_[{lane_name(group), home}];
    guests.leaving.insert(message.seq);
    guests.group = group;
  }

  SalvagedQueue run() {
    read_chunks();
    read_detached();
    report_.deduplication_lost = !copy(KeyType::kDeduplication);
    report_.attempts_lost = !copy(KeyType::kAttempt);
    report_.places_lost = !copy(KeyType::kPlace);
    for (const auto& [place, value] : chunks_) salvage_chunk(place, *parse_chunk(value));
    if (report_.chunks_unknown) salvage_orphans();
    // Their chunk cannot be found, and neither can their contents.
    for (const auto& [place, guests] : guests_) report_.lost += guests.detached.size();
    if (!report_.damaged()) report_.living = {};
    std::ranges::sort(report_.living);
    return std::move(report_);
  }

 private:
  bool copy(KeyType type) {
    return walk_carefully(scan_, range_of(type, name_),
                          [&](auto key, auto value) { output_.put(key, value); });
  }

  void read_chunks() {
    const auto take = [&](std::string_view key, std::string_view value) {
      KeyReader parts(key);
      parts.type();
      parts.stock();
      const LaneName lane = parts.lane();
      const Seq from = parts.seq();
      const auto record = parse_chunk(value);
      const bool makes_sense =
          record && lane_name(record->group) == lane && is_possible(*record, from);
      if (makes_sense) chunks_.emplace(ChunkPlace{lane, from}, value);
      report_.chunks_unknown = report_.chunks_unknown || !makes_sense;
    };
    if (!walk_carefully(scan_, range_of(KeyType::kChunk, name_), take))
      report_.chunks_unknown = true;
  }

  void read_detached() {
    const auto take = [&](std::string_view key, std::string_view value) {
      KeyReader parts(key);
      parts.type();
      parts.stock();
      const Seq seq = parts.seq();
      ByteReader reader(value);
      const std::uint64_t high = reader.u64();
      const LaneName lane{.low = reader.u64(), .high = high};
      const Seq from(reader.u64());
      if (reader.ok())
        guests_[{lane, from}].detached.emplace(seq, value);
      else
        report_.states_unknown = true;
    };
    if (!walk_carefully(scan_, range_of(KeyType::kDetached, name_), take))
      report_.states_unknown = true;
  }

  // The readable messages of a lane from one Seq to another. False: there may be others.
  bool read_messages(const KeyRange& range, const std::function<void(Entry)>& take,
                     std::vector<RawEntry>* raw = nullptr) {
    bool sound = true;
    const bool whole = walk_carefully(scan_, range, [&](std::string_view key, auto value) {
      std::vector<StoredMessage> found;
      if (!parse_stored_messages(key, value, true, found)) {
        sound = false;
        return;
      }
      for (StoredMessage& message : found) take({std::move(message), std::string(key)});
      if (raw != nullptr) raw->emplace_back(key, value);
    });
    return whole && sound;
  }

  void salvage_chunk(const ChunkPlace& place, const ChunkRecord& record) {
    Guests guests;
    if (auto found = guests_.extract(place)) guests = std::move(found.mapped());
    std::vector<Entry> entries;
    std::vector<RawEntry> raw;
    const bool whole = read_messages(
        messages_between(name_, place.lane, place.from, record.until),
        [&](Entry entry) { entries.push_back(std::move(entry)); }, &raw);
    keep_detached(guests, entries);
    const std::size_t members = entries.size() - guests.detached.size();
    if (entries.empty() && guests.empty() && record.summary.members == 0) return;
    // If neither all messages nor all detached messages are known, a detached message may be taken
    // for the member that is missing.
    const bool exact = whole || !report_.states_unknown;
    if (exact && members == record.summary.members) {
      for (const Entry& entry : entries) count(entry);
      return copy_chunk(place, record, raw);
    }
    if (!exact) report_.chunks_unknown = true;
    if (members > record.summary.members) report_.states_unknown = true;
    if (members < record.summary.members) {
      const std::uint64_t lost = record.summary.members - members;
      report_.lost += lost;
      report_.pieces.push_back({std::string(record.group), record.summary.first,
                                record.summary.last, lost, record.summary.first_entered,
                                record.summary.last_entered});
    }
    write_chunk(place, record, guests, entries);
  }

  // Copied unchanged: a pack stays a pack.
  void copy_chunk(const ChunkPlace& place, const ChunkRecord& record,
                  const std::vector<RawEntry>& raw) {
    for (const auto& [key, value] : raw) output_.put(key, value);
    output_.put(chunk_key(name_, place.lane, place.from).view(), encode(record));
  }

  // Writes the records of detached messages whose contents exist, and drops the others.
  void keep_detached(Guests& guests, const std::vector<Entry>& entries) {
    std::set<Seq> contents;
    for (const Entry& entry : entries)
      if (guests.detached.contains(entry.message.seq)) contents.insert(entry.message.seq);
    report_.lost += std::erase_if(
        guests.detached, [&](const auto& detached) { return !contents.contains(detached.first); });
    for (const auto& [seq, value] : guests.detached)
      output_.put(detached_key(name_, seq).view(), value);
  }

  void count(const Entry& entry) {
    ++report_.kept;
    report_.living.push_back(entry.message.seq);
  }

  // Writes the messages one by one, and the record of their chunk.
  void write_chunk(const ChunkPlace& place, ChunkRecord record, const Guests& guests,
                   const std::vector<Entry>& entries) {
    record.summary = {};
    record.packed = false;
    record.homed =
        std::max(record.homed, static_cast<std::uint32_t>(entries.size() + guests.leaving.size()));
    for (const Entry& entry : entries) {
      count(entry);
      Message message;
      message.seq = entry.message.seq;
      message.content = entry.message.content;
      message.entered = entry.message.entered;
      message.retained_from = entry.message.retained_from;
      message.due = entry.message.due;
      message.receive_count = entry.message.receive_count;
      message.first_received = entry.message.first_received;
      const bool is_member = !guests.detached.contains(message.seq);
      // On a standard queue a message in line may be received at once.
      if (is_member && !queue_.fifo()) message.due = std::min(message.due, at_);
      if (message.due > at_) message.state = State::kDelayed;
      if (is_member) record.summary.add(message);
      output_.put(put_message(name_, place.lane, message));
    }
    if (!entries.empty() || !guests.empty())
      output_.put(chunk_key(name_, place.lane, place.from).view(), encode(record));
  }

  // A chunk whose record is lost, while it is rebuilt.
  struct Remade {
    ChunkPlace place;
    Seq until;
    Guests guests;
    std::vector<Entry> entries;
  };

  void close(std::optional<Remade>& open) {
    if (!open) return;
    keep_detached(open->guests, open->entries);
    ChunkRecord record;
    const std::string group = open->entries.empty()
                                  ? open->guests.group
                                  : std::string(open->entries.front().message.content->group());
    record.group = group;
    record.until = open->until;
    for (const Entry& entry : open->entries)
      record.bytes += static_cast<std::uint32_t>(entry.message.content->footprint());
    // Without any message, even one that is leaving, the group of the chunk is unknown.
    if (lane_name(group) == open->place.lane)
      write_chunk(open->place, record, open->guests, open->entries);
    open.reset();
  }

  bool is_known(LaneName lane, Seq seq) const {
    auto chunk = chunks_.upper_bound({lane, seq});
    if (chunk == chunks_.begin()) return false;
    --chunk;
    return chunk->first.lane == lane && seq <= parse_chunk(chunk->second)->until;
  }

  bool has_chunk_between(LaneName lane, Seq after, Seq before) const {
    const auto chunk = chunks_.upper_bound({lane, after});
    return chunk != chunks_.end() && chunk->first < ChunkPlace{lane, before};
  }

  // Chunks that detached messages name begin where the detached messages say; others with the first
  // message found.
  void open_for_guests(std::optional<Remade>& open, const std::optional<ChunkPlace>& up_to) {
    while (!guests_.empty() && (!up_to || !(*up_to < guests_.begin()->first))) {
      close(open);
      auto found = guests_.extract(guests_.begin());
      open = Remade{found.key(), found.key().from, std::move(found.mapped()), {}};
      for (const auto& [seq, value] : open->guests.detached) open->until = seq;
      if (!open->guests.leaving.empty())
        open->until = std::max(open->until, *open->guests.leaving.rbegin());
    }
  }

  // Messages that lie in no known chunk.
  void salvage_orphans() {
    std::optional<Remade> open;
    const auto take = [&](Entry entry) {
      KeyReader parts(entry.key);
      parts.type();
      parts.stock();
      const LaneName lane = parts.lane();
      const Seq seq = entry.message.seq;
      if (is_known(lane, seq)) return;
      open_for_guests(open, ChunkPlace{lane, seq});
      const bool fits = open && open->place.lane == lane &&
                        !has_chunk_between(lane, open->place.from, seq) &&
                        (open->entries.size() < kChunkMessages || seq <= open->until);
      if (!fits) {
        close(open);
        open = Remade{{lane, seq}, seq, {}, {}};
      }
      open->until = std::max(open->until, seq);
      open->entries.push_back(std::move(entry));
    };
    read_messages(range_of(KeyType::kMessage, name_), take);
    open_for_guests(open, std::nullopt);
    close(open);
  }

  const Engine::ScanStore& scan_;
  const Queue& queue_;
  const StockName name_;
  const Instant at_;
  Output& output_;
  SalvagedQueue report_{};
  std::map<ChunkPlace, std::string> chunks_;  // Their records.
  std::map<ChunkPlace, Guests> guests_;       // Those whose chunk was not found yet.
};

// The shard's record unchanged, if there is one, and the instant of its checkpoint.
Result<std::optional<Instant>> copy_shard(const Engine::ScanStore& scan, Output& output) {
  std::string record;
  RETURN_IF_FAILED(scan(all_of(KeyType::kShard), [&](std::string_view key, std::string_view value) {
    record = value;
    output.put(key, value);
    return true;
  }));
  if (record.empty()) return std::optional<Instant>();
  ByteReader reader(record);
  reader.u8();
  reader.u64();
  const Instant at = from_millis(reader.i64());
  if (!reader.ok()) return fail("the record of the shard makes no sense");
  return std::optional(at);
}

}  // namespace

bool SalvageReport::damaged() const {
  return queues_lost || departures_lost || std::ranges::any_of(queues, &SalvagedQueue::damaged);
}

Result<SalvageReport> salvage(const Engine::ScanStore& scan, const WriteBatch& write) {
  Output output(write);
  SalvageReport report;
  const auto at = copy_shard(scan, output);
  if (!at) return std::unexpected(at.error());
  report.has_checkpoint = at->has_value();
  if (!report.has_checkpoint) return report;
  Memory memory;
  std::map<QueueId, std::unique_ptr<Queue>> queues;
  report.queues_lost = !walk_carefully(scan, all_of(KeyType::kQueue), [&](auto key, auto value) {
    KeyReader parts(key);
    parts.type();
    const QueueId id = parts.queue();
    auto queue = Queue::load(id, value, memory);
    if (!queue) {
      report.queues_lost = true;
      return;
    }
    queues.emplace(id, std::move(*queue));
    output.put(key, value);
  }) || report.queues_lost;
  std::map<QueueId, std::unique_ptr<QueueSalvage>> works;
  for (const auto& [id, queue] : queues)
    works.emplace(id, std::make_unique<QueueSalvage>(scan, *queue, **at, output));
  report.departures_lost =
      !walk_carefully(
          scan, all_of(KeyType::kDeparture),
          [&](auto key, auto value) {
            Seq home;
            const auto departure = Outbox::parse(value, home);
            if (!departure) {
              report.departures_lost = true;
              return;
            }
            output.put(key, value);
            const auto queue = queues.find(departure->queue);
            if (queue != queues.end() && !queue->second->was_purged(departure->message->seq))
              works.at(queue->first)->expect_departure(*departure->message, home);
          }) ||
      report.departures_lost;
  for (auto& [id, work] : works) {
    report.queues.push_back(work->run());
    work.reset();
  }
  RETURN_IF_FAILED(output.finish());
  return report;
}

}  // namespace stanchion::engine
