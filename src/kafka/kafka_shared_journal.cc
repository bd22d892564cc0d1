#include "kafka/kafka_shared_journal.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "base/check.h"

namespace stanchion::kafka {

using journal::LogEntryBuilder;
using journal::LogEntryKind;
using journal::LogReader;

KafkaSharedJournal::~KafkaSharedJournal() {
  if (writer_) writer_->detach();
  const std::lock_guard lock(signal_->mutex);
  signal_->arrived = nullptr;
}

KafkaWriter& KafkaSharedJournal::writer() const {
  CHECK(writer_, "only an owner writes");
  return *writer_;
}

void KafkaSharedJournal::follow(Position from, std::optional<journal::LogDigest> before,
                                std::function<void()> arrived) {
  CHECK(from_ == Position() && from != Position(), "a log is followed once");
  from_ = from;
  digest_ = before;
  signal_->arrived = arrived;
  auto follower = KafkaFollower::open(connection_, log_);
  if (!follower) {
    signal_->tell(follower.error());
    return;
  }
  follower_ = std::move(*follower);
  follower_->when_ready(ring());
}

// Called by librdkafka's threads, with locks of its own held.
std::function<void()> KafkaSharedJournal::ring() {
  return [signal = signal_, arrived = signal_->arrived] {
    signal->has_something = true;
    arrived();
  };
}

Result<KafkaSharedJournal::Progress> KafkaSharedJournal::read(std::size_t bytes,
                                                              const journal::RecordVisitor& visit) {
  if (writer_) return Progress::kOwned;
  if (const auto failure = signal_->failure()) return std::unexpected(*failure);
  if (silent_) return std::unexpected(*silent_);
  CHECK(follower_, "follow comes first");
  if (claim_ && signal_->claim_is_unknown()) {
    // If it is in the log after all, the next claim is refused once for being of the same epoch.
    end_claim();
    return Progress::kRefused;
  }
  signal_->has_something = false;
  waiting_ = false;
  std::size_t passed = 0;
  bool missing = false;
  const auto visit_from = [&](Position position, std::string_view record) -> Status {
    if (position < from_) return check_before(position);
    missing = missing || position > from_;
    if (missing) return {};
    passed += record.size();
    return take(position, record, visit);
  };
  while (passed < bytes) {
    const auto step = follower_->step(visit_from, std::chrono::milliseconds(0));
    if (missing) return Progress::kTrimmed;
    if (follower_->trimmed()) return begin_anew();
    if (follower_->too_new()) {
      connection_.settings().warn(step.error().message +
                                  "; the shard is not followed here until the program is upgraded");
      return Progress::kTooNew;
    }
    if (!step) return std::unexpected(step.error());
    if (*step == KafkaFollower::Progress::kNothing) {
      waiting_ = true;
      return Progress::kWaiting;
    }
    silence_.heard(std::chrono::steady_clock::now());
    RETURN_IF_FAILED(note_end(*step == KafkaFollower::Progress::kEnd));
    if (*step == KafkaFollower::Progress::kEnd || !claim_) continue;
    if (follower_->writer() != claim_->nonce) {
      if (follower_->epoch() < claim_->epoch) continue;
      // Somebody else was faster. The own claim is void, and may have been trimmed away.
      end_claim();
      return Progress::kRefused;
    }
    const Claim claim = end_claim();
    if (follower_->verdict() != LogReader::Verdict::kClaim) return Progress::kRefused;
    RETURN_IF_FAILED(check_end());
    own(claim);
    return Progress::kOwned;
  }
  return Progress::kMore;
}

// LG4: what the caller has must be what the log has.
Status KafkaSharedJournal::take(Position position, std::string_view record,
                                const journal::RecordVisitor& visit) {
  RETURN_IF_FAILED(check_digest(follower_->digest_before()));
  from_ = position.next();
  digest_ = follower_->digest();
  return visit(position, record);
}

// A record that the caller has. One for which the log says a digest was read, or written, by somebody
// who knew it: a store that ends with it and has none is of another log.
Status KafkaSharedJournal::check_before(Position position) {
  if (position.next() != from_ || digest_ || !follower_->digest_before()) return {};
  return refuse("has a digest of them, unlike the store");
}

// At the end of the log, and at the own claim.
Status KafkaSharedJournal::check_end() {
  const Position next = follower_->next().value_or(Position(1));
  if (next < from_) return refuse("ends with record " + std::to_string(next.value() - 1));
  if (next > from_) return {};
  // Nobody has written since.
  RETURN_IF_FAILED(check_digest(follower_->digest()));
  digest_ = follower_->digest();
  return {};
}

// `there` is what the log says of the records before from_. The log by which the caller has a digest
// says one from there on, also to who begins where it was trimmed.
Status KafkaSharedJournal::check_digest(std::optional<journal::LogDigest> there) {
  if (!digest_ || digest_ == there) return {};
  return refuse(there ? "has other records up to there" : "says no digest of them");
}

Status KafkaSharedJournal::refuse(const std::string& why) {
  other_past_ = true;
  return fail("the store has the records up to " + std::to_string(from_.value() - 1) +
              ", but Kafka's partition " + log_.partition.text() + " " + why +
              ": the log has lost its end, was restored, or is another one");
}

// A log that is written all the time has no end that a reader comes to. So everything up to the end
// that was known with the first entry counts, too, unless the caller has more: then the end decides,
// or the records that come.
Status KafkaSharedJournal::note_end(bool is_there) {
  if (is_there) {
    anew_since_.reset();
    RETURN_IF_FAILED(check_end());
  }
  if (reached_end_) return {};
  if (!end_at_first_) {
    const journal::LogOffset end = connection_.known_end(log_.partition);
    if (end != journal::LogOffset()) end_at_first_ = end;
  }
  const bool is_behind_it = end_at_first_ && follower_->next_offset() >= *end_at_first_ &&
                            follower_->next().value_or(Position(1)) >= from_;
  if (is_behind_it && !is_there) RETURN_IF_FAILED(check_end());
  reached_end_ = is_there || is_behind_it;
  return {};
}

// The offset that comes next is not in the log: it was trimmed, or a broker that comes back from a
// network that was cut takes itself for the leader and does not have it yet. From the beginning on,
// the positions tell.
Result<KafkaSharedJournal::Progress> KafkaSharedJournal::begin_anew() {
  RETURN_IF_FAILED(note_trimmed());
  follower_.reset();  // A partition has one reader at a time.
  reached_end_ = false;
  end_at_first_.reset();
  auto follower = KafkaFollower::open(connection_, log_);
  if (!follower) return std::unexpected(follower.error());
  follower_ = std::move(*follower);
  follower_->when_ready(ring());
  return Progress::kWaiting;
}

// A reading that ends at the same place again and again will not get further: a changed byte has led it
// to an offset that the log does not have.
Status KafkaSharedJournal::note_trimmed() {
  const auto now = std::chrono::steady_clock::now();
  if (!anew_since_ || follower_->reached() > furthest_) anew_since_ = now;
  furthest_ = std::max(furthest_, follower_->reached());
  if (now - *anew_since_ < connection_.settings().silent_after) return {};
  return fail("Kafka's partition " + log_.partition.text() +
              " cannot be read further than offset " + std::to_string(furthest_.value()) +
              ": the copy of the log on the broker that leads is damaged");
}

// What has come and is not taken yet may be all of it.
void KafkaSharedJournal::notice_silence() {
  if (writer_) return writer_->notice_silence();
  if (!follower_ || !waiting_ || signal_->has_something) return;
  const auto now = std::chrono::steady_clock::now();
  if (const auto end = signal_->take_end()) silence_.answered(*end);
  switch (silence_.look(now, follower_->reached())) {
    case SilenceWatch::Step::kNone:
      return;
    case SilenceWatch::Step::kAsk:
      if (connection_.ask_end(log_.partition, [signal = signal_](journal::LogOffset end) {
            signal->note_end(end);
          }))
        silence_.asked(now);
      return;
    case SilenceWatch::Step::kGiveUp:
      silent_ =
          Failure{"Kafka's partition " + log_.partition.text() + " goes on at offset " +
                  std::to_string(follower_->reached().value()) +
                  ", but nothing can be read there: the copy of the log on the broker that leads "
                  "is damaged"};
      return ring()();
  }
}

void KafkaSharedJournal::claim() {
  CHECK(follower_ && !claim_, "one claim at a time");
  // If it is not the next epoch, because a claim was not read yet, this one is refused.
  claim_ = Claim{.epoch = follower_->epoch().next(),
                 .nonce = entropy_.u64(),
                 .sent = std::chrono::steady_clock::now()};
  signal_->await_claim(claim_->nonce);
  const Status sent = connection_.send(
      log_.partition,
      LogEntryBuilder().finish(
          LogEntryKind::kClaim, claim_->epoch, from_, digest_,
          {.fleet = log_.fleet, .shard = log_.shard, .node = log_.node, .writer = claim_->nonce},
          digest_ ? std::max(version_, journal::kChainVersion) : version_),
      [signal = signal_, nonce = claim_->nonce](const Delivery& delivery) {
        if (!delivery.failure) return signal->note_taken(nonce);
        signal->tell_of_claim(nonce, *delivery.failure, delivery.began_anew);
      });
  if (!sent) signal_->tell(sent.error());
}

KafkaSharedJournal::Claim KafkaSharedJournal::end_claim() {
  signal_->await_claim(std::nullopt);
  return *std::exchange(claim_, std::nullopt);
}

void KafkaSharedJournal::own(const Claim& claim) {
  KafkaWriter::Ownership ownership{.writer = claim.nonce,
                                   .epoch = claim.epoch,
                                   .claim = follower_->offset(),
                                   .next = *follower_->next(),
                                   .digest = digest_,
                                   .index = follower_->take_index()};
  follower_.reset();
  writer_ = std::make_shared<KafkaWriter>(connection_, log_, std::move(ownership), options_);
  writer_->write_version(version_);
}

// The next owner may have more luck, and if not, this is one shard of many.
void KafkaSharedJournal::start(journal::JournalEvents events) {
  events.failed = [signal = signal_, superseded = events.superseded](const Failure& why) {
    signal->note(why);
    superseded();
  };
  writer().start(std::move(events));
}

std::optional<journal::LogStall> KafkaSharedJournal::stall() const {
  if (writer_) return writer_->stall();
  if (!claim_) return std::nullopt;
  const auto now = std::chrono::steady_clock::now();
  const auto waiting = std::chrono::duration_cast<Duration>(now - claim_->sent);
  if (waiting < options_.stalled_after) return std::nullopt;
  if (signal_->claim_is_taken())
    return journal::LogStall{
        waiting, log_.partition.text() + " has taken this node's claim, which cannot be read back"};
  return journal::LogStall{waiting, connection_.troubles().why_not_taken(log_.partition, now)};
}

void KafkaSharedJournal::write_format(std::uint32_t format) {
  version_ =
      static_cast<std::uint8_t>(std::clamp<std::uint32_t>(format, 1, journal::kLogEntryVersion));
  if (writer_) writer_->write_version(version_);
}

std::uint64_t KafkaSharedJournal::lag() const {
  if (!follower_) return 0;
  const std::uint64_t end = connection_.known_end(log_.partition).value();
  const std::uint64_t read = follower_->next_offset().value();
  return end > read ? end - read : 0;
}

Position KafkaSharedJournal::next_position() const {
  return writer_ ? writer_->next_position() : from_;
}

Position KafkaSharedJournal::durable() const {
  return writer_ ? writer_->durable() : Position(from_.value() - 1);
}

journal::JournalFigures KafkaSharedJournal::figures() const {
  return writer_ ? writer_->figures() : journal::JournalFigures();
}

}  // namespace stanchion::kafka
