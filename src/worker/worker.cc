#include "worker/worker.h"

#include <algorithm>
#include <exception>

#include "base/text.h"
#include "os/clock.h"
#include "worker/impl.h"

namespace stanchion::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kReceiveMax = 10;  // Messages of one receive.
constexpr std::size_t kConcurrencyMax = 10'000;
constexpr seconds kWaitMax{20};
constexpr seconds kVisibilityMax{43'200};
constexpr seconds kVisibilityDefault{30};
constexpr milliseconds kReceiveAgain{250};
constexpr milliseconds kReceiveAgainMax{30'000};
// How long stop() waits, after its deadline, for the answers to what it gives back.
constexpr milliseconds kGiveBackMax{2'000};

constexpr milliseconds kStopMax = std::chrono::hours(24 * 365);

client::Error invalid(const std::string& message) {
  return {
      .code = client::code::kInvalidSettings, .message = message, .fault = client::Fault::kLocal};
}

std::optional<client::Error> check_options(const QueueOptions& queue) {
  if (queue.url.empty()) return invalid("a queue has no URL; set QueueOptions::url");
  const auto wrong = [&](const std::string& what) { return invalid(queue.url + ": " + what); };
  if (!queue.handler) return wrong("there is no handler; set QueueOptions::handler");
  if (queue.concurrency < 1 || queue.concurrency > kConcurrencyMax)
    return wrong("the concurrency must be from 1 to 10000");
  if (queue.polls_max < 1) return wrong("polls_max must be at least 1");
  if (queue.wait < seconds(0) || queue.wait > kWaitMax)
    return wrong("a receive waits from 0 to 20 seconds");
  if (queue.visibility < seconds(0) || queue.visibility > kVisibilityMax)
    return wrong("the visibility must be from 1 to 43200 seconds, or 0 for the queue's own");
  return std::nullopt;
}

std::int64_t number_in(const client::StringMap& attributes, const char* name,
                       std::int64_t otherwise) {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return otherwise;
  const auto number = parse_decimal(found->second);
  return number ? static_cast<std::int64_t>(*number) : otherwise;
}

std::optional<Instant> earlier(std::optional<Instant> a, std::optional<Instant> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace

Source::Source(QueueOptions queue, double failure_share_max, MonitorOptions monitor_options,
               VisibilityMonitor::Extend extend, VisibilityMonitor::Lost lost)
    : options(std::move(queue)),
      name(options.url.substr(options.url.rfind('/') + 1)),
      hand(name.ends_with(".fifo")),
      monitor(monitor_options, std::move(extend), std::move(lost)),
      rate(options.rate_max),
      throttle(failure_share_max) {
  metrics.queue_url = options.url;
}

Worker::Impl::Impl(client::Client& client, WorkerOptions options)
    : client_(client),
      options_(std::move(options)),
      batcher_(std::make_unique<client::Batcher>(client)) {}

Worker::Impl::~Impl() {
  stop(milliseconds(0));
  std::unique_lock lock(mutex_);
  closed_ = true;
  work_.notify_all();
  wake_keeper();
  lock.unlock();
  for (std::thread& thread : threads_) thread.join();
  lock.lock();
  idle_.wait(lock, [this] { return calls_ == 0; });
  tell(lock);
}

std::optional<client::Error> Worker::Impl::prepare() {
  if (options_.queues.empty()) return invalid("there is no queue; set WorkerOptions::queues");
  for (QueueOptions queue : options_.queues) {
    if (!queue.handler) queue.handler = options_.handler;
    if (auto error = check_options(queue)) return error;
    if (auto error = add_source(std::move(queue))) return error;
  }
  return std::nullopt;
}

std::optional<client::Error> Worker::Impl::add_source(QueueOptions queue) {
  auto attributes = client_.get_queue_attributes(
      {.queue_url = queue.url, .attribute_names = {"QueueArn", "VisibilityTimeout"}});
  if (!attributes) {
    client::Error error = attributes.error();
    error.message = queue.url + ": " + error.message;
    return error;
  }
  if (queue.visibility == seconds(0))
    queue.visibility = seconds(number_in(attributes->attributes, "VisibilityTimeout", 0));
  if (queue.visibility == seconds(0)) queue.visibility = kVisibilityDefault;
  const MonitorOptions monitor{.period = queue.visibility, .window = queue.window};
  const std::size_t at = sources_.size();
  sources_.push_back(std::make_unique<Source>(
      std::move(queue), options_.failure_share_max, monitor,
      [this, at](const ExtensionBatch& batch) { extend(*sources_[at], batch); },
      [this, at](const Task& task, Loss loss) {
        ++sources_[at]->metrics.lost;
        lost_.insert(task->id);
        told_.emplace_back([task, loss] { task->lose(loss); });
        wake_keeper();
      }));
  sources_[at]->arn = attributes->attributes["QueueArn"];
  return std::nullopt;
}

void Worker::Impl::begin() {
  const std::lock_guard lock(mutex_);
  threads_.emplace_back([this] { keep(); });
  for (const auto& source : sources_)
    for (std::size_t i = 0; i < source->options.concurrency; ++i)
      threads_.emplace_back([this] { run(); });
}

std::optional<Instant> Worker::Impl::poll(Source& source, Instant now) {
  const QueueOptions& options = source.options;
  while (!stopping_) {
    if (now < source.poll_not_before) return source.poll_not_before;
    if (source.polls.size() >= (source.busy ? options.polls_max : 1)) return std::nullopt;
    const std::size_t room = source.throttle.allowed(options.concurrency) + options.waiting_max;
    const std::size_t held = source.hand.size() + source.reserved;
    if (held >= room) return std::nullopt;
    const std::size_t count = std::min(kReceiveMax, room - held);
    // Several receives at the same time only if they are full ones.
    if (!source.polls.empty() && count < kReceiveMax) return std::nullopt;
    const std::size_t tokens = source.rate.available(now);
    if (tokens == 0) return source.rate.next(now);
    source.poll_not_before = now + source.throttle.pause();
    receive(source, std::min(count, tokens));
  }
  return std::nullopt;
}

void Worker::Impl::receive(Source& source, std::size_t count) {
  source.rate.take(count);
  source.reserved += count;
  const std::uint64_t poll = ++next_id_;
  const client::CallId call = client_.receive_message(
      {.queue_url = source.options.url,
       .max_number_of_messages = static_cast<std::int64_t>(count),
       .wait_time_seconds = source.options.wait.count(),
       .visibility_timeout = source.monitor.period().count(),
       .message_system_attribute_names = {"All"},
       .message_attribute_names = {"All"}},
      counted([this, &source, poll, count](client::Outcome<client::ReceiveMessageResult> outcome) {
        received(source, poll, count, std::move(outcome));
      }));
  source.polls.emplace(poll, call);
}

void Worker::Impl::received(Source& source, std::uint64_t poll, std::size_t count,
                            client::Outcome<client::ReceiveMessageResult> outcome) {
  const Instant now = Clock::now();
  source.polls.erase(poll);
  source.reserved -= count;
  if (!outcome) {
    source.rate.settle(count, 0);
    if (stopping_) return;
    source.busy = false;
    const int doublings = std::min(source.receive_failures++, 10);
    source.poll_not_before = now + std::min(kReceiveAgainMax, kReceiveAgain * (1 << doublings));
    report(source, "cannot receive: " + outcome.error().to_string());
    return;
  }
  source.receive_failures = 0;
  source.rate.settle(count, outcome->messages.size() + outcome->damaged.size());
  source.metrics.damaged += outcome->damaged.size();
  source.busy = !outcome->messages.empty();
  std::vector<Task> tasks;
  for (client::Message& message : outcome->messages) {
    tasks.push_back(make_task(source, std::move(message)));
    ++source.metrics.received;
    if (tasks.back()->receive_count > 1) ++source.metrics.redelivered;
  }
  if (stopping_) {
    for (auto at = tasks.rbegin(); at != tasks.rend(); ++at) {
      ++source.metrics.given_back;
      ++stopped_.given_back;
      put_back(source, *at, seconds(0));
    }
    return;
  }
  for (const Task& task : tasks) {
    source.hand.add(task);
    source.monitor.add(task, now);
    work_.notify_one();
  }
}

Task Worker::Impl::make_task(const Source& source, client::Message message) {
  TaskInformation task;
  task.id = TaskId{++next_id_};
  task.message_id = std::move(message.message_id);
  task.queue_name = source.name;
  task.queue_url = source.options.url;
  task.queue_arn = source.arn;
  task.receipt_handle = std::move(message.receipt_handle);
  task.body = std::move(message.body);
  task.receive_count = number_in(message.attributes, "ApproximateReceiveCount", 1);
  task.poison = source.options.poison;
  task.attributes = std::move(message.attributes);
  task.message_attributes = std::move(message.message_attributes);
  return std::make_shared<const TaskInformation>(std::move(task));
}

void Worker::Impl::keep() {
  std::unique_lock lock(mutex_);
  while (!closed_) {
    woken_ = false;
    tell(lock);
    const Instant now = Clock::now();
    std::optional<Instant> next = run_timers(now);
    for (const auto& source : sources_) {
      source->monitor.tick(now);
      next = earlier(next, poll(*source, now));
      next = earlier(next, source->monitor.next_tick());
    }
    const auto changed = [this] { return woken_ || closed_; };
    if (next)
      keeper_.wait_for(lock, std::max(*next - now, Clock::duration(1)), changed);
    else
      keeper_.wait(lock, changed);
  }
  // Jobs that do not learn that they are to stop would keep the destructor waiting.
  tell(lock);
}

std::optional<Instant> Worker::Impl::run_timers(Instant now) {
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const auto due = timers_.extract(timers_.begin());
    due.mapped()();
  }
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first;
}

// Jobs and callers may take their time, and may call the worker.
void Worker::Impl::tell(std::unique_lock<std::mutex>& lock) {
  while (!told_.empty()) {
    const auto told = std::exchange(told_, {});
    lock.unlock();
    for (const auto& each : told) each();
    lock.lock();
  }
}

void Worker::Impl::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    Source* source = nullptr;
    work_.wait(lock, [&] { return closed_ || (source = runnable()) != nullptr; });
    if (closed_) return;
    if (const Task task = next_task(*source)) handle(lock, *source, task);
  }
}

Source* Worker::Impl::runnable() {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    turn_ = (turn_ + 1) % sources_.size();
    Source& source = *sources_[turn_];
    if (source.hand.has_next() &&
        source.running.size() < source.throttle.allowed(source.options.concurrency))
      return &source;
  }
  return nullptr;
}

