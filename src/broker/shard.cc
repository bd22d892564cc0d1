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

// While transfers are held back by a full disk, how often to check whether there is room again.
constexpr Duration kRetryInterval = std::chrono::seconds(1);

// The longest time that the timer is set for: it does not fire while the machine is suspended, and
// moving the server's time does not make it fire sooner.
constexpr Duration kSleepMax = std::chrono::seconds(5);

}  // namespace

Shard::Shard(engine::Options options, std::unique_ptr<journal::Journal> journal,
             std::shared_ptr<store::Store> store, const KeeperOptions& keeping, os::Time& time,
             os::Entropy& entropy, const Patience& patience)
    : engine_(options),
      journal_(std::move(journal)),
      patience_(patience),
      committer_(*journal_, patience),
      keeper_(engine_, *journal_, std::move(store), keeping),
      time_(time),
      entropy_(entropy),
      index_(options.shard) {}

Shard::~Shard() {
  if (answers_) answers_->wait_no_longer(this);
  *alive_ = false;
}

// Makes one decision and appends its record. Whatever fell due since the last decision, even at the
// same instant, happens before it, as it will when the records are replayed.
template <class Decide>
auto Shard::decide(Decide&& choose, Haste haste) {
  engine_.advance(now_);
  record_.start(now_);
  engine::Decision decision{now_, engine::Random(entropy_.next()), record_, nothing_leaves_};
  const TransferNo before = engine_.next_transfer();
  if constexpr (std::is_void_v<decltype(choose(decision))>) {
    choose(decision);
    if (!record_.empty()) append(before, haste);
  } else {
    Decided<decltype(choose(decision))> decided{choose(decision)};
    decided.blocked = decision.blocked;
    decided.unfinished = decision.unfinished;
    if (!record_.empty()) append(before, haste);
    // On a journal of one's own the server was restored from an older copy: then clients may have
    // such receipts, and they mean nothing.
    if (decision.newer_receipt_seen && journal_->can_be_superseded())
      stop_serving("a receipt names what only a later owner can have done");
    return decided;
  }
}

Keeper::Callbacks Shard::callbacks() {
  return {.now = [this] { return following_ ? now_ : read_clock(); },
          .when_durable =
              [this](Task task) {
                if (following_) return task();  // What can be read from the log is durable.
                when_durable(std::move(task));
              },
          .installed =
              [this](QueueId queue) {
                if (following_) return resume_();
                retry(waiting_.take_those_for(queue));
                engine_.forget_peeked(queue);
                if (waiting_.anyone_waits_for_room()) make_room();
                after_change();
              },
          .relieved =
              [this] {
                if (following_) return resume_();
                make_room();
                retry_arrivals();
                after_change();
              },
          .damaged = [this](QueueId queue, const Failure& why) { set_aside(queue, why); },
          .failed = [this](const Failure& failure) { peers_->fatal(index_, failure); }};
}

// Those that have nothing to do when the loop begins.
template <class Do>
void Shard::for_each_part(const Do& one) {
  one(owner_);
  one(transfers_);
  one(waiting_);
  one(polls_);
  one(set_aside_);
}

void Shard::start(Loop& loop, Background& background, Peers& peers) {
  CHECK(loop.is_current(), "a shard is started on its loop");
  for_each_part([&](auto& part) { part.start(loop); });
  loop_ = &loop;
  peers_ = &peers;
  alarm_ = loop.make_alarm([this] { tick(); });
  committer_.start(
      loop, [this] { on_durable(); },
      [this](const Failure& failure) { peers_->fatal(index_, failure); },
      [this] { stop_serving("its log has another owner"); });
  if (std::exchange(following_, false)) {
    CHECK(applied_.next() == journal_->next_position(), "the log was read to its end");
    finish_reading();
    read_clock();
  } else {
    keeper_.start(loop, background, callbacks(), read_clock());
  }
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
  // An earlier owner's verdicts do not count. The claim was read a moment ago, which proves enough.
  if (journal_->can_be_superseded()) start_over();
  transfers_.note_departures(committer_.appended(), engine_.next_transfer(),
                             engine_.settled_below());
  transfers_.send(committer_.durable(), engine_, *peers_);
  retry_arrivals();
  after_change();
}

