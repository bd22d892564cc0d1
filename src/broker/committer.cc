#include "broker/committer.h"

#include <utility>

#include "base/check.h"

namespace stanchion::broker {
namespace {

// With so few calls waiting for a commit, little is lost if they wait a moment longer.
constexpr std::size_t kFew = 4;
// How old a proof may be for replies that only show state.
constexpr Duration kRecentProof = std::chrono::seconds(1);

}  // namespace

void Committer::recovered() {
  appended_ = flushed_ = Position(journal_.next_position().value() - 1);
}

void Committer::start(Loop& loop, Task durable, std::function<void(const Failure&)> failed,
                      Task superseded) {
  loop_ = &loop;
  owner_.start(loop);
  auto on_durable = std::make_shared<Task>(std::move(durable));
  const auto wake = [signal = signal_, this, on_durable] {
    if (signal->posted.exchange(true)) return;
    loop_->post([signal, this, on_durable] {
      if (!signal->alive) return;
      // Cleared before the position is read: anything that becomes durable from now on posts again.
      signal->posted = false;
      send_durable();
      (*on_durable)();
    });
  };
  auto on_superseded = std::make_shared<Task>(std::move(superseded));
  journal_.start({.durable = [wake](Position) { wake(); },
                  .proven = wake,
                  .superseded =
                      [signal = signal_, this, on_superseded] {
                        loop_->post([signal, on_superseded] {
                          if (signal->alive) (*on_superseded)();
                        });
                      },
                  .roomier = wake,
                  .failed =
                      [signal = signal_, failed = std::move(failed)](const Failure& failure) {
                        if (signal->alive) failed(failure);
                      }});
}

Position Committer::append(std::string_view record, Haste haste) {
  owner_.check();
  const Position position = journal_.append(record);
  CHECK(position == appended_.next(), "a record comes right behind the one before");
  appended_ = position;
  if (haste == Haste::kNow) hurry_ = true;
  flush_when_round_ends();
  return appended_;
}

void Committer::flush_when_round_ends() {
  if (std::exchange(round_ends_, true)) return;
  loop_->defer([signal = signal_, this] {
    if (!signal->alive) return;
    round_ends_ = false;
    flush();
  });
}

void Committer::flush() {
  if (silent_ || (appended_ == flushed_ && !hurry_)) return;
  if (hurry_ || served_polls_.size() + replies_.size() > kFew) return flush_now();
  if (journal_.durable() < flushed_) return;  // Then go_on() calls this again.
  if (std::exchange(lingering_, true)) return;
  loop_->linger([signal = signal_, this] { return signal->alive && lingering_; },
                [signal = signal_, this] {
                  if (signal->alive) flush_now();
                });
}

void Committer::flush_now() {
  owner_.check();
  hurry_ = false;
  lingering_ = false;
  flushed_ = appended_;
  journal_.flush();
}

// The number of the proof that a reply has to wait for; 0 if none.
journal::Proof Committer::ask_for_proof(Proven proven) {
  if (!must_prove_) return journal::Proof();
  if (proven == Proven::kRecently && proven_at_ != SteadyInstant::min() &&
      now_ - proven_at_ <= kRecentProof)
    return journal::Proof();
  const journal::Proof proof = journal_.barrier();
  if (barriers_.empty() || barriers_.back().proof < proof) barriers_.push_back({proof, now_});
  hurry_ = true;
  flush_when_round_ends();
  return proof;
}

void Committer::note_proofs() {
  for (; !barriers_.empty() && barriers_.front().proof <= journal_.proven(); barriers_.pop_front())
    proven_at_ = barriers_.front().asked;
}

void Committer::send_in_line(std::deque<WaitingReply>& line, Task send, Proven proven) {
  owner_.check();
  if (silent_) return;
  const journal::Proof proof = ask_for_proof(proven);
  if (line.empty() && journal_.durable() >= appended_ && journal_.proven() >= proof) return send();
  line.push_back({appended_, proof, std::move(send)});
}

void Committer::fall_silent() {
  owner_.check();
  silent_ = true;
  replies_.clear();
  served_polls_.clear();
  barriers_.clear();
}

void Committer::send_durable() {
  owner_.check();
  if (silent_) return;
  const Position durable = journal_.durable();
  CHECK(durable <= appended_, "what was not appended is not durable");
  note_proofs();
  const journal::Proof proven = journal_.proven();
  for (std::deque<WaitingReply>* line : {&served_polls_, &replies_}) {
    while (!line->empty() && line->front().position <= durable && line->front().proof <= proven) {
      WaitingReply reply = std::move(line->front());
      line->pop_front();
      reply.send();
    }
  }
}

}  // namespace stanchion::broker
