#include "broker/committer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "broker/admission.h"
#include "broker/held_bytes.h"

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

void Committer::send(What what) {
  if (auto* task = std::get_if<Task>(&what)) return (*task)();
  auto& [respond, reply, changes] = std::get<ClientReply>(what);
  respond(std::move(reply));
}

void Committer::send_in_line(std::deque<WaitingReply>& line, What what, Proven proven) {
  owner_.check();
  if (silent_) return;
  const journal::Proof proof = ask_for_proof(proven);
  if (line.empty() && journal_.durable() >= appended_ && journal_.proven() >= proof)
    return send(std::move(what));
  WaitingReply waiting{appended_, proof, std::move(what)};
  if (const auto* answer = std::get_if<ClientReply>(&waiting.what);
      answer != nullptr && patience_.time != Duration::max()) {
    waiting.deadline = now_ + patience_.time;
    overdue_at_ = std::min(overdue_at_, waiting.deadline);
    waiting.bytes = held_bytes(answer->reply);
    waiting_bytes_ += waiting.bytes;
  }
  line.push_back(std::move(waiting));
}

Committer::WaitingReply Committer::take_first(std::deque<WaitingReply>& line) {
  WaitingReply first = std::move(line.front());
  line.pop_front();
  waiting_bytes_ -= first.bytes;
  return first;
}

// Those that have waited longest are in front; between them is what no client waits for.
void Committer::take_overdue(std::deque<WaitingReply>& line, std::deque<ClientReply>& into) {
  std::deque<WaitingReply> kept;
  while (!line.empty()) {
    const SteadyInstant deadline = line.front().deadline;
    if (deadline != SteadyInstant::max() && deadline > now_) {
      overdue_at_ = std::min(overdue_at_, deadline);
      break;
    }
    WaitingReply first = take_first(line);
    if (deadline == SteadyInstant::max()) {
      kept.push_back(std::move(first));
    } else {
      into.push_back(std::get<ClientReply>(std::move(first.what)));
    }
  }
  for (; !kept.empty(); kept.pop_back()) line.push_front(std::move(kept.back()));
}

bool Committer::answer_overdue() {
  owner_.check();
  if (waiting_bytes_ == 0 || now_ < overdue_at_) return false;
  overdue_at_ = SteadyInstant::max();
  std::deque<ClientReply> overdue;
  take_overdue(served_polls_, overdue);
  take_overdue(replies_, overdue);
  for (ClientReply& reply : overdue)
    reply.respond(reply.changes ? log_has_not_confirmed() : log_does_not_answer());
  return !overdue.empty();
}

void Committer::drop_replies() {
  owner_.check();
  silent_ = true;
  replies_.clear();
  served_polls_.clear();
  waiting_bytes_ = 0;
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
    while (!line->empty() && line->front().position <= durable && line->front().proof <= proven)
      send(std::move(take_first(*line).what));
  }
}

}  // namespace stanchion::broker