// Nothing if the message was lost while it waited.
Task Worker::Impl::next_task(Source& source) {
  Task task = source.hand.next();
  if (lost_.contains(task->id)) {
    leave(source, task, true);
    return nullptr;
  }
  source.running.emplace(task->id, task);
  const std::int64_t now = to_millis(os::SystemClock().now());
  const std::int64_t sent = number_in(task->attributes, "SentTimestamp", now);
  source.metrics.age.add(static_cast<double>(std::max<std::int64_t>(0, now - sent)) / 1000);
  return task;
}

void Worker::Impl::handle(std::unique_lock<std::mutex>& lock, Source& source, const Task& task) {
  lock.unlock();
  const auto began = std::chrono::steady_clock::now();
  Verdict verdict;
  std::optional<std::string> thrown;
  try {
    verdict = source.options.handler(*task);
  } catch (const std::exception& exception) {
    thrown = exception.what();
  } catch (...) {
    thrown = "an exception that is not a std::exception";
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  lock.lock();
  source.metrics.duration.add(took.count());
  if (thrown) {
    ++source.metrics.thrown;
    verdict = Verdict::retry_with_backoff();
    report(source, "the handler of message " + task->message_id + " threw: " + *thrown);
  }
  // At the deadline of a stop the message was given back.
  if (source.running.erase(task->id) == 0) return;
  const std::size_t allowed = source.throttle.allowed(source.options.concurrency);
  source.throttle.record(verdict.kind == Verdict::Kind::kRetry);
  if (source.throttle.allowed(source.options.concurrency) > allowed) work_.notify_all();
  settle(source, task, verdict);
}

bool Worker::Impl::all_settled() const {
  return std::all_of(sources_.begin(), sources_.end(),
                     [](const auto& source) { return source->hand.size() == 0; });
}

StopReport Worker::Impl::stop(milliseconds deadline) {
  std::unique_lock lock(mutex_);
  const auto at = std::chrono::steady_clock::now() + std::min(deadline, kStopMax);
  stop_at_ = stopping_ ? std::min(stop_at_, at) : at;
  if (!std::exchange(stopping_, true)) {
    for (const auto& source : sources_) {
      for (const auto& poll : source->polls) client_.cancel(poll.second);
      const std::vector<Task> waiting = source->hand.take_waiting();
      for (auto task = waiting.rbegin(); task != waiting.rend(); ++task) {
        ++source->metrics.given_back;
        ++stopped_.given_back;
        if (lost_.erase((*task)->id) == 0) put_back(*source, *task, seconds(0));
      }
    }
  }
  idle_.notify_all();
  while (!all_settled() && std::chrono::steady_clock::now() < stop_at_) {
    const auto until = stop_at_;  // Another call may change it meanwhile.
    idle_.wait_until(lock, until);
  }
  abandon_running();
  idle_.wait_for(lock, kGiveBackMax, [this] { return all_settled() && calls_ == 0; });
  return stopped_;
}

void Worker::Impl::abandon_running() {
  for (const auto& source : sources_) {
    for (const auto& [id, task] : std::exchange(source->running, {})) {
      ++source->metrics.given_back;
      ++stopped_.given_back;
      ++stopped_.still_running;
      const bool held = !lost_.contains(id);
      leave(*source, task, true);
      if (held) put_back(*source, task, seconds(0));
      told_.emplace_back([lost = task] { lost->lose(Loss::kStopped); });
    }
  }
  wake_keeper();
}

WorkerMetrics Worker::Impl::metrics() {
  const std::lock_guard lock(mutex_);
  WorkerMetrics metrics;
  for (const auto& source : sources_) {
    QueueMetrics& queue = metrics.queues.emplace_back(source->metrics);
    queue.in_hand = source->hand.size();
    queue.running = source->running.size();
  }
  return metrics;
}

client::Outcome<std::unique_ptr<Worker>> Worker::open(client::Client& client,
                                                      WorkerOptions options) {
  auto impl = std::make_unique<Impl>(client, std::move(options));
  if (auto error = impl->prepare()) return std::move(*error);
  impl->begin();
  return std::unique_ptr<Worker>(new Worker(std::move(impl)));
}

Worker::Worker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Worker::~Worker() = default;

StopReport Worker::stop(milliseconds deadline) {
  return impl_->stop(deadline);
}

WorkerMetrics Worker::metrics() const {
  return impl_->metrics();
}

}  // namespace stanchion::worker
