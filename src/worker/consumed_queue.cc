#include "worker/consumed_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "worker/copies.h"

namespace stanchion::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kDelayMax{43'200};

double random_share() {
  return static_cast<double>(os::SystemEntropy().u64() >> 11) * 0x1p-53;
}

}  // namespace

ConsumedQueue::ConsumedQueue(const WorkerParts& parts, QueueOptions options, std::size_t number,
                             const std::string& arn)
    : parts_(parts),
      options_(std::move(options)),
      name_(options_.url.substr(options_.url.rfind('/') + 1)),
      number_(number),
      jobs_(options_, is_fifo(),
            FailureThrottle(parts.options.failure_share_max, parts.options.failure_round)),
      consumer_({parts.client, parts.batcher, parts.loop, parts.ids}, options_.wait,
                consumer_options(number, arn), consumer_events()) {
  CHECK(options_.visibility > seconds(0), "WK4: there is a visibility that can be extended");
  counts_.queue_url = options_.url;
}

ConsumerOptions ConsumedQueue::consumer_options(std::size_t number, const std::string& arn) const {
  return {.origin = {.queue_name = name_,
                     .queue_url = options_.url,
                     .queue_arn = arn,
                     .poison = options_.poison,
                     .channel = parts_.publisher.channel(),
                     .source = number},
          .visibility = {.period = options_.visibility, .window = options_.window},
          .rate_max = options_.rate_max};
}

ConsumerEvents ConsumedQueue::consumer_events() {
  return {.received =
              [this](const std::vector<Task>& tasks) {
                jobs_.add(tasks);
                parts_.pool.wake();
              },
          .answered = [this] { poll_now(); },
          .lost = [this](const Task& task,
                         Loss loss) { parts_.loop.tell([task, loss] { task->lose(loss); }); },
          .report = [this](const std::string& what) { report(what); }};
}

void ConsumedQueue::pause_with(ConsumedQueue& paused, const client::StringMap& tags, Instant now) {
  CHECK(!pause_ && main_ == nullptr, "a queue has one paused queue, which has none");
  paused.main_ = this;
  pause_ = std::make_unique<PauseControl>(
      parts_.client, parts_.loop, paused.options_.url, is_fifo(), parts_.options.pause_check, tags,
      now,
      PauseControl::Outside{
          .is_idle = [this, &paused] { return is_settled() && paused.is_settled(); },
          .stop_coming_back = [&paused] { paused.stop_coming_back(); },
          .changed =
              [this, &paused] {
                poll_now();
                paused.poll_now();
                parts_.pool.wake();
              },
          .report = [this](const std::string& what) { report(what); }});
}

std::optional<Instant> ConsumedQueue::poll(Instant now) {
  if (main_ != nullptr && !main_->pause_->comes_back()) return std::nullopt;
  return consumer_->poll(
      {.places = jobs_.places(), .polls_max = options_.polls_max, .pause = jobs_.pause()}, now);
}

void ConsumedQueue::poll_now() {
  if (const auto again = poll(Clock::now())) parts_.loop.wake_by(*again);
}

std::optional<Instant> ConsumedQueue::tick(Instant now) {
  std::optional<Instant> next = consumer_->tick(now);
  if (pause_) next = earlier(next, pause_->tick(now));
  return earlier(next, poll(now));
}

void ConsumedQueue::stop() {
  CHECK(parts_.loop.is_stopping(), "a queue stops with its worker");
  consumer_->stop();
  consumer_->give_back(jobs_.take_waiting());
}

std::size_t ConsumedQueue::abandon_running() {
  const std::vector<Task> abandoned = jobs_.take_running();
  for (const Task& task : abandoned) {
    parts_.publisher.forget(task->id);
    leave(task, true);
    consumer_->give_back(std::span(&task, 1));
    parts_.loop.tell([task] { task->lose(Loss::kStopped); });
  }
  CHECK(jobs_.running() == 0, "nothing runs that is held");
  return abandoned.size();
}

void ConsumedQueue::stop_coming_back() {
  CHECK(main_ != nullptr && !main_->pause_->comes_back(), "PA1: a resumption has ended");
  consumer_->cancel_polls();
  consumer_->give_back(jobs_.take_waiting());
}

bool ConsumedQueue::may_begin() const {
  if (!jobs_.may_begin()) return false;
  if (pause_) return pause_->may_begin(Clock::now());
  if (main_ != nullptr) return main_->pause_->may_come_back(Clock::now());
  return true;
}

Task ConsumedQueue::begin() {
  Task task = jobs_.begin();
  // What was lost while it waited has been received by another.
  if (!consumer_->holds(task->id)) {
    jobs_.returned(task->id);
    leave(task, true);
    return nullptr;
  }
  CHECK(task->state->source == number_, "a task comes back to the queue that it is of");
  count_age(task);
  if (!pause_ || !pause_->moves(*task)) return task;
  jobs_.returned(task->id);
  send_on(task, pause_->paused_queue_url(), &QueueMetrics::paused);
  return nullptr;
}

void ConsumedQueue::count_age(const Task& task) {
  const std::int64_t now = to_millis(os::SystemClock().now());
  const std::int64_t sent = number_in(task->attributes, "SentTimestamp", now);
  const milliseconds age(std::max<std::int64_t>(0, now - sent));
  counts_.age.add(static_cast<double>(age.count()) / 1000);
  parts_.load.began(number_, age);
}

