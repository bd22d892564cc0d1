#include "worker/consumer.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "worker/copies.h"

namespace stanchion::worker {
namespace {

using std::chrono::seconds;

constexpr int kDoublingsMax = 10;

// Whether another try cannot change the answer.
bool is_final(const client::Error& error) {
  return error.fault == client::Fault::kSender && !error.throttled;
}

// The place that an entry of an answer names, if it is one of the batch.
std::optional<std::size_t> place_of(const std::string& id, std::size_t size) {
  const auto at = parse_decimal(id);
  if (!at || *at >= size) return std::nullopt;
  return static_cast<std::size_t>(*at);
}

using Errors = std::vector<std::optional<client::Error>>;

// Of each entry of a batch of deletes, why it was not deleted. One that the answer does not name may
// be tried again.
Errors errors_of(const client::Outcome<client::DeleteMessageBatchResult>& outcome,
                 std::size_t size) {
  if (!outcome) return Errors(size, outcome.error());
  Errors errors(size, client::Error{.code = client::code::kBadAnswer,
                                    .message = "the answer to the batch does not name it",
                                    .may_have_happened = true});
  for (const auto& entry : outcome->successful)
    if (const auto at = place_of(entry.id, size)) errors[*at].reset();
  for (const auto& entry : outcome->failed)
    if (const auto at = place_of(entry.id, size))
      errors[*at] = client::Error{
          .code = entry.code,
          .message = entry.message,
          .http_status = 200,
          .request_id = outcome.info().request_id,
          .fault = entry.sender_fault ? client::Fault::kSender : client::Fault::kReceiver};
  return errors;
}

}  // namespace

Consumer::Consumer(ConsumerOptions options, ConsumerPort& port, TaskIds& ids)
    : options_(std::move(options)),
      port_(port),
      ids_(ids),
      monitor_(
          options_.visibility, [this](ExtensionBatch batch) { port_.extend(std::move(batch)); },
          [this](const Task& task, Loss loss) {
            ++figures_.lost;
            port_.lost(task, loss);
          }),
      rate_(options_.rate_max) {
  CHECK(!options_.origin.queue_url.empty(), "a consumer has a queue");
}

std::optional<Instant> Consumer::poll(const PollBudget& budget, Instant now) {
  while (!stopped_) {
    if (now < poll_not_before_) return poll_not_before_;
    if (polls_.size() >= (busy_ ? budget.polls_max : 1)) return std::nullopt;
    if (budget.places <= reserved_) return std::nullopt;
    const std::size_t count = std::min(kReceiveMax, budget.places - reserved_);
    // Several receives at the same time only if they are full ones.
    if (!polls_.empty() && count < kReceiveMax) return std::nullopt;
    const std::size_t tokens = rate_.available(now);
    if (tokens == 0) return rate_.next(now);
    poll_not_before_ = now + budget.pause;
    receive(std::min(count, tokens));
    CHECK(reserved_ <= budget.places, "CU1, WK2: every message has a place");
  }
  return std::nullopt;
}

void Consumer::receive(std::size_t count) {
  CHECK(count > 0 && count <= kReceiveMax, "CU1: a receive asks for 1 to 10 messages");
  rate_.take(count);
  reserved_ += count;
  const std::uint64_t poll = ++last_poll_;
  polls_.emplace(poll, Poll{.call = port_.receive(poll, count), .count = count});
}

void Consumer::rest_until(Instant time) {
  poll_not_before_ = std::max(poll_not_before_, time);
}

void Consumer::cancel_polls() {
  for (const auto& [number, poll] : polls_) port_.cancel(poll.call);
}

std::vector<Task> Consumer::received(std::uint64_t poll,
                                     client::Outcome<client::ReceiveMessageResult> outcome,
                                     Instant now) {
  const auto answered = polls_.extract(poll);
  CHECK(!answered.empty(), "CU1: a receive is answered once");
  const std::size_t count = answered.mapped().count;
  CHECK(reserved_ >= count, "CU1: the places of a receive were reserved");
  reserved_ -= count;
  if (!outcome) {
    rate_.settle(count, 0);
    busy_ = false;
    if (stopped_ || outcome.error().code == client::code::kCancelled) return {};
    const int doublings = std::min(failures_++, kDoublingsMax);
    rest_until(now +
               std::min(options_.receive_again_max, options_.receive_again * (1 << doublings)));
    port_.report("cannot receive: " + outcome.error().to_string());
    return {};
  }
  failures_ = 0;
  rate_.settle(count, outcome->messages.size() + outcome->damaged.size());
  figures_.damaged += outcome->damaged.size();
  busy_ = !outcome->messages.empty();
  if (!busy_) rest_until(now + options_.after_nothing);
  std::vector<Task> tasks;
  for (client::Message& message : outcome->messages) {
    tasks.push_back(make_task(std::move(message)));
    ++figures_.received;
    if (tasks.back()->receive_count > 1) ++figures_.redelivered;
    monitor_.add(tasks.back(), now);
  }
  if (stopped_) give_back(std::exchange(tasks, {}));
  if (const auto tick = monitor_.next_tick()) port_.tick_by(*tick);
  return tasks;
}

Task Consumer::make_task(client::Message message) {
  const TaskOrigin& origin = options_.origin;
  TaskInformation task;
  task.id = ids_.next();
  task.message_id = std::move(message.message_id);
  task.queue_name = origin.queue_name;
  task.queue_url = origin.queue_url;
  task.queue_arn = origin.queue_arn;
  task.receipt_handle = std::move(message.receipt_handle);
  task.body = std::move(message.body);
  task.receive_count = number_in(message.attributes, "ApproximateReceiveCount", 1);
  task.poison = origin.poison;
  task.attributes = std::move(message.attributes);
  task.message_attributes = std::move(message.message_attributes);
  task.state->channel = origin.channel;
  task.state->source = origin.source;
  return std::make_shared<const TaskInformation>(std::move(task));
}

void Consumer::extended(const std::vector<TaskId>& tasks,
                        const client::Outcome<client::ChangeMessageVisibilityBatchResult>& outcome,
                        Instant now) {
  std::vector<Extended> results(tasks.size(), Extended::kFailed);
  if (outcome) {
    for (const auto& entry : outcome->successful)
      if (const auto at = place_of(entry.id, tasks.size())) results[*at] = Extended::kYes;
    for (const auto& entry : outcome->failed)
      if (const auto at = place_of(entry.id, tasks.size()); at && entry.sender_fault)
        results[*at] = Extended::kRefused;
  } else {
    port_.report("cannot extend the visibility of " + std::to_string(tasks.size()) +
                 " messages: " + outcome.error().to_string());
    if (outcome.error().code == "QueueDoesNotExist")
      results.assign(tasks.size(), Extended::kRefused);
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (results[i] == Extended::kYes) ++figures_.extended;
    monitor_.answered(tasks[i], results[i], now);
    if (const auto waiting = after_extension_.extract(tasks[i])) {
      CHECK(!holds(tasks[i]), "CU3: what goes back is extended no more");
      port_.change_visibility(waiting.mapped().task, waiting.mapped().timeout);
    }
  }
  if (const auto tick = monitor_.next_tick()) port_.tick_by(*tick);
}

void Consumer::remove(const Task& task, Removed then, bool others_follow, Instant now) {
  CHECK(then != nullptr, "CU4: somebody wants to know");
  removals_.push_back({task, std::move(then)});
  CHECK(removals_.size() <= kRemoveMax, "CU4: a batch goes when it is full");
  if (removals_.size() == kRemoveMax || !others_follow) return send_removals();
  if (removals_.size() > 1) return;
  removals_due_ = now + options_.linger;
  port_.tick_by(removals_due_);
}

void Consumer::send_removals() {
  removals_due_ = Instant::max();
  if (removals_.empty()) return;
  std::vector<std::string> receipt_handles;
  receipt_handles.reserve(removals_.size());
  for (const Removal& removal : removals_) receipt_handles.push_back(removal.task->receipt_handle);
  const std::uint64_t batch = ++last_batch_;
  removing_.emplace(batch, std::exchange(removals_, {}));
  port_.remove(batch, std::move(receipt_handles));
}

void Consumer::removed(std::uint64_t batch,
                       const client::Outcome<client::DeleteMessageBatchResult>& outcome,
                       Instant now) {
  auto answered = removing_.extract(batch);
  CHECK(!answered.empty(), "CU4: a batch of deletes is answered once");
  std::vector<Removal>& removals = answered.mapped();
  const Errors errors = errors_of(outcome, removals.size());
  for (std::size_t i = 0; i < removals.size(); ++i) {
    if (errors[i]) {
      not_removed(std::move(removals[i]), *errors[i], now);
      continue;
    }
    monitor_.remove(removals[i].task->id);
    CHECK(!holds(removals[i].task->id), "CU2: what is deleted is extended no more");
    removals[i].then(removals[i].task, true);
  }
}

void Consumer::not_removed(Removal removal, const client::Error& error, Instant now) {
  const Task& task = removal.task;
  port_.report("cannot delete message " + task->message_id + ": " + error.to_string());
  if (is_final(error) || !holds(task->id)) {
    monitor_.remove(task->id);
    removal.then(task, false);
    return;
  }
  const Instant again = now + options_.remove_again;
  removals_again_.emplace(again, std::move(removal));
  port_.tick_by(again);
}

void Consumer::put_back(const Task& task, seconds delay) {
  if (!holds(task->id)) return;
  CHECK(!after_extension_.contains(task->id), "CU3: a message goes back once");
  if (monitor_.remove(task->id))
    after_extension_.emplace(task->id, Change{.task = task, .timeout = delay});
  else
    port_.change_visibility(task, delay);
}

void Consumer::give_back(std::span<const Task> tasks) {
  for (const Task& task : std::views::reverse(tasks)) {
    ++figures_.given_back;
    put_back(task, seconds(0));
  }
}

std::optional<Instant> Consumer::tick(Instant now) {
  monitor_.tick(now);
  while (!removals_again_.empty() && removals_again_.begin()->first <= now) {
    auto again = removals_again_.extract(removals_again_.begin());
    remove(again.mapped().task, std::move(again.mapped().then), true, now);
  }
  if (removals_due_ <= now) send_removals();
  return next_tick();
}

std::optional<Instant> Consumer::next_tick() const {
  std::optional<Instant> next = monitor_.next_tick();
  if (!removals_.empty()) next = std::min(next.value_or(removals_due_), removals_due_);
  if (!removals_again_.empty())
    next = std::min(next.value_or(Instant::max()), removals_again_.begin()->first);
  return next;
}

void Consumer::stop() {
  stopped_ = true;
  send_removals();
  cancel_polls();
}

void Consumer::check_invariants() const {
  monitor_.check_invariants();
  std::size_t reserved = 0;
  for (const auto& [number, poll] : polls_) reserved += poll.count;
  CHECK(reserved == reserved_, "CU1: places are reserved by the receives under way");
  for (const auto& [task, change] : after_extension_)
    CHECK(!holds(task), "CU3: what goes back is extended no more");
  CHECK(removals_.size() < kRemoveMax, "CU4: a full batch has gone");
  CHECK(removals_.empty() == (removals_due_ == Instant::max()), "CU4: every batch goes some time");
}

}  // namespace stanchion::worker