Instant Shard::read_clock() {
  reading_ = time_.read();
  committer_.set_time(reading_.steady);
  now_ = std::max(now_, reading_.now);
  engine_.advance(now_);
  return now_;
}

// Time alone may have changed what this reply shows: if nothing was recorded since, an empty record
// is.
void Shard::record_time() {
  if (!engine_.changed_by_time() || !journal::may_append(journal_->room())) return;
  record_.start(now_);
  append(engine_.next_transfer(), Haste::kNow);
}

void Shard::append(TransferNo first_new_transfer, Haste haste) {
  CHECK(record_.messages() <= engine_.record_messages_max(), "E7");
  engine_.forget_changed_by_time();
  last_recorded_ = now_;
  const Position position = committer_.append(record_.bytes(), haste);
  keeper_.appended(record_.bytes().size());
  if (engine_.next_transfer() != first_new_transfer)
    transfers_.note_departures(position, engine_.next_transfer(), engine_.settled_below());
}

void Shard::submit(Request&& request, const engine::Neighbours& neighbours, Ticket ticket,
                   Respond respond, Guard guard) {
  CHECK(loop_ != nullptr, "requests come behind start()");
  owner_.check();
  read_clock();
  execute({std::move(request), neighbours, ticket, reading_.steady, std::move(respond),
           std::move(guard)});
  after_change();
}

// Whether what left now could not arrive. The queues of a fleet may be on other disks.
bool Shard::is_disk_full(Room room) const {
  return room == Room::kReserveOnly || room == Room::kNone ||
         (keeper_.disk_is_full() && !journal_->can_be_superseded());
}

// Whether move tasks may take messages out.
bool Shard::may_leave() const {
  const Room room = journal_->room();
  return room == Room::kPlenty && !is_disk_full(room);
}

bool Shard::is_admitted_now(Job& job) {
  const Action action = action_of(job.request);
  const Room room = journal_->room();
  nothing_leaves_ = is_disk_full(room);
  if (is_log_crowded()) {
    wait_for_room(std::move(job));
    return false;
  }
  if (!is_admitted(action, room)) {
    if (room == Room::kBusy) {
      wait_for_room(std::move(job));
    } else {
      job.respond(disk_is_full());
    }
    return false;
  }
  if (const auto* receive = std::get_if<ReceiveMessage>(&job.request);
      receive != nullptr && receive->attempt_id && is_beyond_memory(*receive)) {
    job.respond(too_many_attempts());
    return false;
  }
  if ((action == Action::kReceiveMessage && must_wait_for_answers()) || must_wait_to_read(job)) {
    wait_for_room(std::move(job));
    return false;
  }
  if (!is_send(action)) return true;
  if (keeper_.is_journal_behind()) {
    wait_for_room(std::move(job));
    return false;
  }
  if (!keeper_.is_crowded()) return true;
  switch (keeper_.admission(*engine::home_of(job.request))) {
    case Keeper::Admission::kNow:
      return true;
    case Keeper::Admission::kSoon:
      wait_for_room(std::move(job));
      return false;
    case Keeper::Admission::kWithSpaceOnDisk:
      job.respond(disk_is_full());
      return false;
    case Keeper::Admission::kWhenDrained:
      job.respond(refuse_for_memory(job.request));
      return false;
  }
  check_failed("admission", "no such admission", std::source_location::current());
}

// A repeated attempt takes no more memory than it does already.
bool Shard::is_beyond_memory(const ReceiveMessage& receive) const {
  if (keeper_.may_remember(receive.queue)) return false;
  const engine::Queue* queue = engine_.find(receive.queue);
  return queue != nullptr && queue->fifo() && queue->find_attempt(*receive.attempt_id) == nullptr;
}

