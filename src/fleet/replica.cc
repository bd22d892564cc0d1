#include "fleet/replica.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "fleet/limits.h"

namespace stanchion::fleet {

using journal::SharedJournal;

// A shard that was loaded from its store, in the background.
struct Replica::Opened {
  std::unique_ptr<broker::Shard> shard;
  SharedJournal* log = nullptr;
  bool other_past = false;
};

Replica::Replica(ShardIndex shard, Options options, broker::Broker& broker, broker::Loop& loop,
                 broker::Background& background, os::Time& time, os::Entropy& entropy,
                 Outside outside)
    : index_(shard),
      options_(options),
      broker_(broker),
      loop_(loop),
      background_(background),
      time_(time),
      entropy_(entropy),
      outside_(std::move(outside)) {}

Replica::~Replica() {
  *alive_ = false;
}

broker::Task Replica::guarded(std::function<void()> task) {
  return [alive = alive_, task = std::move(task)] {
    if (*alive) task();
  };
}

void Replica::set_state(State state) {
  const bool served = serving();
  state_ = state;
  if (served != serving()) outside_.role_changed();
}

void Replica::set_role(Role role, AssignmentNo assignment) {
  role_ = role;
  const bool is_new = std::exchange(assignment_, assignment) != assignment;
  if (role_ == Role::kNone) {
    if (state_ == State::kServing) return release();
    if (state_ != State::kClosed && state_ != State::kReleasing) close();
    return;
  }
  if (state_ == State::kClosed) return open(false);
  if (state_ == State::kGivenUp) return;  // It tries again by itself.
  if (role_ == Role::kStandby && state_ == State::kServing) return release();
  if (role_ != Role::kOwner) return;
  // Between two assignments of which it has read together, somebody else may have owned the log.
  if (is_new) verify_ownership();
  if (state_ == State::kFollowing) catch_up();
}

void Replica::try_again() {
  retry_after_ = kRetryAfter;
  if (state_ == State::kGivenUp && retry_alarm_) retry_alarm_->set(Duration(1));
}

// A shard that has nothing to do would not hear of another owner without a barrier.
void Replica::verify_ownership() {
  if (state_ == State::kServing) shard_->when_durable([] {});
  if (state_ == State::kClaiming) doubted_ = true;
}

// The last commit of an earlier time may still be under way in the background: loading waits behind
// it (RE2).
void Replica::open(bool copy_first) {
  set_state(State::kLoading);
  copied_ = copy_first;
  borrowed_ = borrowed_ || copy_first;
  background_.run(broker::Work::kCheckpoint,
                  [this, copy_first, alive = alive_] { copy_first ? copy(alive) : load(alive); });
}

// In the background, where other shards' checkpoints do not wait for it.
void Replica::copy(const Alive& alive) {
  background_.run(broker::Work::kCopy, [this, alive] {
    if (const Status copied = outside_.copy_store(); !copied)
      return loop_.post([this, alive, why = copied.error()] {
        if (*alive) copy_again(why);
      });
    background_.run(broker::Work::kCheckpoint, [this, alive] { load(alive); });
  });
}

// In the background.
void Replica::load(const Alive& alive) {
  auto load = [&]() -> Result<std::unique_ptr<Opened>> {
    auto storage = outside_.open();
    if (!storage) return std::unexpected(storage.error());
    auto opened = std::make_unique<Opened>();
    opened->log = storage->log.get();
    opened->other_past = storage->other_past;
    opened->shard = std::make_unique<broker::Shard>(options_.engine, std::move(storage->log),
                                                    std::move(storage->store), options_.keeping,
                                                    time_, entropy_, options_.patience);
    RETURN_IF_FAILED(opened->shard->load());
    return opened;
  };
  auto result = std::make_shared<Result<std::unique_ptr<Opened>>>(load());
  loop_.post([this, alive, result] {
    if (*alive) opened(std::move(*result));
  });
}

// Whoever has a store may be away for a moment. Until then this is no replica.
void Replica::copy_again(const Failure& why) {
  outside_.not_copied(why);
  if (!copy_alarm_)
    copy_alarm_ = loop_.make_alarm([this] {
      if (state_ == State::kLoading) open(true);
    });
  copy_alarm_->set(kCopyAgain);
}

void Replica::opened(Result<std::unique_ptr<Opened>> result) {
  if (!result) return give_up(result.error());
  shard_ = std::move((*result)->shard);
  log_ = (*result)->log;
  if ((*result)->other_past) has_other_past_ = past_is_noted_ = true;
  shard_->follow(loop_, background_, broker_.peers(), [this] { catch_up(); });
  log_->write_format(format_);
  broker_.follow(index_, shard_.get());
  set_state(State::kFollowing);
  if (std::exchange(gave_up_before_, false)) overtaken();
  // `arrived` comes from any thread.
  log_->follow(shard_->applied().next(), shard_->keeper().loaded_digest(),
               [loop = &loop_, alive = alive_, this] {
                 loop->post([alive, this] {
                   if (*alive) catch_up();
                 });
               });
  catch_up();
}

void Replica::catch_up() {
  if (state_ != State::kFollowing && state_ != State::kClaiming) return;
  if (!shard_->keep_up()) return;  // It says when to go on.
  const auto progress = log_->read(kApplyBytes, [this](Position position, std::string_view record) {
    return apply(position, record);
  });
  if (log_->has_other_past()) borrowed_ ? (void)(copy_next_ = true) : note_other_past();
  if (!progress) return give_up(progress.error());
  if (log_->has_reached_end() && *progress != SharedJournal::Progress::kTrimmed) {
    if (has_lost_its_end()) return;
    mended();
  }
  if (*progress == SharedJournal::Progress::kWaiting) begin_backup();
  switch (*progress) {
    case SharedJournal::Progress::kMore:
      return read_soon();
    case SharedJournal::Progress::kOwned:
      return promote();
    case SharedJournal::Progress::kTooNew:
      return give_up({"its log continues with entries that only a later release can read"});
    case SharedJournal::Progress::kTrimmed:
      return begin_with_a_copy();
    case SharedJournal::Progress::kRefused:
      ++statistics_.refusals;
      outside_.said("is not claimed: another claim was faster, or this one may be lost");
      claim_pace_.lost(time_.read().steady);
      set_state(State::kFollowing);
      overtaken();
      // There may be more at hand, and only who has read everything is told of what comes later.
      return read_soon();
    case SharedJournal::Progress::kWaiting:
      return claim_if_owner();
  }
}

// Whatever was wrong: the log's end was reached. Whether the log takes anything is not known by that.
void Replica::mended() {
  if (!refused_) retry_after_ = kRetryAfter;
  given_up_.clear();
  has_other_past_ = borrowed_ = copy_next_ = false;
  if (!std::exchange(past_is_noted_, false)) return;
  // A note that cannot be removed is, when the end is reached after the next start.
  background_.run(broker::Work::kCheckpoint,
                  [this] { static_cast<void>(outside_.note_past(false)); });
}

Status Replica::apply(Position position, std::string_view record) {
  if (position == seen_ && seen_digest_ && log_->digest() && *seen_digest_ != *log_->digest()) {
    note_other_past();
    return fail(fmt::format(
        "this node has read other records up to {} than the log has now: it was restored, or is "
        "another one",
        position.value()));
  }
  return shard_->apply(position, record);
}

// RE5.
bool Replica::has_lost_its_end() {
  if (shard_->applied() >= seen_) return false;
  note_other_past();
  give_up({fmt::format(
      "this node has seen the records up to {}, but the log ends with record {}: it has lost its "
      "end, or was restored",
      seen_.value(), shard_->applied().value())});
  return true;
}

// It may only be a broker that is behind the others, so it is tried again soon, whatever was wrong
// before: the log is not trimmed for some time (ControlState::saved_by_all).
void Replica::note_other_past() {
  if (!std::exchange(has_other_past_, true)) retry_after_ = kRetryAfter;
}

void Replica::remember_seen() {
  if (!shard_) return;
  const bool owned = state_ == State::kServing || state_ == State::kReleasing;
  const Position at = owned ? shard_->journal().durable() : shard_->applied();
  if (at < seen_) return;
  seen_ = at;
  seen_digest_ = owned ? std::nullopt : log_->digest();
}

void Replica::read_soon() {
  if (std::exchange(reading_soon_, true)) return;
  loop_.defer(guarded([this] {
    reading_soon_ = false;
    catch_up();
  }));
}

// RE3.
void Replica::overtaken() {
  if (role_ != Role::kOwner) return;
  role_ = Role::kStandby;
  outside_.overtaken();
}

// Others may be able to go on, and what is wrong may be mended: an entry that one broker's disk has
// damaged, a disk that was full, a program that is upgraded.
void Replica::give_up(const Failure& why) {
  ++statistics_.given_up;
  if (state_ == State::kClaiming) claim_pace_.lost(time_.read().steady);
  refused_ = log_ != nullptr && log_->refusal().has_value();
  if (refused_ && !claim_pace_.is_in_a_row()) retry_after_ = kRetryAfter;
  close();
  set_state(State::kGivenUp);
  gave_up_before_ = true;
  has_other_past_ && !past_is_noted_ ? note_past_and_tell(why) : tell_given_up(why);
}

// RE4: whoever hears that the shard is given up here waits for it only for some time when the log is
// trimmed.
void Replica::note_past_and_tell(const Failure& why) {
  background_.run(broker::Work::kCheckpoint, [this, why, alive = alive_] {
    loop_.post([this, why, alive, noted = outside_.note_past(true)] {
      if (!*alive) return;
      past_is_noted_ = noted.has_value();
      tell_given_up(noted
                        ? why
                        : Failure{why.message +
                                  "; after a restart nobody knows that the store is to be kept: " +
                                  noted.error().message});
    });
  });
}

void Replica::tell_given_up(const Failure& why) {
  given_up_ = why.message;
  no_backup(no_backup_because_given_up());
  outside_.gave_up(why);
  retry_alarm_ = loop_.make_alarm([this] {
    // RE4: nor is a store replaced that another past was noted for since.
    if (state_ == State::kGivenUp) open(std::exchange(copy_next_, false) && !has_other_past_);
  });
  retry_alarm_->set(retry_after_);
  retry_after_ = std::min(2 * retry_after_, kRetryAfterMax);
}

void Replica::claim_if_owner() {
  if (state_ != State::kFollowing || role_ != Role::kOwner || !log_->has_reached_end()) return;
  const SteadyInstant now = time_.read().steady;
  if (const Duration left = claim_pace_.left(now); left > Duration(0)) return claim_in(left);
  ++statistics_.claims;
  outside_.said(fmt::format("is claimed, after record {}", shard_->applied().value()));
  claimed_at_ = now;
  doubted_ = false;
  set_state(State::kClaiming);
  log_->claim();
}

void Replica::claim_in(Duration wait) {
  if (!claim_alarm_) claim_alarm_ = loop_.make_alarm([this] { catch_up(); });
  claim_alarm_->set(wait);
}

// The log does not have what comes next, but the others have it in their stores.
void Replica::begin_with_a_copy() {
  if (has_other_past_)
    return give_up(
        {"its store had other records than the log, which has been trimmed since; the store stays "
         "as it is until somebody removes it"});
  const bool in_vain = copied_;
  close();
  if (!in_vain) {
    ++statistics_.copies;
    return open(true);
  }
  // The copy was older than it should have been. A later one will do.
  set_state(State::kLoading);
  copy_again({"the log was trimmed behind the store that was copied"});
}

void Replica::promote() {
  if (role_ != Role::kOwner) {
    // The assignment has changed while the claim was under way. Whoever is to own the log claims it
    // with a higher epoch.
    close();
    return set_role(role_, assignment_);
  }
  ++statistics_.promotions;
  do {
    entropy_.fill({reinterpret_cast<std::uint8_t*>(&service_), sizeof service_});
  } while (service_ == 0);
  shard_->start(loop_, background_, broker_.peers());
  broker_.serve(index_, shard_.get());
  const SteadyInstant now = time_.read().steady;
  last_promotion_ = now - claimed_at_;
  outside_.said(fmt::format("is served here after record {}, {} ms after it was claimed",
                            shard_->applied().value(), last_promotion_.count()));
  claim_pace_.served(now);
  set_state(State::kServing);
  begin_backup();
  if (doubted_) verify_ownership();
}

void Replica::lost(std::string_view why) {
  if (state_ != State::kServing && state_ != State::kReleasing) return;
  ++statistics_.losses;
  outside_.said(fmt::format("is no longer served here: {}", why));
  if (state_ == State::kServing) {
    claim_pace_.lost(time_.read().steady);
    broker_.serve(index_, nullptr);
  }
  set_state(State::kReleasing);
  overtaken();
  // Not now: the shard is in the middle of something.
  loop_.defer(guarded([this] {
    const auto refusal = log_->refusal();
    if (refusal && role_ != Role::kNone) return give_up(*refusal);
    close();
    set_role(role_, assignment_);
  }));
}

// By plan: what was decided is made durable and answered, everything else goes to the next owner.
void Replica::release() {
  ++statistics_.releases;
  outside_.said("is given to its next owner");
  broker_.serve(index_, nullptr);
  set_state(State::kReleasing);
  shard_->when_durable(guarded([this] {
    // Parked receives are sent on; lost() does the rest.
    shard_->stop_serving("it was moved by plan");
    outside_.released(assignment_);
  }));
}

void Replica::close() {
  remember_seen();
  *alive_ = false;
  alive_ = std::make_shared<bool>(true);
  reading_soon_ = false;
  copy_alarm_.reset();
  retry_alarm_.reset();
  claim_alarm_.reset();
  given_up_.clear();
  log_ = nullptr;
  if (shard_) broker_.follow(index_, nullptr);
  shard_.reset();
  set_state(State::kClosed);
  // Otherwise it is opened again, or given up.
  if (role_ == Role::kNone) no_backup("it was closed here meanwhile: back up a node that has it");
}

void Replica::write_format(std::uint32_t format) {
  format_ = format;
  if (log_ != nullptr) log_->write_format(format);
}

void Replica::back_up(journal::LogOffset end, broker::Keeper::Backup backup) {
  if (backup_) return backup.done(fail("another backup of it is under way"));
  if (is_closed()) return backup.done(fail("it is not here"));
  if (!given_up_.empty()) return backup.done(fail(no_backup_because_given_up()));
  backup_ = {end, std::move(backup)};
  if (!backup_alarm_) backup_alarm_ = loop_.make_alarm([this] { stop_waiting_to_back_up(); });
  backup_alarm_->set(kBackupPatience);
  begin_backup();
}

// A replica that is being opened, or given away and opened again, gets to it later.
void Replica::begin_backup() {
  if (!backup_ || (!serving() && !following() && state_ != State::kClaiming)) return;
  if (!serving() && log_->next_offset() < backup_->end) return;
  auto backup = std::make_shared<broker::Keeper::Backup>(std::move(backup_->copy));
  backup_.reset();
  if (serving() || shard_->applied() != Position()) return shard_->back_up(std::move(*backup));
  // Its log is empty, and a checkpoint needs a record.
  background_.run(broker::Work::kCheckpoint, [backup, loop = &loop_] {
    auto copied = std::make_shared<Status>(backup->copy(Position()));
    loop->post([backup, copied] { backup->done(std::move(*copied)); });
  });
}

void Replica::no_backup(std::string why) {
  if (!backup_) return;
  auto backup = std::move(backup_->copy);
  backup_.reset();
  backup.done(fail(std::move(why)));
}

void Replica::stop_waiting_to_back_up() {
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(kBackupPatience).count();
  if (!backup_ && shard_)
    return shard_->give_up_backup({fmt::format(
        "Kafka has not taken what it has decided within {} minutes: try again when it does",
        minutes)});
  no_backup(fmt::format(
      "it has not read its log as far as it went when the backup began within {} minutes: back up "
      "another node, or try again when it has",
      minutes));
}

std::string Replica::no_backup_because_given_up() const {
  return fmt::format(
      "it is given up here ({}): back up another node, or this one's directory when it is stopped",
      given_up_);
}

void Replica::drop_before(Position position) {
  if (state_ == State::kServing) log_->drop_before(position);
}

Replica::Figures Replica::figures() const {
  if (log_ != nullptr) log_->notice_silence();
  Figures figures{.serving = serving(),
                  .given_up = !given_up_.empty(),
                  .lag = {},
                  .last_promotion = last_promotion_,
                  .stall = log_ == nullptr ? std::nullopt : log_->stall(),
                  .counted = statistics_};
  // What was applied last is as old as it is behind, if there is more.
  if (following() && log_->lag() > 0)
    figures.lag = std::max(Duration(0), time_.read().now - shard_->now());
  return figures;
}

std::optional<Beat::Reached> Replica::reached() const {
  // While it tries again, nobody should rely on what it has.
  if (shard_ == nullptr || !given_up_.empty()) return std::nullopt;
  const Position applied = serving() ? shard_->journal().durable() : shard_->applied();
  return Beat::Reached{applied, shard_->keeper().saved_position(), serving() ? service_ : 0};
}

}  // namespace stanchion::fleet