void ConsumedQueue::ended(const Task& task, const Ended& end) {
  counts_.duration.add(end.took.count());
  Verdict verdict = end.verdict;
  if (end.thrown) {
    ++counts_.thrown;
    verdict = Verdict::retry_with_backoff();
    report("the handler of message " + task->message_id + " threw: " + *end.thrown);
  }
  conclude(task, std::move(verdict));
}

Task ConsumedQueue::find_running(TaskId task) const {
  return consumer_->holds(task) ? jobs_.find_running(task) : nullptr;
}

void ConsumedQueue::conclude(const Task& task, Verdict verdict) {
  // At the deadline of a stop the message was given back.
  if (!jobs_.is_running(task->id)) return;
  const Publisher::Step step = parts_.publisher.conclude(task, verdict);
  if (step == Publisher::Step::kWaitForLast) return;
  jobs_.returned(task->id);
  if (jobs_.record(verdict.kind == Verdict::Kind::kRetry)) parts_.pool.wake();
  if (step == Publisher::Step::kSettle) settle(task, verdict);
}

void ConsumedQueue::settle(const Task& task, const Verdict& verdict) {
  CHECK(!jobs_.is_running(task->id), "WK1: a message is settled after its handler has returned");
  switch (verdict.kind) {
    case Verdict::Kind::kDone:
      return remove(task, &QueueMetrics::done);
    case Verdict::Kind::kReject:
      return reject(task, verdict.reject_to.empty() ? options_.reject_to : verdict.reject_to);
    case Verdict::Kind::kPause:
      return pause_task(task);
    case Verdict::Kind::kRetry:
      return retry(task, verdict.backoff
                             ? backoff_delay(options_.backoff, task->receive_count, random_share())
                             : verdict.delay);
  }
}

void ConsumedQueue::remove(const Task& task, Counter counter) {
  CHECK(!jobs_.is_running(task->id), "WK1: a message is deleted after its handler has returned");
  consumer_->remove(
      task,
      [this, counter](const Task& removed, bool deleted) {
        if (deleted) ++(counts_.*counter);
        leave(removed, !deleted);
      },
      jobs_.has_more(), Clock::now());
}

void ConsumedQueue::reject(const Task& task, const std::string& queue_url) {
  if (!queue_url.empty()) return send_on(task, queue_url, &QueueMetrics::rejected);
  report("message " + task->message_id +
         " was rejected, but neither the verdict nor QueueOptions::reject_to names a queue; it is "
         "retried");
  settle(task, Verdict::retry_with_backoff());
}

void ConsumedQueue::pause_task(const Task& task) {
  if (!pause_) {
    report("message " + task->message_id +
           (main_ != nullptr ? " was paused while its queue is being resumed; it is retried"
                             : " was paused, but its queue cannot be; set QueueOptions::pausable"));
    return settle(task, Verdict::retry_with_backoff());
  }
  pause_->pause(*task, [this, task](bool moves) {
    if (moves)
      send_on(task, pause_->paused_queue_url(), &QueueMetrics::paused);
    else
      settle(task, Verdict::retry_with_backoff());
  });
}

// The message is deleted when the other queue has acknowledged its copy.
void ConsumedQueue::send_on(const Task& task, const std::string& queue_url, Counter counter) {
  CHECK(!queue_url.empty(), "a message is sent to a queue");
  CHECK(!jobs_.is_running(task->id), "WK1: a copy is sent after the handler has returned");
  parts_.publisher.send_on(task, queue_url, [this, task, counter] { remove(task, counter); });
}

void ConsumedQueue::retry(const Task& task, seconds delay) {
  ++counts_.retried;
  // The later ones first: while this one is in flight, its group stays locked.
  leave(task, true);
  consumer_->put_back(task, std::clamp(delay, seconds(0), kDelayMax));
  CHECK(!consumer_->holds(task->id), "WK4: what is settled is extended no more");
}

void ConsumedQueue::leave(const Task& task, bool failed) {
  const std::vector<Task> later = jobs_.end(task, failed);
  CHECK(later.empty() || (failed && is_fifo()),
        "WK3: others go back with a failure in their group");
  if (failed)
    for (const Task& other : jobs_.overtaking(task)) {
      // The mark is there at once; callbacks run without the mutex.
      int none = -1;
      other->state->loss.compare_exchange_strong(none, static_cast<int>(Loss::kStopped));
      parts_.loop.tell([other] { other->state->stop.request_stop(); });
    }
  consumer_->give_back(later);
  parts_.pool.wake();
  // A message that is deleted leaves in a completion, which receives the next ones itself.
  if (failed) parts_.loop.wake();
  parts_.loop.settled();
}

void ConsumedQueue::report(const std::string& what) {
  ++counts_.errors;
  if (parts_.options.on_error)
    parts_.loop.tell(
        [&options = parts_.options, text = name_ + ": " + what] { options.on_error(text); });
  parts_.loop.wake();
}

QueueMetrics ConsumedQueue::metrics() const {
  QueueMetrics metrics = counts_;
  const ConsumerFigures& figures = consumer_->figures();
  metrics.received = figures.received;
  metrics.redelivered = figures.redelivered;
  metrics.damaged = figures.damaged;
  metrics.extended = figures.extended;
  metrics.given_back = figures.given_back;
  metrics.lost = figures.lost;
  metrics.in_flight = jobs_.size();
  metrics.running = jobs_.running();
  const QueueLoad& load = parts_.load.load(number_);
  metrics.measured = load.measured;
  metrics.queue_visible = load.visible;
  metrics.queue_in_flight = load.in_flight;
  metrics.oldest_seconds = load.oldest_seconds;
  metrics.signals = load.signals;
  return metrics;
}

}  // namespace stanchion::worker