void Shard::execute(Job&& job) {
  if (superseded_) return peers_->send_on(index_, std::move(job));
  if (job.guard) {
    if (auto refusal = ask(*job.guard, engine::home_of(job.request)))
      return answer({std::move(job.respond), std::unexpected(std::move(*refusal))},
                    Proven::kRecently);
  }
  if (!is_admitted_now(job)) return;
  const Action action = action_of(job.request);
  const engine::Queue* damaged = find_set_aside(job.request);
  const QueueId damaged_id = damaged != nullptr ? damaged->id : QueueId();
  if (damaged != nullptr) {
    if (auto refusal = set_aside_.refusal(action, damaged_id))
      return job.respond(std::unexpected(std::move(*refusal)));
  }
  // Requests that wait for the store are served in order of arrival.
  if (action == Action::kReceiveMessage &&
      waits_for_read(std::get<ReceiveMessage>(job.request).queue))
    return wait_for_read(std::move(job));
  // A send while polls are parked is patient: unless it serves one of them, it need not have a
  // commit of its own.
  const bool patient =
      !polls_.empty() && is_send(action) && polls_.anyone_waits_for(*engine::home_of(job.request));
  auto [reply, blocked, unfinished] =
      decide_within_quota(job, patient ? Haste::kPatient : Haste::kNow);
  job.has_asked = blocked;
  if (blocked) return wait_for_read(std::move(job));
  if (unfinished)
    return wait_for_dead_letters(std::move(job), std::get<ReceiveMessageResult>(*reply).wait);
  bool found_nothing = false;
  if (action == Action::kReceiveMessage && reply && !draining_) {
    const auto& result = std::get<ReceiveMessageResult>(*reply);
    const SteadyInstant until = job.until.value_or(job.arrived + result.wait);
    if (result.messages.empty() && until > reading_.steady)
      return park({std::get<ReceiveMessage>(std::move(job.request)), job.ticket, until,
                   std::move(job.respond), std::move(job.guard)});
    found_nothing = result.messages.empty();
    if (found_nothing)
      engine_.note_empty_receive(*engine::home_of(job.request), job.until.has_value(), now_);
  }
  const bool deleted = action == Action::kDeleteQueue && reply;
  // Both purge and delete give up the queue's messages, and with them the damage.
  if (reply && (deleted || action == Action::kPurgeQueue) && set_aside_.remove(damaged_id))
    peers_->healed(*engine::home_of(job.request));
  const bool shows_only = traits_of(action).effect == Effect::kReads || found_nothing;
  const bool changes = !shows_only && reply;
  Respond respond = with_claim(reply, std::move(job.respond));
  answer({std::move(respond), std::move(reply), changes},
         shows_only ? Proven::kRecently : Proven::kNow);
  if (deleted)
    forget_polls_of(std::get<DeleteQueue>(job.request).queue,
                    {ErrorCode::kQueueDoesNotExist, "The specified queue does not exist."});
}

// Executes a request; one by which queues take more memory only if their account may have that much,
// and one more queue.
Shard::Decided<Reply> Shard::decide_within_quota(const Job& job, Haste haste) {
  const auto execute_it = [&](const engine::Neighbours& neighbours) {
    return decide(
        [&](engine::Decision& decision) {
          return engine_.execute(job.request, neighbours, decision);
        },
        haste);
  };
  const Action action = action_of(job.request);
  if (quota_ == nullptr || !changes_settings(action)) return execute_it(job.neighbours);
  const auto home = engine::home_of(job.request);
  if (!home) return execute_it(job.neighbours);
  const QueueRef& queue = *home;
  const auto bytes = [&] {
    const engine::Queue* found = engine_.find(queue);
    return found == nullptr ? 0 : found->settings_bytes();
  };
  const std::size_t before = bytes();
  const bool creates = action == Action::kCreateQueue && before == 0;
  if (creates && !quota_->take(queue.account))
    return {refuse(ErrorCode::kOverLimit,
                   fmt::format("The account {} has {} queues, as many as it may have here "
                               "(limits.queues_per_account).",
                               queue.account, quota_->max()))};
  engine::Neighbours neighbours = job.neighbours;
  neighbours.settings_bytes_left = quota_->bytes_left(queue.account);
  auto decided = execute_it(neighbours);
  const std::size_t after = bytes();
  if ((creates || before > 0) && after == 0) quota_->give_back(queue.account);
  quota_->change_bytes(queue.account, before, after);
  return decided;
}

