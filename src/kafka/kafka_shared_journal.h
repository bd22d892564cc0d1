// A shard's log in a partition of Kafka as its replicas use it (docs/adr/0019): followed, claimed,
// written, lost (journal/shared_journal.h). The rules are those of journal/shared_log.h, and one Kafka
// record is one group commit. Nothing here waits for the brokers, except that follow() learns the
// leaders of a topic when it is first used on a connection, up to two seconds, and close().
//
// Threads: as the interfaces say. `arrived` comes from any thread, events from the connection's.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "journal/shared_journal.h"
#include "kafka/connection.h"
#include "kafka/follower.h"
#include "kafka/kafka_writer.h"
#include "kafka/silence_watch.h"
#include "os/entropy.h"

namespace stanchion::kafka {

class KafkaSharedJournal final : public journal::SharedJournal {
 public:
  // `connection` and `entropy` must outlive the journal.
  KafkaSharedJournal(KafkaConnection& connection, ShardLog log, os::Entropy& entropy,
                     const KafkaJournalOptions& options)
      : connection_(connection),
        log_(std::move(log)),
        entropy_(entropy),
        options_(options),
        silence_(connection.settings().silent_after) {}
  ~KafkaSharedJournal() override;

  void follow(Position from, std::optional<journal::LogDigest> before,
              std::function<void()> arrived) override;
  Result<Progress> read(std::size_t bytes, const journal::RecordVisitor& visit) override;
  bool has_other_past() const override { return other_past_; }
  bool has_reached_end() const override { return reached_end_; }
  journal::LogOffset next_offset() const override {
    return follower_ ? follower_->next_offset() : journal::LogOffset();
  }
  void claim() override;
  std::optional<Failure> refusal() const override { return signal_->failure(); }
  void notice_silence() override;
  std::optional<journal::LogStall> stall() const override;
  void write_format(std::uint32_t format) override;
  std::uint64_t lag() const override;
  // Only the owner asks the brokers; it knows which entries are valid.
  void drop_before(Position position) override {
    if (writer_) writer_->trim_before(position);
  }

  void start(journal::JournalEvents events) override;
  Position append(std::string_view record) override { return writer().append(record); }
  void flush() override { writer().flush(); }
  journal::Epoch epoch() const override { return writer_ ? writer_->epoch() : journal::Epoch(); }
  journal::Proof barrier() override { return writer().barrier(); }
  journal::Proof proven() const override { return writer_ ? writer_->proven() : journal::Proof(); }
  Position durable() const override;
  Position next_position() const override;
  std::optional<journal::LogDigest> digest() const override {
    return writer_ ? writer_->digest() : digest_;
  }
  journal::Room room() const override { return writer_ ? writer_->room() : journal::Room::kNone; }
  journal::JournalFigures figures() const override;
  Status close() override { return writer_ ? writer_->drain() : Status(); }

 private:
  // A claim that was sent. What became of it is learnt by reading; only a failure is reported.
  struct Claim {
    journal::Epoch epoch;
    std::uint64_t nonce = 0;
    std::chrono::steady_clock::time_point sent{};
  };

  // Shared with what is under way, which may end after the journal.
  struct Signal {
    // Something failed for good: the next read() says so.
    void tell(const Failure& why) {
      const std::lock_guard lock(mutex);
      failed = why;
      if (arrived) arrived();
    }
    void note(const Failure& why) {
      const std::lock_guard lock(mutex);
      failed = why;
    }
    // Of a claim that was given up meanwhile nothing is of interest.
    void tell_of_claim(std::uint64_t nonce, const Failure& why, bool began_anew) {
      const std::lock_guard lock(mutex);
      if (awaited != nonce) return;
      if (began_anew) {
        is_unknown = true;
      } else {
        failed = why;
      }
      if (arrived) arrived();
    }
    void await_claim(std::optional<std::uint64_t> nonce) {
      const std::lock_guard lock(mutex);
      awaited = nonce;
      is_unknown = is_taken = false;
    }
    void note_taken(std::uint64_t nonce) {
      const std::lock_guard lock(mutex);
      is_taken = is_taken || awaited == nonce;
    }
    // The claim is in the log, and was perhaps not read yet.
    bool claim_is_taken() {
      const std::lock_guard lock(mutex);
      return is_taken;
    }
    // Whether the claim is in the log is not known, and may never be.
    bool claim_is_unknown() {
      const std::lock_guard lock(mutex);
      return is_unknown;
    }
    std::optional<Failure> failure() {
      const std::lock_guard lock(mutex);
      return failed;
    }
    void note_end(journal::LogOffset at) {
      const std::lock_guard lock(mutex);
      end = at;
    }
    std::optional<journal::LogOffset> take_end() {
      const std::lock_guard lock(mutex);
      return std::exchange(end, std::nullopt);
    }

    std::mutex mutex;
    std::optional<Failure> failed;
    std::optional<std::uint64_t> awaited;  // The claim that is under way.
    bool is_unknown = false, is_taken = false;
    std::optional<journal::LogOffset> end;   // Of the log, when it was asked for.
    std::atomic<bool> has_something{false};  // To be read.
    std::function<void()> arrived;
  };

  KafkaWriter& writer() const;
  Claim end_claim();
  Status take(Position position, std::string_view record, const journal::RecordVisitor& visit);
  Status check_before(Position position);
  Status check_end();
  Status check_digest(std::optional<journal::LogDigest> there);
  Status refuse(const std::string& why);
  Status note_end(bool is_there);
  Result<Progress> begin_anew();
  Status note_trimmed();
  std::function<void()> ring();
  void own(const Claim& claim);

  KafkaConnection& connection_;
  const ShardLog log_;
  os::Entropy& entropy_;
  const KafkaJournalOptions options_;
  const std::shared_ptr<Signal> signal_ = std::make_shared<Signal>();
  std::uint8_t version_ = 1;                  // Of the entries that are written.
  Position from_;                             // The next record to be passed on.
  std::optional<journal::LogDigest> digest_;  // Of all before it.
  std::unique_ptr<KafkaFollower> follower_;
  bool other_past_ = false;
  bool reached_end_ = false;
  SilenceWatch silence_;
  std::optional<Failure> silent_;                    // Nothing further can be read.
  bool waiting_ = false;                             // Everything that had come was read.
  journal::LogOffset furthest_;                      // That was read in any reading.
  std::optional<SilenceWatch::Instant> anew_since_;  // Without getting further.
  std::optional<journal::LogOffset> end_at_first_;   // Known when the first entry was read.
  std::optional<Claim> claim_;
  std::shared_ptr<KafkaWriter> writer_;  // Once the log is owned.
};

}  // namespace stanchion::kafka
