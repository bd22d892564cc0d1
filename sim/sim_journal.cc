#include "sim/sim_journal.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "sim/violation.h"

namespace stanchion::sim {

using journal::Room;

SimJournal::SimJournal(World& world, Owner owner, std::unique_ptr<journal::SegmentLog> log,
                       History& history, Micros latency, bool in_turn, Checkpointed checkpointed)
    : world_(world),
      owner_(owner),
      log_(std::move(log)),
      history_(history),
      latency_(latency),
      in_turn_(in_turn),
      checkpointed_(std::move(checkpointed)),
      next_(log_->next_position()),
      durable_(Position(next_.value() - 1)) {}

Status SimJournal::replay(Position from, const journal::RecordVisitor& visit) {
  return log_->replay(from, visit);
}

void SimJournal::start(journal::JournalEvents events) {
  CHECK(!started_, "started twice");
  started_ = true;
  events_ = std::move(events);
  schedule_look_for_space();
}

Position SimJournal::append(std::string_view record) {
  CHECK(started_, "append comes after start");
  CHECK(failure_ || journal::may_append(room()), "append needs room");
  CHECK(record.size() <= limits::kRecordSizeMax, "a record has a bound");
  history_.records.emplace_back(record);
  if (failure_) return std::exchange(next_, next_.next());
  const std::uint64_t most = log_->options().append_size_max;
  const auto fits = [&](const journal::FrameBuilder& frame) {
    return journal::frame_size(frame.payload_size() + journal::kRecordPrefixSizeMax +
                               record.size()) <= most;
  };
  if (pending_.empty() || !fits(pending_.back())) pending_.emplace_back();
  journal::FrameBuilder& frame = pending_.back();
  CHECK(fits(frame), "a record is larger than what the simulated journal takes at once");
  const std::uint64_t before = frame.empty() ? 0 : journal::frame_size(frame.payload_size());
  frame.add(record);
  pending_bytes_ += journal::frame_size(frame.payload_size()) - before;
  return std::exchange(next_, next_.next());
}

void SimJournal::flush() {
  schedule_commit();
}

Room SimJournal::room() const {
  if (failure_) return Room::kNone;
  return log_->room(pending_bytes_);
}

void SimJournal::trim_before(Position position) {
  // Segments are large, so that a world seldom needs what was trimmed too early: it is noticed
  // here.
  if (position.value() > checkpointed_() + 1)
    throw Violation(fmt::format(
        "J7: records up to {} may go, but the checkpoint on the disk contains those up to {}",
        position.value() - 1, checkpointed_()));
  journal::SegmentLog::Files removed;
  if (auto status = log_->trim_before(position, removed); !status) fail_with(status.error());
}

void SimJournal::schedule_commit() {
  if (failure_ || pending_.empty()) return;
  if (std::exchange(commit_scheduled_, true)) {
    flushed_meanwhile_ = true;
    return;
  }
  if (in_turn_) std::swap(under_way_, pending_);
  Random& random = world_.random();
  // Most commits take about as long as this disk usually does; a few take very long.
  Micros wait = random.between<Micros>(1, latency_);
  if (random.below(100) == 0) wait += random.between<Micros>(1, 400) * kMillisecond;
  world_.schedule(wait, owner_, [this] {
    commit_scheduled_ = false;
    if (auto status = commit(); !status) return fail_with(status.error());
    if (std::exchange(flushed_meanwhile_, false)) schedule_commit();
  });
}

Status SimJournal::commit() {
  std::vector<journal::FrameBuilder> frames;
  std::swap(frames, in_turn_ ? under_way_ : pending_);
  for (journal::FrameBuilder& frame : frames) {
    const std::uint64_t size = journal::frame_size(frame.payload_size());
    const auto last = log_->append_batch(frame);
    if (!last) return std::unexpected(last.error());
    pending_bytes_ -= size;
    durable_ = *last;
    history_.durable = last->value();
    if (events_.durable) events_.durable(*last);
  }
  RETURN_IF_FAILED(log_->prepare(world_.wall()));
  if (events_.roomier) events_.roomier();
  schedule_look_for_space();
  return {};
}

void SimJournal::schedule_look_for_space() {
  if (look_scheduled_ || failure_ || log_->room() == Room::kPlenty) return;
  look_scheduled_ = true;
  world_.schedule(kSecond, owner_, [this] {
    look_scheduled_ = false;
    if (failure_) return;
    if (auto status = log_->prepare(world_.wall()); !status) return fail_with(status.error());
    if (events_.roomier) events_.roomier();
    schedule_look_for_space();
  });
}

void SimJournal::fail_with(const Failure& failure) {
  if (failure_) return;
  failure_ = failure;
  if (events_.failed) events_.failed(failure);
}

Status SimJournal::close() {
  if (failure_) return std::unexpected(*failure_);
  RETURN_IF_FAILED(commit());
  std::swap(under_way_, pending_);
  RETURN_IF_FAILED(commit());
  return log_->close();
}

}  // namespace stanchion::sim