std::optional<Error> Shard::ask(RequestGuard& guard, const std::optional<QueueRef>& home) const {
  const engine::Queue* queue = home ? engine_.find(*home) : nullptr;
  if (queue == nullptr) return guard.check(nullptr);
  const GuardedQueue view{queue->arn, queue->attributes().policy, queue->tags};
  return guard.check(&view);
}

void Shard::when_durable(Task task, Proven proven) {
  record_time();
  committer_.when_durable(std::move(task), proven);
}

void Shard::answer(ClientReply reply, Proven proven) {
  record_time();
  committer_.answer_when_durable(std::move(reply), proven);
  if (committer_.next_deadline() < alarm_at_) arm_alarm();
}

void Shard::on_durable() {
  owner_.check();
  if (superseded_) return;
  transfers_.send(committer_.durable(), engine_, *peers_);
  watch_departures();
  committer_.go_on();
  // A transfer that is left may have to be read.
  if (!waiting_.anyone_waits_for_room() && unserved_.empty() && !transfers_.has_arrivals() &&
      !transfers_.may_send(committer_.durable()))
    return;
  if (!journal::may_append(journal_->room())) return;
  serve_who_waits();
}

void Shard::serve_who_waits() {
  read_clock();
  make_room();
  for (const QueueRef& queue : std::exchange(unserved_, {})) serve_polls_of(queue);
  retry_arrivals();
  after_change();
}

void Shard::park(ParkedPolls::Poll poll) {
  engine_.watch(poll.request.queue, true);
  polls_.park(std::move(poll));
}

void Shard::cancel(Ticket ticket) {
  owner_.check();
  const auto poll = polls_.cancel(ticket);
  if (poll && !polls_.anyone_waits_for(poll->request.queue))
    engine_.watch(poll->request.queue, false);
  if (!poll) waiting_.cancel(ticket);
}

ParkedPolls::Poll Shard::take_first_poll_of(const QueueRef& queue) {
  auto poll = polls_.take_first_for(queue);
  if (!polls_.anyone_waits_for(queue)) engine_.watch(queue, false);
  return poll;
}

void Shard::forget_polls_of(const QueueRef& queue, const Error& why) {
  while (polls_.anyone_waits_for(queue)) {
    auto poll = polls_.take_first_for(queue);
    answer({std::move(poll.respond), std::unexpected(why)});
  }
  engine_.watch(queue, false);
}

const engine::Queue* Shard::find_set_aside(const Request& request) const {
  if (set_aside_.empty()) return nullptr;
  const auto home = engine::home_of(request);
  const engine::Queue* queue = home ? engine_.find(*home) : nullptr;
  return queue != nullptr && set_aside_.contains(queue->id) ? queue : nullptr;
}

// One damaged block is no reason to end the process, and a restart would not repair it.
void Shard::set_aside(QueueId id, const Failure& why) {
  const engine::Queue* queue = engine_.find(id);
  if (queue == nullptr || !set_aside_.add(id, why)) return;
  peers_->damaged(queue->ref, why);
  forget_polls_of(queue->ref, set_aside_.refusal(id));
  // Requests that wait for unreadable data are refused now.
  retry(waiting_.take_those_for(id));
}

