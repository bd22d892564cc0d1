// The requests of a shard that wait: for the store, for room, or until they have waited too long;
// and what becomes of all of them when the shard serves no longer.
#include <utility>

#include "base/check.h"
#include "broker/admission.h"
#include "broker/shard.h"

namespace stanchion::broker {
namespace {

// How many requests that wait for room are looked at, before others get their turn.
constexpr std::size_t kLooksAtATime = 256;

// The same of arrivals that wait.
constexpr std::size_t kArrivalsAtATime = 256;

// See Patience::hand_over_again.
constexpr Duration kHandOverAgainMax = std::chrono::seconds(60);

// An arrival waits for memory until this part of the numbers of its source have come behind it.
constexpr std::uint64_t kNumbersShare = 4;

}  // namespace

bool Shard::waits_for_read(const QueueRef& ref) const {
  if (waiting_.size() == 0) return false;
  const engine::Queue* queue = engine_.find(ref);
  return queue != nullptr && waiting_.anyone_waits_for(queue->id);
}

void Shard::wait_for_read(Job job) {
  const auto home = engine::home_of(job.request);
  const engine::Queue* queue = home ? engine_.find(*home) : nullptr;
  CHECK(queue != nullptr, "only a queue can be waited for");
  if (set_aside_.contains(queue->id))
    return job.respond(std::unexpected(set_aside_.refusal(queue->id)));
  if (!waiting_.may_wait(job, reading_.steady)) return give_up(std::move(job));
  waiting_.wait_for_read(queue->id, std::move(job));
}

Reply Shard::refuse_for_memory(const Request& send) const {
  const auto home = engine::home_of(send);
  const engine::Queue* queue = home ? engine_.find(*home) : nullptr;
  if (queue != nullptr && queue->remembered_bytes() > queue->bytes() / 2)
    return too_many_ids(queue->ref.name);
  const bool too_much = home && keeper_.exceeds_share(home->account);
  return too_much ? account_takes_too_much(home->account) : memory_is_full();
}

void Shard::wait_for_room(Job job) {
  if (draining_) return job.respond(server_is_stopping());
  const bool in_time = waiting_.may_wait(job, reading_.steady);
  if (waiting_.bytes() + job.bytes > patience_.bytes) return job.respond(refuse_for_log());
  if (!in_time) return job.respond(refuse_without_room(job));
  waiting_.wait_for_room(std::move(job));
}

Reply Shard::refuse_without_room(const Job& job) const {
  if (action_of(job.request) == Action::kReceiveMessage) {
    if (answers_ && answers_->is_full()) return too_many_answers();
    if (must_wait_to_read(job)) return memory_is_full();
  }
  if (is_send(action_of(job.request)) && keeper_.is_crowded())
    return refuse_for_memory(job.request);
  return refuse_for_log();
}

Reply Shard::refuse_for_log() const {
  return journal_->can_be_superseded() ? log_is_too_slow() : disk_is_too_slow();
}

// Replies wait for the log and for its proofs, also those of calls that write nothing.
bool Shard::is_log_crowded() const {
  return committer_.waiting_bytes() >= patience_.bytes;
}

bool Shard::must_wait_to_read(const Job& job) const {
  const auto* receive = std::get_if<ReceiveMessage>(&job.request);
  return receive != nullptr && !receive->positions.empty() && !job.has_asked &&
         !keeper_.may_read_apart();
}

Respond Shard::with_claim(const Reply& reply, Respond respond) {
  if (!answers_) return respond;
  AnswerRoom::Claim claim = answers_->claim(reply);
  if (claim.is_empty()) return respond;
  return [claim = std::move(claim), respond = std::move(respond)](Reply answer) mutable {
    respond(std::move(answer));
  };
}

bool Shard::must_wait_for_answers() {
  if (!answers_ || !answers_->is_full()) return false;
  if (std::exchange(awaits_answers_, true)) return true;
  answers_->wait(this, *loop_, [alive = alive_, this] {
    if (!*alive) return;
    awaits_answers_ = false;
    if (!superseded_ && journal::may_append(journal_->room())) serve_who_waits();
  });
  return true;
}

void Shard::refuse_overdue() {
  WaitingRoom::Overdue overdue = waiting_.take_overdue(reading_.steady);
  for (Job& job : overdue.for_room) wait_for_room(std::move(job));  // It is overdue, so refused.
  for (Job& job : overdue.for_read) give_up(std::move(job));
  // After the machine was asleep everybody has waited too long: those who need not wait any more get
  // their answer.
  committer_.send_durable();
  if (committer_.answer_overdue()) make_room();
}

// The request has waited for as long as any may.
void Shard::give_up(Job job) {
  const auto* receive = std::get_if<ReceiveMessage>(&job.request);
  if (receive != nullptr && is_unfinished(receive->queue)) return come_back_empty(std::move(job));
  job.respond(disk_is_too_slow());
}

void Shard::come_back_empty(Job job) {
  engine_.note_empty_receive(*engine::home_of(job.request), true, now_);
  answer({std::move(job.respond), ReceiveMessageResult{}});
}

bool Shard::is_unfinished(const QueueRef& ref) const {
  if (unfinished_.empty()) return false;
  const engine::Queue* queue = engine_.find(ref);
  return queue != nullptr && unfinished_.contains(queue->id);
}

// A receive met more dead letters than one decision may move. It goes on behind them when the loop
// has served others, and comes back empty if that takes longer than any request may wait.
void Shard::wait_for_dead_letters(Job job, Duration wait) {
  const engine::Queue* queue = engine_.find(*engine::home_of(job.request));
  if (wait > Duration::zero() && !job.until) job.until = job.arrived + wait;
  go_on_soon(queue->id);
  if (draining_ || !waiting_.may_wait(job, reading_.steady)) return come_back_empty(std::move(job));
  waiting_.wait_for_read(queue->id, std::move(job));
}

void Shard::go_on_soon(QueueId queue) {
  if (!unfinished_.insert(queue).second) return;
  loop_->defer([alive = alive_, this, queue] {
    if (*alive) go_on_with(queue);
  });
}

void Shard::go_on_with(QueueId id) {
  owner_.check();
  unfinished_.erase(id);
  if (superseded_) return;
  read_clock();
  retry(waiting_.take_those_for(id));
  if (const engine::Queue* queue = engine_.find(id)) serve_polls_of(queue->ref);
  after_change();
}

void Shard::retry(std::deque<Job> line) {
  for (Job& job : line) execute(std::move(job));
}

// Whether execute() would not let it wait for room again: so it does not lose its place in line.
bool Shard::may_go_on(const Job& job) {
  const Action action = action_of(job.request);
  const journal::Room room = journal_->room();
  if (is_log_crowded()) return false;
  if (!is_admitted(action, room)) return room != journal::Room::kBusy;
  if (action == Action::kReceiveMessage && must_wait_for_answers()) return false;
  if (must_wait_to_read(job)) return false;
  if (!is_send(action)) return true;
  if (keeper_.is_journal_behind()) return false;
  if (!keeper_.is_crowded()) return true;
  return keeper_.admission(*engine::home_of(job.request)) != Keeper::Admission::kSoon;
}

void Shard::make_room() {
  waiting_.ask_again();
  if (!letting_go_on_) let_some_go_on();
}

// Thousands may wait, and each that goes on takes some of the room. So those that may go on do, some
// at a time, and the others are not touched.
void Shard::let_some_go_on() {
  std::size_t looks = kLooksAtATime;
  while (auto job =
             waiting_.take_next([this](const Job& first) { return may_go_on(first); }, looks))
    execute(std::move(*job));
  letting_go_on_ = waiting_.is_asking();
  if (!letting_go_on_) return;
  loop_->defer([alive = alive_, this] {
    if (!*alive) return;
    letting_go_on_ = false;
    if (superseded_) return;
    read_clock();
    let_some_go_on();
    after_change();
  });
}

// While the disk is full, every arrival waits. Memory that is full of one account's messages makes
// that account's arrivals wait, but not for so long that its source has no numbers left for others:
// what was handed over and waits is bounded.
bool Shard::has_room_for(const Transfer& arrival) const {
  if (journal_->room() != journal::Room::kPlenty) return false;
  if (!keeper_.is_crowded() || keeper_.admission(arrival.destination) == Keeper::Admission::kNow)
    return true;
  return !keeper_.disk_is_full() &&
         transfers_.holds_up_others(arrival, engine_.transfer_numbers() / kNumbersShare);
}

void Shard::retry_arrivals() {
  if (!transfers_.has_arrivals()) return;
  const bool more = transfers_.retry_arrivals(kArrivalsAtATime, [this](const Transfer& transfer) {
    if (!has_room_for(transfer)) return false;
    accept(transfer);
    return true;
  });
  if (!more || std::exchange(retrying_arrivals_, true)) return;
  loop_->defer([alive = alive_, this] {
    if (!*alive) return;
    retrying_arrivals_ = false;
    if (superseded_) return;
    read_clock();
    retry_arrivals();
    after_change();
  });
}

// Replies that wait are dropped, as if the process had died: what they tell may never have happened.
// Requests that nothing was decided for may be told to try elsewhere.
void Shard::stop_serving(std::string_view why) {
  owner_.check();
  if (std::exchange(superseded_, true)) return;
  committer_.drop_replies();
  peers_->moved(index_, why);
  for (auto& poll : polls_.take_all()) {
    const auto left = std::max(Duration(0), poll.deadline - reading_.steady);
    poll.request.wait_time_seconds = std::chrono::floor<std::chrono::seconds>(left).count();
    peers_->send_on(index_, {std::move(poll.request),
                             {},
                             poll.ticket,
                             reading_.steady,
                             std::move(poll.respond),
                             std::move(poll.guard)});
  }
  for (Job& job : waiting_.take_all()) peers_->send_on(index_, std::move(job));
}

void Shard::drain() {
  owner_.check();
  draining_ = true;
  if (superseded_) return;
  read_clock();
  for (auto& poll : polls_.take_all()) {
    engine_.watch(poll.request.queue, false);
    answer({std::move(poll.respond), ReceiveMessageResult{}});
  }
  for (Job& job : waiting_.take_those_for_room()) wait_for_room(std::move(job));
}

void Shard::hold_transfers(bool hold) {
  owner_.check();
  transfers_.hold(hold);
  if (hold) return;
  transfers_.send(committer_.durable(), engine_, *peers_);
  settle_verdicts();
  after_change();
}

void Shard::start_over() {
  transfers_.start_over(SourceEpoch(journal_->epoch().value()), engine_, *peers_);
  watch_departures();
}

void Shard::hand_over_again() {
  owner_.check();
  if (superseded_) return;
  // Without anything under way, nothing leaves now.
  if (!journal_->can_be_superseded() || !transfers_.is_unsettled(engine_.settled_below()))
    return start_over();
  if (std::exchange(proving_, true)) return;
  when_durable([this] {
    proving_ = false;
    start_over();
  });
}

// Where shards are on several nodes, what is handed over can get lost, and so can verdicts.
void Shard::watch_departures() {
  if (!journal_->can_be_superseded()) return;
  const TransferNo oldest = engine_.settled_below();
  if (!transfers_.is_unsettled(oldest)) {
    again_at_ = SteadyInstant::max();
    return;
  }
  if (again_at_ != SteadyInstant::max() && oldest == oldest_unsettled_) return;
  oldest_unsettled_ = oldest;
  again_after_ = patience_.hand_over_again;
  again_at_ = reading_.steady + again_after_;
  if (again_at_ < alarm_at_) arm_alarm();
}

// What waits at its target for room is not lost, and comes twice: so less and less often.
void Shard::hand_over_again_if_due() {
  if (reading_.steady < again_at_) return;
  again_after_ = std::min(2 * again_after_, kHandOverAgainMax);
  again_at_ = reading_.steady + again_after_;
  hand_over_again();
}

void Shard::take_verdict(const Settlement& settlement) {
  owner_.check();
  // Verdicts come in bursts: one record settles those that came together.
  if (!transfers_.has_verdicts()) settle_verdicts_soon();
  transfers_.add(settlement);
}

void Shard::settle_verdicts_soon() {
  loop_->defer([alive = alive_, this] {
    if (*alive) settle_verdicts();
  });
}

}  // namespace stanchion::broker
