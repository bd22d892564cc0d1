// The writing half of a shard's journal on Kafka: collects records into entries, sends one of them
// at a time, and finds out which of them count.
//
//   shard's thread                      connection's thread
//   append ─▶ pending_                  delivered ─▶ SentEntries ─▶ events.proven, events.durable
//   flush  ─▶ sends, if no entry               │          └─ gap ─▶ reads it ─▶ events.superseded
//             is under way                     └─▶ sends what was flushed meanwhile
//
// So a lone record is sent at once, and under load the entries grow by themselves, which costs the
// brokers least.
//
//   KW1  An entry is reported only when SentEntries says that it counts.
//   KW2  After superseded() or failed() nothing is reported any more, and nothing is sent.
//   KW3  Records are sent only when all that were sent before are acknowledged. Brokers take entries
//        of a client in order only as long as they remember it: of one that they do not know, or no
//        longer, they take the second entry also if they have refused the first, and the client
//        then says that both are there. Readers would find a hole.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/latency.h"
#include "base/result.h"
#include "journal/journal.h"
#include "journal/log_entry.h"
#include "journal/shared_journal.h"
#include "kafka/connection.h"
#include "kafka/follower.h"
#include "kafka/offset_index.h"
#include "kafka/sent_entries.h"

namespace stanchion::kafka {

struct KafkaJournalOptions {
  // Of records that are not durable yet. The largest record has to fit twice.
  std::size_t unwritten_size_max = 32 << 20;
  // An entry that is not acknowledged for so long is a state to be shown.
  std::chrono::milliseconds stalled_after{5000};
  // How long close() waits for brokers that do not answer.
  std::chrono::milliseconds patience{60'000};
};

class KafkaWriter final : public std::enable_shared_from_this<KafkaWriter> {
 public:
  // What a claim has led to.
  struct Ownership {
    std::uint64_t writer = 0;
    journal::Epoch epoch;
    journal::LogOffset claim;
    Position next{1};
    std::optional<journal::LogDigest> digest{};  // Of all records before that; see LG4.
    OffsetIndex index{};
  };

  // `connection` must outlive the writer.
  KafkaWriter(KafkaConnection& connection, const ShardLog& log, Ownership ownership,
              const KafkaJournalOptions& options);

  void start(journal::JournalEvents events);
  Position append(std::string_view record);
  void flush();
  journal::Proof barrier();
  journal::Proof proven() const { return journal::Proof(proven_.load(std::memory_order_acquire)); }
  Position durable() const { return Position(durable_.load(std::memory_order_acquire)); }
  Position next_position() const { return next_; }
  journal::Epoch epoch() const { return epoch_; }
  // As the log says it; none as long as it does not.
  std::optional<journal::LogDigest> digest() const;
  journal::Room room() const;
  // Of the entries from now on; the first until this is called. It never goes back: who cannot read
  // a version cannot read what is in the log already.
  void write_version(std::uint8_t version);
  void trim_before(Position position);
  journal::JournalFigures figures() const;
  std::optional<journal::LogStall> stall() const;
  // About twice a second.
  void notice_silence();

  // Waits until everything appended is durable.
  Status drain();
  // From here on there are no events.
  void detach();

 private:
  // What happened, to be told when the lock is released.
  struct News {
    Position durable;
    journal::Proof proven;
    bool superseded = false;
    bool roomier = false;
    std::optional<Failure> failure;
  };
  // An entry that will be sent.
  struct Pending {
    std::optional<journal::LogDigest> before;
    journal::LogEntryBuilder entry;
  };
  struct InFlight {
    std::size_t size = 0;
    std::chrono::steady_clock::time_point sent;
  };

  bool ended() const { return superseded_ || failure_.has_value() || detached_; }
  // All of these with mutex_ held.
  void begin_version();
  void send_what_is_due();
  void send(journal::LogEntryKind kind, Pending pending);
  void settle(News& news);
  void take_first(News& news);
  void fail_with(std::string reason, News& news);
  void give_way(const Failure& why, News& news);
  void open_gap(News& news);
  void look_at_gap(News& news);

  // The connection's thread.
  void delivered(std::uint64_t number, const Delivery& delivery);
  void go_on_reading();
  void tell(const News& news);

  KafkaConnection& connection_;
  const ShardLog log_;
  const KafkaJournalOptions options_;
  const journal::LogWriterId self_;
  const journal::Epoch epoch_;

  Position next_;  // Owned by the shard's thread.
  std::atomic<std::uint64_t> durable_;
  std::atomic<std::uint64_t> proven_{0};

  // Counted with mutex_ held.
  Tally commits_;
  Tally records_;
  Tally bytes_;
  Latency commit_time_;

  // Held while events are told, so that detach() can wait for them. Taken before mutex_.
  std::mutex events_mutex_;
  journal::JournalEvents events_;

  mutable std::mutex mutex_;
  std::condition_variable settled_;
  std::deque<Pending> pending_;               // Nearly always at most one.
  Position pending_first_;                    // Of the first record in pending_.
  std::uint8_t version_;                      // Of what is pending …
  std::uint8_t next_version_;                 // … and of entries that begin when nothing is.
  std::optional<journal::LogDigest> digest_;  // Of all records before next_.
  bool due_ = false;                          // There was a flush() for what is pending.
  bool barrier_wanted_ = false;  // There was a barrier() since the last entry was sent.
  SentEntries sent_;
  std::deque<InFlight> in_flight_;  // One for each of sent_.
  std::size_t unwritten_ = 0;       // Bytes in pending_ and in flight.
  bool was_full_ = false;
  OffsetIndex index_;
  journal::LogOffset trimmed_;
  std::unique_ptr<PartitionReader> gap_;             // While a gap is being read …
  std::chrono::steady_clock::time_point gap_heard_;  // … and when that began, or got further.
  bool superseded_ = false;
  bool detached_ = false;
  std::optional<Failure> failure_;
};

}  // namespace stanchion::kafka