void Shard::serve_polls() {
  for (auto queues = engine_.take_awakened(); !queues.empty(); queues = engine_.take_awakened())
    for (const QueueRef& queue : queues) serve_polls_of(queue);
}

void Shard::serve_polls_of(const QueueRef& queue) {
  if (is_unfinished(queue)) return;  // go_on_with() serves them.
  while (ParkedPolls::Poll* poll = polls_.first_for(queue)) {
    // Only a repeated attempt can get something that other receives cannot.
    if (!poll->request.attempt_id && !engine_.has_receivable(queue)) return;
    const Room room = journal_->room();
    nothing_leaves_ = is_disk_full(room);
    if (must_wait_for_answers() || !is_admitted(Action::kReceiveMessage, room)) {
      unserved_.insert(queue);
      return;
    }
    if (poll->guard) {
      if (auto refusal = ask(*poll->guard, queue)) {
        auto refused = take_first_poll_of(queue);
        answer({std::move(refused.respond), std::unexpected(std::move(*refusal))});
        continue;
      }
    }
    const Request request = poll->request;
    auto [reply, blocked, unfinished] =
        decide([&](engine::Decision& decision) { return engine_.execute(request, {}, decision); });
    if (blocked) return;  // The read that it waits for will wake it again.
    if (unfinished) return go_on_soon(engine_.find(queue)->id);
    if (reply && std::get<ReceiveMessageResult>(*reply).messages.empty()) return;
    auto served = take_first_poll_of(queue);
    record_time();
    // Parked receives of this group, or this queue, wait for this consumer: they get their messages
    // before the call that unlocked them is answered.
    const bool changes{reply};
    Respond respond = with_claim(reply, std::move(served.respond));
    committer_.answer_when_durable_first({std::move(respond), std::move(reply), changes});
    // Other consumers wait for this one: the disk should work while further requests are executed.
    committer_.flush_now();
  }
}

void Shard::expire_polls() {
  while (auto poll = polls_.take_expired(reading_.steady)) {
    if (!polls_.anyone_waits_for(poll->request.queue)) engine_.watch(poll->request.queue, false);
    const engine::Queue* queue = engine_.find(poll->request.queue);
    if (queue != nullptr &&
        (queue->stalled() || queue->waits_for_read() || unfinished_.contains(queue->id))) {
      // Its messages are being read from the store, or are behind dead letters that are being moved
      // away, so it is not answered empty.
      wait_for_read({std::move(poll->request),
                     {},
                     poll->ticket,
                     reading_.steady,
                     std::move(poll->respond),
                     std::move(poll->guard),
                     poll->deadline});
      continue;
    }
    engine_.note_empty_receive(poll->request.queue, true, now_);
    answer({std::move(poll->respond), ReceiveMessageResult{}}, Proven::kRecently);
  }
}

void Shard::tick() {
  owner_.check();
  if (superseded_) return;
  alarm_at_ = SteadyInstant::max();  // Time may have been moved since the timer was set.
  read_clock();
  refuse_overdue();
  retry_arrivals();
  settle_verdicts();
  hand_over_again_if_due();
  after_change();
}

// What follows from any change: move tasks advance, polls are served, the next deadline is set.
void Shard::after_change() {
  if (superseded_ || following_) return;
  if (engine_.has_move_tasks() && may_leave())
    decide([&](engine::Decision& decision) { engine_.move_messages(decision); });
  if (!polls_.empty()) {
    serve_polls();
    expire_polls();
  }
  if (transfers_.may_send(committer_.durable()))
    transfers_.send(committer_.durable(), engine_, *peers_);
  const bool may_save = record_time_of_checkpoint();
  keeper_.work(committer_.appended(), now_, may_save);
  watch_departures();
  arm_alarm();
}

