#include "broker/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "broker/admission.h"
#include "model/action.h"
#include "model/limits.h"

namespace stanchion::broker {
namespace {

using journal::Room;

// While transfers are held back by a full disk, how often to look whether there is room again.
constexpr Duration kRetryInterval = std::chrono::seconds(1);

// The longest that the alarm is set for: it does not ring while the machine is suspended, and time
// that is moved by order does not make it ring sooner.
constexpr Duration kSleepMax = std::chrono::seconds(5);

// With so few who wait for a commit, not much is lost if they wait a moment longer.
constexpr std::size_t kFew = 4;

}  // namespace

Shard::Shard(engine::Options options, std::unique_ptr<journal::Journal> journal,
             std::shared_ptr<store::Store> store, const KeeperOptions& keeping, os::Time& time,
             os::Entropy& entropy)
    : engine_(options),
      journal_(std::move(journal)),
      keeper_(engine_, *journal_, std::move(store), keeping),
      time_(time),
      entropy_(entropy),
      index_(options.shard) {}

Shard::~Shard() {
  signal_->alive = false;
}

// Runs one decision and appends its record; returns what the decision returns. What fell due since
// the last one, at the same instant even, happens before it, as it will when the records are
// replayed.
template <class Decide>
auto Shard::decide(Decide&& choose) {
  engine_.advance(now_);
  record_.start(now_);
  engine::Decision decision{now_, engine::Dice(entropy_.next()), record_};
  const TransferNo before = engine_.next_transfer();
  if constexpr (std::is_void_v<decltype(choose(decision))>) {
    choose(decision);
    last_decision_blocked_ = decision.blocked;
    append_record(before);
  } else {
    auto result = choose(decision);
    last_decision_blocked_ = decision.blocked;
    append_record(before);
    return result;
  }
}

Status Shard::recover() {
  const auto checkpoint = keeper_.load(now_);
  if (!checkpoint) return std::unexpected(checkpoint.error());
  const auto visit = [&](Position, std::string_view bytes) -> Status {
    const auto record = parse_record(bytes);
    if (!record) return std::unexpected(record.error());
    now_ = std::max(now_, record->at);
    engine_.advance(now_);
    RETURN_IF_FAILED(keeper_.prepare(record->facts, now_));
    keeper_.appended(bytes.size());
    for (const Fact& fact : record->facts) engine_.apply(fact, now_);
    ++records_replayed_;
    return {};
  };
  RETURN_IF_FAILED(journal_->replay(checkpoint->next(), visit));
  appended_ = flushed_ = Position(journal_->next_position().value() - 1);
  engine_.take_awakened();
  engine_.forget_changed_by_time();
  return {};
}

void Shard::count_queues(QueueQuota& quota) {
  quota_ = &quota;
  engine_.for_each_queue([&](const engine::Queue& queue) { quota.add(queue.ref.account); });
}

Keeper::Callbacks Shard::callbacks() {
  return {.now = [this] { return read_clock(); },
          .when_durable = [this](Task task) { when_durable(std::move(task)); },
          .installed =
              [this](QueueId queue) {
                if (auto blocked = blocked_.extract(queue)) retry(std::move(blocked.mapped()));
                after_change();
              },
          .relieved =
              [this] {
                retry(std::exchange(throttled_, {}));
                after_change();
              },
          .damaged = [this](QueueId queue, const Failure& why) { set_aside(queue, why); },
          .failed = [this](const Failure& failure) { peers_->fatal(index_, failure); }};
}

void Shard::start(Loop& loop, Background& background, Peers& peers) {
  loop_ = &loop;
  peers_ = &peers;
  alarm_ = loop.make_alarm([this] { tick(); });
  const auto wake = [signal = signal_, this] {
    if (signal->posted.exchange(true)) return;
    loop_->post([signal, this] {
      if (signal->alive) on_durable();
    });
  };
  journal_->start({.durable = [wake](Position) { wake(); },
                   .roomier = wake,
                   .failed =
                       [signal = signal_, this](const Failure& failure) {
                         if (signal->alive) peers_->fatal(index_, failure);
                       }});
  keeper_.start(loop, background, callbacks(), read_clock());
  if (!engine_.founded()) {
    decide([&](engine::Decision& decision) {
      MacKey key;
      for (std::size_t at = 0; at < key.size(); at += sizeof(engine::Entropy)) {
        const engine::Entropy bits = entropy_.next();
        std::memcpy(key.data() + at, &bits, sizeof bits);
      }
      engine_.found(key, decision);
    });
  }
  for (const auto& [queue, why] : engine_.take_unreadable()) set_aside(queue, why);
  unsent_.push_back({appended_, engine_.next_transfer()});
  send_transfers();
  retry_held_transfers();
  after_change();
}

Instant Shard::read_clock() {
  reading_ = time_.read();
  now_ = std::max(now_, reading_.now);
  engine_.advance(now_);
  return now_;
}

// Time alone may have changed what this reply shows: if nothing was recorded since, that is.
void Shard::record_time() {
  if (!engine_.changed_by_time() || !journal::may_append(journal_->room())) return;
  record_.start(now_);
  append(engine_.next_transfer());
}

void Shard::append_record(TransferNo first_new_transfer) {
  if (!record_.empty()) append(first_new_transfer);
}

void Shard::append(TransferNo first_new_transfer) {
  engine_.forget_changed_by_time();
  appended_ = journal_->append(record_.bytes());
  keeper_.appended(record_.bytes().size());
  if (engine_.next_transfer() != first_new_transfer)
    unsent_.push_back({appended_, engine_.next_transfer()});
  if (!patient_) hurry_ = true;
  if (flush_deferred_) return;
  flush_deferred_ = true;
  loop_->defer([signal = signal_, this] {
    if (!signal->alive) return;
    flush_deferred_ = false;
    flush();
  });
}

// Has what the round appended committed, now or in a moment: that depends on who waits for it.
void Shard::flush() {
  if (appended_ == flushed_) return;
  if (hurry_ || served_polls_.size() + waiting_.size() > kFew) return flush_now();
  // Those who wait for messages here wait for a consumer whose next call lets them go. That call is
  // near once the consumer has its messages, and one commit does for both.
  if (journal_->durable() < flushed_) return;  // Then on_durable() comes back here.
  if (std::exchange(lingering_, true)) return;
  loop_->linger([signal = signal_, this] { return signal->alive && lingering_; },
                [signal = signal_, this] {
                  if (signal->alive) flush_now();
                });
}

void Shard::flush_now() {
  hurry_ = false;
  lingering_ = false;
  flushed_ = appended_;
  journal_->flush();
}

void Shard::submit(Request request, const engine::Neighbours& neighbours, Ticket ticket,
                   Respond respond, Guard guard) {
  read_clock();
  execute({std::move(request), neighbours, ticket, reading_.steady, std::move(respond),
           std::move(guard)});
  after_change();
}

void Shard::execute(Blocked work) {
  if (work.guard) {
    if (auto refusal = ask(work.guard, engine::home_of(work.request)))
      return work.respond(std::unexpected(std::move(*refusal)));
  }
  const Action action = action_of(work.request);
  const Room room = journal_->room();
  if (!is_admitted(action, room)) {
    if (room == Room::kBusy) return throttle(std::move(work));
    return work.respond(disk_is_full());
  }
  if (is_send(action) && keeper_.is_crowded()) {
    switch (keeper_.admission(*engine::home_of(work.request))) {
      case Keeper::Admission::kNow:
        break;
      case Keeper::Admission::kSoon:
        return throttle(std::move(work));
      case Keeper::Admission::kWithSpaceOnDisk:
        return work.respond(disk_is_full());
      case Keeper::Admission::kWhenDrained:
        return work.respond(refuse_for_memory(work.request));
    }
  }
  const engine::Queue* damaged = find_set_aside(work.request);
  const QueueId damaged_id = damaged != nullptr ? damaged->id : QueueId();
  if (damaged != nullptr) {
    if (auto refusal = set_aside_.refusal(action, damaged_id))
      return work.respond(std::unexpected(std::move(*refusal)));
  }
  // Who waits for the store is served in order of arrival.
  if (action == Action::kReceiveMessage && is_blocked(std::get<ReceiveMessage>(work.request).queue))
    return block(std::move(work));
  // If it ends none of the polls, it need not be committed alone.
  patient_ = is_send(action) && polls_.anyone_waits_for(*engine::home_of(work.request));
  Reply reply = decide_within_quota(work);
  patient_ = false;
  if (last_decision_blocked_) return block(std::move(work));
  if (action == Action::kReceiveMessage && reply && !draining_) {
    const auto& result = std::get<ReceiveMessageResult>(*reply);
    const SteadyInstant until = work.until.value_or(work.arrived + result.wait);
    if (result.messages.empty() && until > reading_.steady)
      return park({std::get<ReceiveMessage>(std::move(work.request)), work.ticket, until,
                   std::move(work.respond), std::move(work.guard)});
  }
  const bool deleted = action == Action::kDeleteQueue && reply;
  // Either gives its messages up, and the damage with them.
  if (reply && (deleted || action == Action::kPurgeQueue) && set_aside_.remove(damaged_id))
    peers_->healed(*engine::home_of(work.request));
  when_durable([respond = std::move(work.respond), reply = std::move(reply)]() mutable {
    respond(std::move(reply));
  });
  if (deleted)
    forget_polls_of(std::get<DeleteQueue>(work.request).queue,
                    {ErrorCode::kQueueDoesNotExist, "The specified queue does not exist."});
}

// Executes a request; one that makes a queue only if its account may have one more.
Reply Shard::decide_within_quota(const Blocked& work) {
  const auto execute_it = [&] {
    return decide([&](engine::Decision& decision) {
      return engine_.execute(work.request, work.neighbours, decision);
    });
  };
  const auto* create = std::get_if<CreateQueue>(&work.request);
  const auto* erase = std::get_if<DeleteQueue>(&work.request);
  if (quota_ == nullptr || (create == nullptr && erase == nullptr)) return execute_it();
  const QueueRef& queue = create != nullptr ? create->queue : erase->queue;
  const bool existed = engine_.find(queue) != nullptr;
  if (create != nullptr && !existed && !quota_->take(queue.account))
    return refuse(ErrorCode::kOverLimit,
                  fmt::format("The account {} has {} queues, as many as it may have here "
                              "(limits.queues_per_account).",
                              queue.account, quota_->max()));
  Reply reply = execute_it();
  const bool counted = create != nullptr || existed;
  if (counted && engine_.find(queue) == nullptr) quota_->give_back(queue.account);
  return reply;
}

bool Shard::is_blocked(const QueueRef& ref) const {
  if (blocked_.empty()) return false;
  const engine::Queue* queue = engine_.find(ref);
  return queue != nullptr && blocked_.contains(queue->id);
}

void Shard::block(Blocked work) {
  const auto home = engine::home_of(work.request);
  const engine::Queue* queue = home ? engine_.find(*home) : nullptr;
  CHECK(queue != nullptr, "only a queue can be waited for");
  if (set_aside_.contains(queue->id))
    return work.respond(std::unexpected(set_aside_.refusal(queue->id)));
  if (has_waited_too_long(work)) return work.respond(disk_is_too_slow());
  blocked_[queue->id].push_back(std::move(work));
}

void Shard::throttle(Blocked work) {
  if (draining_) return work.respond(server_is_stopping());
  if (has_waited_too_long(work))
    return work.respond(keeper_.is_crowded() ? refuse_for_memory(work.request)
                                             : disk_is_too_slow());
  throttled_.push_back(std::move(work));
}

Reply Shard::refuse_for_memory(const Request& send) const {
  const auto home = engine::home_of(send);
  const bool too_much = home && keeper_.exceeds_share(home->account);
  return too_much ? account_takes_too_much(home->account) : memory_is_full();
}

// Notes when the request has to be refused if it still waits.
bool Shard::has_waited_too_long(Blocked& work) {
  if (work.give_up == SteadyInstant::max()) work.give_up = reading_.steady + limits::kRoomWaitMax;
  if (work.give_up <= reading_.steady) return true;
  overdue_at_ = std::min(overdue_at_, work.give_up);
  return false;
}

void Shard::refuse_overdue() {
  if (reading_.steady < overdue_at_) return;
  overdue_at_ = SteadyInstant::max();
  for (Blocked& work : std::exchange(throttled_, {})) throttle(std::move(work));
  for (auto& [queue, waiting] : std::exchange(blocked_, {})) {
    for (Blocked& work : waiting) {
      if (has_waited_too_long(work)) {
        work.respond(disk_is_too_slow());
      } else {
        blocked_[queue].push_back(std::move(work));
      }
    }
  }
}

void Shard::retry(std::deque<Blocked> blocked) {
  for (Blocked& work : blocked) execute(std::move(work));
}

std::size_t Shard::requests_blocked() const {
  std::size_t count = throttled_.size();
  for (const auto& [queue, blocked] : blocked_) count += blocked.size();
  return count;
}

std::optional<Error> Shard::ask(Guard& guard, const std::optional<QueueRef>& home) const {
  const engine::Queue* queue = home ? engine_.find(*home) : nullptr;
  if (queue == nullptr) return guard(nullptr);
  const GuardedQueue view{queue->arn, queue->attributes().policy, queue->tags};
  return guard(&view);
}

void Shard::when_durable(Task send) {
  send_in_line(waiting_, std::move(send));
}

void Shard::send_in_line(std::deque<WaitingReply>& line, Task send) {
  record_time();
  if (line.empty() && journal_->durable() >= appended_) return send();
  line.push_back({appended_, std::move(send)});
}

void Shard::send_durable_replies() {
  const Position durable = journal_->durable();
  for (std::deque<WaitingReply>* replies : {&served_polls_, &waiting_}) {
    while (!replies->empty() && replies->front().position <= durable) {
      WaitingReply reply = std::move(replies->front());
      replies->pop_front();
      reply.send();
    }
  }
}

void Shard::on_durable() {
  // Cleared before the position is read: what becomes durable from now on posts again.
  signal_->posted = false;
  send_durable_replies();
  send_transfers();
  if (!flush_deferred_) flush();
  if (throttled_.empty() && unserved_.empty() && held_.empty()) return;
  if (!journal::may_append(journal_->room())) return;
  read_clock();
  retry(std::exchange(throttled_, {}));
  for (const QueueRef& queue : std::exchange(unserved_, {})) serve_polls_of(queue);
  retry_held_transfers();
  after_change();
}

void Shard::park(ParkedPolls::Poll poll) {
  engine_.watch(poll.request.queue, true);
  polls_.park(std::move(poll));
}

void Shard::cancel(Ticket ticket) {
  const auto poll = polls_.cancel(ticket);
  if (poll && !polls_.anyone_waits_for(poll->request.queue))
    engine_.watch(poll->request.queue, false);
  if (poll) return;
  const auto is_it = [&](const Blocked& work) {
    return work.ticket == ticket && action_of(work.request) == Action::kReceiveMessage;
  };
  for (auto it = blocked_.begin(); it != blocked_.end();) {
    std::erase_if(it->second, is_it);
    it = it->second.empty() ? blocked_.erase(it) : std::next(it);
  }
}

void Shard::forget_polls_of(const QueueRef& queue, const Error& why) {
  while (polls_.anyone_waits_for(queue)) {
    auto poll = polls_.take_first_for(queue);
    when_durable([respond = std::move(poll.respond), error = why]() mutable {
      respond(std::unexpected(std::move(error)));
    });
  }
  engine_.watch(queue, false);
}

const engine::Queue* Shard::find_set_aside(const Request& request) const {
  if (set_aside_.empty()) return nullptr;
  const auto home = engine::home_of(request);
  const engine::Queue* queue = home ? engine_.find(*home) : nullptr;
  return queue != nullptr && set_aside_.contains(queue->id) ? queue : nullptr;
}

// One damaged block is no reason to stop, and none that a restart would mend.
void Shard::set_aside(QueueId id, const Failure& why) {
  const engine::Queue* queue = engine_.find(id);
  if (queue == nullptr || !set_aside_.add(id, why)) return;
  peers_->damaged(queue->ref, why);
  forget_polls_of(queue->ref, set_aside_.refusal(id));
  // Those that wait for what cannot be read get their refusal now.
  if (auto blocked = blocked_.extract(id)) retry(std::move(blocked.mapped()));
}

void Shard::serve_polls() {
  for (auto queues = engine_.take_awakened(); !queues.empty(); queues = engine_.take_awakened())
    for (const QueueRef& queue : queues) serve_polls_of(queue);
}

void Shard::serve_polls_of(const QueueRef& queue) {
  while (ParkedPolls::Poll* poll = polls_.first_for(queue)) {
    // Only an attempt that is repeated gets something that others cannot get.
    if (!poll->request.attempt_id && !engine_.has_receivable(queue)) return;
    if (!is_admitted(Action::kReceiveMessage, journal_->room())) {
      unserved_.insert(queue);
      return;
    }
    if (poll->guard) {
      if (auto refusal = ask(poll->guard, queue)) {
        auto refused = polls_.take_first_for(queue);
        if (!polls_.anyone_waits_for(queue)) engine_.watch(queue, false);
        when_durable(
            [respond = std::move(refused.respond), refusal = std::move(*refusal)]() mutable {
              respond(std::unexpected(std::move(refusal)));
            });
        continue;
      }
    }
    const Request request = poll->request;
    Reply reply =
        decide([&](engine::Decision& decision) { return engine_.execute(request, {}, decision); });
    if (last_decision_blocked_) return;  // What it waits for will wake it again.
    if (reply && std::get<ReceiveMessageResult>(*reply).messages.empty()) return;
    auto served = polls_.take_first_for(queue);
    if (!polls_.anyone_waits_for(queue)) engine_.watch(queue, false);
    // Whoever waits for this group, or this queue, waits for this consumer: it gets its messages
    // before the call that let them go is answered.
    send_in_line(served_polls_,
                 [respond = std::move(served.respond), reply = std::move(reply)]() mutable {
                   respond(std::move(reply));
                 });
    // Everybody waits for this one: the disk had better work while others are executed.
    flush_now();
  }
}

void Shard::expire_polls() {
  while (auto poll = polls_.take_expired(reading_.steady)) {
    if (!polls_.anyone_waits_for(poll->request.queue)) engine_.watch(poll->request.queue, false);
    const engine::Queue* queue = engine_.find(poll->request.queue);
    if (queue != nullptr && (queue->stalled() || queue->waits_for_read())) {
      // Its messages are on their way from the store: it is not answered empty for that.
      block({std::move(poll->request),
             {},
             poll->ticket,
             reading_.steady,
             std::move(poll->respond),
             std::move(poll->guard),
             poll->deadline});
      continue;
    }
    when_durable(
        [respond = std::move(poll->respond)]() mutable { respond(ReceiveMessageResult{}); });
  }
}

void Shard::tick() {
  alarm_at_ = SteadyInstant::max();  // Whatever it was set for, time may have been moved since.
  read_clock();
  refuse_overdue();
  retry_held_transfers();
  settle_verdicts();
  after_change();
}

// What follows from any change: tasks move on, polls are served, the next deadline is set.
void Shard::after_change() {
  if (engine_.has_move_tasks() && journal_->room() == Room::kPlenty)
    decide([&](engine::Decision& decision) { engine_.move_messages(decision); });
  if (!polls_.empty()) {
    serve_polls();
    expire_polls();
  }
  if (!unsent_.empty() && journal_->durable() >= unsent_.front().position) send_transfers();
  keeper_.work(appended_, now_);
  arm_alarm();
}

void Shard::arm_alarm() {
  Instant next = std::min(engine_.next_deadline(), keeper_.next_deadline());
  const bool held_up = !held_.empty() || !accepted_.empty() || !refused_.empty();
  // A move task that could go on but for the full disk looks again later, not at once.
  if (next <= now_ && engine_.has_move_tasks() && journal_->room() != Room::kPlenty)
    next = now_ + kRetryInterval;
  if (held_up) next = std::min(next, now_ + kRetryInterval);
  const SteadyInstant wait_ends = std::min(polls_.next_deadline(), overdue_at_);
  if (next == kNever && wait_ends == SteadyInstant::max()) return;
  // While time runs slower than the steady clock, this is too soon, and is set again then.
  const SteadyInstant now = reading_.steady;
  Duration wait = reading_.soonest(std::clamp(next - now_, Duration(0), 2 * kSleepMax));
  if (wait_ends != SteadyInstant::max()) wait = std::min(wait, wait_ends - now);
  wait = std::clamp(wait, Duration(1), kSleepMax);
  if (now + wait >= alarm_at_) return;
  alarm_at_ = now + wait;
  alarm_->set(wait);
}

void Shard::hold_transfers(bool hold) {
  transfers_held_ = hold;
  if (hold) return;
  send_transfers();
  settle_verdicts();
}

void Shard::save(Keeper::Saving saving) {
  read_clock();
  keeper_.save(std::move(saving));
  after_change();
}

void Shard::send_transfers() {
  if (transfers_held_) return;
  TransferNo end = handed_over_;
  while (!unsent_.empty() && unsent_.front().position <= journal_->durable()) {
    end = std::max(end, unsent_.front().end);
    unsent_.pop_front();
  }
  if (end == handed_over_) return;
  for (Transfer& transfer : engine_.transfers_from(handed_over_)) {
    if (transfer.number >= end) break;
    const ShardIndex target = peers_->shard_of(transfer.destination);
    peers_->deliver(target, std::move(transfer));
  }
  handed_over_ = end;
}

void Shard::deliver(Transfer transfer) {
  // A shard that started earlier hands over before this one has; start() comes back to it.
  if (loop_ == nullptr) return held_.push_back(std::move(transfer));
  // While the disk is full, arrivals wait here; they are safe in their source's journal.
  if (!held_.empty() || journal_->room() != Room::kPlenty) {
    held_.push_back(std::move(transfer));
    return arm_alarm();
  }
  read_clock();
  const TransferVerdict verdict =
      decide([&](engine::Decision& decision) { return engine_.accept(transfer, decision); });
  when_durable([this, source = transfer.source, number = transfer.number, verdict] {
    peers_->tell_verdict(source, number, verdict);
  });
  after_change();
}

void Shard::retry_held_transfers() {
  if (journal_->room() != Room::kPlenty) return;
  std::deque<Transfer> held;
  std::swap(held, held_);
  for (Transfer& transfer : held) deliver(std::move(transfer));
}

void Shard::take_verdict(TransferNo number, TransferVerdict verdict) {
  // Verdicts come in bursts: one record settles all that came together.
  if (accepted_.empty() && refused_.empty())
    loop_->defer([signal = signal_, this] {
      if (signal->alive) settle_verdicts();
    });
  (verdict == TransferVerdict::kAccepted ? accepted_ : refused_).push_back(number);
}

void Shard::settle_verdicts() {
  if (transfers_held_ || (accepted_.empty() && refused_.empty())) return;
  // Not even this can be written: the messages stay where they are until tick() comes back here.
  if (!journal::may_append(journal_->room())) return arm_alarm();
  read_clock();
  std::vector<TransferNo> accepted, refused;
  std::swap(accepted, accepted_);
  std::swap(refused, refused_);
  decide([&](engine::Decision& decision) {
    engine_.settle(accepted, decision);
    for (const TransferNo number : refused) engine_.refuse_transfer(number, decision);
  });
  after_change();
}

void Shard::drain() {
  draining_ = true;
  read_clock();
  for (auto& poll : polls_.take_all()) {
    engine_.watch(poll.request.queue, false);
    when_durable(
        [respond = std::move(poll.respond)]() mutable { respond(ReceiveMessageResult{}); });
  }
  for (Blocked& work : std::exchange(throttled_, {})) throttle(std::move(work));
}

Status Shard::close() {
  RETURN_IF_FAILED(journal_->close());
  // Nothing follows from that any more: what waits for room is not answered.
  send_durable_replies();
  return {};
}

}  // namespace stanchion::broker
