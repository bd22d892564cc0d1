#include "kafka/kafka_journal.h"

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"

namespace stanchion::kafka {

using journal::Epoch;
using journal::LogEntryBuilder;
using journal::LogEntryKind;
using journal::LogReader;
using Progress = KafkaFollower::Progress;

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kReadTimeout = std::chrono::milliseconds(100);

std::string shard_text(const ShardLog& log) {
  return "shard " + std::to_string(log.shard.value()) + " (Kafka's partition " +
         log.partition.text() + ")";
}

}  // namespace

// A claim that was sent. Where it is in the log is learnt by reading; only a failure is reported.
class KafkaJournal::Claim {
 public:
  Status send(KafkaConnection& connection, const ShardLog& log, Epoch epoch, Position next,
              std::uint64_t writer) {
    return connection.send(
        log.partition,
        LogEntryBuilder().finish(
            LogEntryKind::kClaim, epoch, next, std::nullopt,
            {.fleet = log.fleet, .shard = log.shard, .node = log.node, .writer = writer}),
        [outcome = outcome_](const Delivery& delivery) {
          const std::lock_guard lock(outcome->mutex);
          outcome->failure = delivery.failure;
        });
  }

  std::optional<Failure> failure() const {
    const std::lock_guard lock(outcome_->mutex);
    return outcome_->failure;
  }

 private:
  struct Outcome {
    std::mutex mutex;
    std::optional<Failure> failure;
  };
  std::shared_ptr<Outcome> outcome_ = std::make_shared<Outcome>();
};

Result<std::unique_ptr<KafkaJournal>> KafkaJournal::open(KafkaConnection& connection,
                                                         const ShardLog& log, os::Entropy& entropy,
                                                         const KafkaJournalOptions& options) {
  auto follower = KafkaFollower::open(connection, log);
  if (!follower) return std::unexpected(follower.error());
  return std::make_unique<KafkaJournal>(std::move(*follower), entropy, options);
}

KafkaJournal::KafkaJournal(std::unique_ptr<KafkaFollower> follower, os::Entropy& entropy,
                           const KafkaJournalOptions& options)
    : follower_(std::move(follower)),
      log_(follower_->log()),
      connection_(follower_->connection()),
      options_(options),
      nonce_(entropy.u64()) {}

KafkaJournal::~KafkaJournal() {
  if (writer_) writer_->detach();
}

KafkaWriter& KafkaJournal::writer() const {
  CHECK(writer_, "replay comes first");
  return *writer_;
}

Status KafkaJournal::replay(Position from, const journal::RecordVisitor& visit) {
  CHECK(follower_ && !writer_, "a log is replayed once");
  const auto too_late = [&](Position begins) {
    return fail("the log of " + shard_text(log_) + " begins at record " +
                std::to_string(begins.value()) + ", but record " + std::to_string(from.value()) +
                " is needed: copy the store of another replica");
  };
  bool begun = follower_->next().has_value();
  if (begun && *follower_->next() > from) return too_late(*follower_->next());
  return claim_log(from, [&](Position position, std::string_view record) -> Status {
    if (!std::exchange(begun, true) && position > from) return too_late(position);
    // What comes before `from` is in the caller's checkpoint.
    return position < from ? Status() : visit(position, record);
  });
}

Status KafkaJournal::claim_log(Position from, const journal::RecordVisitor& visit) {
  RETURN_IF_FAILED(read_to_end(visit));
  const Position end = follower_->next().value_or(Position(1));
  if (end < from)
    return fail("the log of " + shard_text(log_) + " ends before record " +
                std::to_string(end.value()) + ", but the checkpoint here has records up to " +
                std::to_string(from.value() - 1) + ": the log is not the one of this store");
  epoch_ = follower_->epoch().next();
  Claim claim;
  RETURN_IF_FAILED(claim.send(connection_, log_, epoch_, end, nonce_));
  RETURN_IF_FAILED(read_to_claim(claim, visit));
  KafkaWriter::Ownership ownership{.writer = nonce_,
                                   .epoch = epoch_,
                                   .claim = follower_->offset(),
                                   .next = *follower_->next(),
                                   .digest = follower_->digest(),
                                   .index = follower_->take_index()};
  follower_.reset();
  writer_ = std::make_shared<KafkaWriter>(connection_, log_, std::move(ownership), options_);
  writer_->write_version(journal::kLogEntryVersion);
  return {};
}

// Up to what is there now; only to learn the epoch. Brokers keep a reader at the end waiting for
// more, so that they are asked where the end is.
Status KafkaJournal::read_to_end(const journal::RecordVisitor& visit) {
  const auto end = connection_.end_of(log_.partition, options_.patience);
  if (!end) return std::unexpected(end.error());
  auto heard = Clock::now();
  while (follower_->next_offset() < *end) {
    const auto progress = follower_->step(visit, kReadTimeout);
    if (!progress) return std::unexpected(progress.error());
    // An end may be an older one. Offsets that the brokers use for themselves are not read.
    if (*progress == Progress::kEnd && follower_->end() >= *end) return {};
    if (*progress == Progress::kEntry) heard = Clock::now();
    if (Clock::now() - heard < options_.patience) continue;
    const std::string reason = connection_.last_error();
    return fail("Kafka does not let the log of " + shard_text(log_) +
                " be read: " + (reason.empty() ? "its leader does not answer" : reason));
  }
  return {};
}

Status KafkaJournal::read_to_claim(const Claim& claim, const journal::RecordVisitor& visit) {
  const auto began = Clock::now();
  for (;;) {
    const auto progress = follower_->step(visit, kReadTimeout);
    if (!progress) return std::unexpected(progress.error());
    if (*progress == Progress::kEntry && follower_->writer() == nonce_) {
      if (follower_->verdict() == LogReader::Verdict::kClaim) return {};
      return fail("node " + std::to_string(follower_->claimed_by()) + " has claimed " +
                  shard_text(log_) + " at the same time");
    }
    if (const auto failure = claim.failure())
      return fail("the claim of " + shard_text(log_) + " was refused: " + failure->message);
    if (Clock::now() - began < options_.patience) continue;
    const std::string reason = connection_.last_error();
    return fail(
        "Kafka does not accept the claim of " + shard_text(log_) + ": " +
        (reason.empty() ? "look for fewer in-sync replicas than min.insync.replicas" : reason));
  }
}

void KafkaJournal::start(journal::JournalEvents events) {
  writer().start(std::move(events));
}

Status KafkaJournal::close() {
  return writer().drain();
}

}  // namespace stanchion::kafka