void Shard::arm_alarm() {
  Instant checkpoint = keeper_.next_deadline();
  if (checkpoint <= now_ && !journal::may_append(journal_->room()))
    checkpoint = now_ + kRetryInterval;
  Instant next = std::min(engine_.next_deadline(), checkpoint);
  const bool held_up = transfers_.has_arrivals() || transfers_.has_verdicts();
  // A move task that only a full disk holds back tries again later, not at once.
  if (next <= now_ && engine_.has_move_tasks() && !may_leave()) next = now_ + kRetryInterval;
  if (held_up) next = std::min(next, now_ + kRetryInterval);
  const SteadyInstant wait_ends = std::min(
      {polls_.next_deadline(), waiting_.next_deadline(), committer_.next_deadline(), again_at_});
  if (next == kNever && wait_ends == SteadyInstant::max()) return;
  // While time runs slower than the steady clock, the timer fires too soon, and is set again then.
  // While it stands still, because the owner before had a clock that is ahead, it first catches up.
  const SteadyInstant now = reading_.steady;
  const Duration left = next <= now_ ? Duration(0) : next - reading_.now;
  Duration wait = reading_.soonest(std::min(left, 2 * kSleepMax));
  if (wait_ends != SteadyInstant::max()) wait = std::min(wait, wait_ends - now);
  wait = std::clamp(wait, Duration(1), kSleepMax);
  if (now + wait >= alarm_at_) return;
  alarm_at_ = now + wait;
  alarm_->set(wait);
}

void Shard::back_up(Keeper::Backup backup) {
  owner_.check();
  if (!following_) read_clock();
  keeper_.back_up(std::move(backup));
  if (following_) return resume_();
  after_change();
}

void Shard::deliver(Transfer transfer, SourceEpoch epoch) {
  owner_.check();
  if (superseded_) return;  // Its source still has it, and will find the new owner.
  if (!transfers_.is_in_turn(transfer, epoch)) return;
  // A shard that started earlier may hand over before this one has started; start() comes back to
  // these.
  if (loop_ == nullptr) return transfers_.keep(std::move(transfer));
  // While the disk or memory is full, arrivals wait here; they are safe in their source's journal.
  if (transfers_.anything_waits_for(transfer.destination) || !has_room_for(transfer)) {
    transfers_.keep(std::move(transfer));
    return arm_alarm();
  }
  read_clock();
  accept(transfer);
  after_change();
}

void Shard::accept(const Transfer& transfer) {
  const TransferVerdict verdict =
      decide([&](engine::Decision& decision) { return engine_.accept(transfer, decision); }).result;
  when_durable([this, source = transfer.source,
                settlement = Settlement{transfer.number, transfer.attempt, verdict}] {
    peers_->tell_verdict(source, settlement);
  });
}

void Shard::settle_verdicts() {
  owner_.check();
  if (superseded_) return;
  if (!transfers_.may_settle()) return;
  // Not even this can be written: the messages stay where they are until tick() retries.
  if (!journal::may_append(journal_->room())) return arm_alarm();
  read_clock();
  ShardTransfers::Verdicts verdicts = transfers_.take_verdicts(engine_.decision_messages());
  if (transfers_.has_verdicts()) settle_verdicts_soon();
  // What was handed over twice is answered twice.
  verdicts.keep_once([this](TransferNo number) { return engine_.is_under_way(number); });
  if (verdicts.empty()) return;
  decide([&](engine::Decision& decision) {
    engine_.settle(verdicts.accepted, decision);
    for (const TransferNo number : verdicts.refused) engine_.refuse_transfer(number, decision);
  });
  after_change();
}

Status Shard::close() {
  for_each_part([](auto& part) { part.stop(); });
  committer_.stop();
  keeper_.stop();
  if (answers_) answers_->wait_no_longer(this);
  RETURN_IF_FAILED(journal_->close());
  // Nothing is executed any more: durable replies are sent, but requests that wait for room stay
  // unanswered.
  committer_.send_durable();
  return {};
}

}  // namespace stanchion::broker
