#include "worker/worker.h"

#include <algorithm>
#include <span>

#include "worker/copies.h"
#include "worker/impl.h"

namespace stanchion::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kConcurrencyMax = 10'000;
constexpr seconds kWaitMax{20};
constexpr seconds kVisibilityMax{43'200};
constexpr seconds kVisibilityDefault{30};
// How long stop() waits, after its deadline, for the answers to what it gives back.
constexpr milliseconds kGiveBackMax{2'000};

constexpr milliseconds kMetricsEveryMin{100};
constexpr milliseconds kPauseCheckMin{100};
constexpr milliseconds kStopMax = std::chrono::hours(24 * 365);

client::Error invalid(const std::string& message) {
  return {
      .code = client::code::kInvalidSettings, .message = message, .fault = client::Fault::kLocal};
}

std::optional<client::Error> check_options(const QueueOptions& queue) {
  if (queue.url.empty()) return invalid("a queue has no URL; set QueueOptions::url");
  const auto wrong = [&](const std::string& what) { return invalid(queue.url + ": " + what); };
  if (!queue.handler && !queue.async_handler)
    return wrong("there is no handler; set QueueOptions::handler");
  if (queue.concurrency < 1 || queue.concurrency > kConcurrencyMax)
    return wrong("the concurrency must be from 1 to 10000");
  if (queue.pausable && queue.groups_together)
    return wrong("a queue whose groups begin together cannot be paused");
  if (queue.pausable && queue.poison)
    return wrong("a dead-letter queue cannot be paused; leave QueueOptions::pausable off");
  if (queue.polls_max < 1) return wrong("polls_max must be at least 1");
  if (queue.wait < seconds(0) || queue.wait > kWaitMax)
    return wrong("a receive waits from 0 to 20 seconds");
  if (queue.visibility < seconds(0) || queue.visibility > kVisibilityMax)
    return wrong("the visibility must be from 1 to 43200 seconds, or 0 for the queue's own");
  return std::nullopt;
}

}  // namespace

Source::Source(QueueOptions queue, std::size_t position, const std::string& arn,
               FailureThrottle failures, const std::shared_ptr<Outlet>& outlet,
               const ConsumerContext& context, ConsumerEvents events)
    : options(std::move(queue)),
      name(options.url.substr(options.url.rfind('/') + 1)),
      number(position),
      hand(name.ends_with(".fifo"), options.groups_together),
      consumer(context, options.wait,
               {.origin = {.queue_name = name,
                           .queue_url = options.url,
                           .queue_arn = arn,
                           .poison = options.poison,
                           .outlet = outlet,
                           .source = position},
                .visibility = {.period = options.visibility, .window = options.window},
                .rate_max = options.rate_max},
               std::move(events)),
      throttle(failures) {
  metrics.queue_url = options.url;
}

Worker::Impl::Impl(client::Client& client, WorkerOptions options)
    : client_(client),
      options_(std::move(options)),
      batcher_(client),
      queues_(client),
      load_(client, loop_,
            {.tells = options_.on_metrics != nullptr,
             .asks_queues = options_.watch_load,
             .every = std::max(options_.metrics_every, kMetricsEveryMin)},
            {.completed =
                 [this](std::size_t queue) {
                   const QueueMetrics& metrics = sources_[queue]->metrics;
                   return metrics.done + metrics.rejected + metrics.paused;
                 },
             .report = [this](std::size_t queue,
                              const std::string& what) { report(*sources_[queue], what); },
             .tell = [this] { tell_metrics(); }}),
      publisher_(batcher_, queues_, loop_, publisher_outside()) {}

Worker::Impl::~Impl() {
  stop(milliseconds(0));
  publisher_.close();
  std::unique_lock lock(loop_.mutex());
  closed_ = true;
  work_.notify_all();
  lock.unlock();
  loop_.close();
  for (std::thread& thread : threads_) thread.join();
  lock.lock();
  loop_.wait_until_settled(lock, [this] { return loop_.calls() == 0 && unanswered_ == 0; });
  loop_.tell_now(lock);
}

std::optional<client::Error> Worker::Impl::prepare() {
  if (options_.pause_check < kPauseCheckMin)
    return invalid("WorkerOptions::pause_check must be at least 100 ms");
  if (options_.metrics_every < kMetricsEveryMin)
    return invalid("WorkerOptions::metrics_every must be at least 100 ms");
  if (options_.queues.empty()) return invalid("there is no queue; set WorkerOptions::queues");
  for (QueueOptions queue : options_.queues) {
    if (!queue.handler && !queue.async_handler) queue.handler = options_.handler;
    if (auto error = check_options(queue)) return error;
    const bool pausable = queue.pausable;
    if (auto error = add_source(std::move(queue))) return error;
    if (!pausable) continue;
    if (auto error = add_paused_queue(*sources_.back())) return error;
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
  const std::size_t number = sources_.size();
  sources_.push_back(std::make_unique<Source>(
      std::move(queue), number, attributes->attributes["QueueArn"],
      FailureThrottle(options_.failure_share_max, options_.failure_round), publisher_.outlet(),
      ConsumerContext{client_, batcher_, loop_, ids_}, events_of(number)));
  load_.add(sources_.back()->options.url, sources_.back()->options.load);
  return std::nullopt;
}

std::optional<client::Error> Worker::Impl::add_paused_queue(Source& source) {
  const QueueOptions& options = source.options;
  auto url = queues_.find_or_make({.name = options.paused_queue.empty()
                                               ? with_suffix(source.name, "-paused")
                                               : options.paused_queue,
                                   .attributes = {{"MessageRetentionPeriod", "1209600"}},
                                   .max_receive_count = 0});
  if (!url) return url.error();
  auto tags = client_.list_queue_tags({.queue_url = *url});
  if (!tags) return tags.error();
  const Instant now = Clock::now();
  QueueOptions paused = options;
  paused.url = *url;
  paused.pausable = false;
  if (auto error = add_source(std::move(paused))) return error;
  source.paused = sources_.back().get();
  source.paused->main = &source;
  source.pause = std::make_unique<PauseControl>(
      client_, loop_, *url, source.name.ends_with(".fifo"), options_.pause_check, tags->tags, now,
      PauseControl::Outside{
          .is_idle =
              [&source] { return source.hand.size() == 0 && source.paused->hand.size() == 0; },
          .stop_coming_back =
              [&source] {
                source.paused->consumer->cancel_polls();
                source.paused->consumer->give_back(source.paused->hand.take_waiting());
              },
          .changed =
              [this, &source] {
                fill_hand(source);
                fill_hand(*source.paused);
                wake_pool();
              },
          .report = [this, &source](const std::string& what) { report(source, what); }});
  return std::nullopt;
}

Publisher::Outside Worker::Impl::publisher_outside() {
  return {
      .find_running = [this](const TaskInformation& task) { return find_running(task); },
      .published = [this](const TaskInformation& task) { ++source_of(task).metrics.published; },
      .report = [this](const TaskInformation& task,
                       const std::string& what) { report(source_of(task), what); },
      .conclude = [this](const Task& task,
                         Verdict verdict) { conclude(source_of(*task), task, std::move(verdict)); },
      .settle = [this](const Task& task,
                       const Verdict& verdict) { settle(source_of(*task), task, verdict); }};
}

Task Worker::Impl::find_running(const TaskInformation& task) {
  const Source& source = source_of(task);
  const auto running = source.running.find(task.id);
  const bool found = running != source.running.end() && source.consumer->holds(task.id);
  return found ? running->second : nullptr;
}

ConsumerEvents Worker::Impl::events_of(std::size_t number) {
  const auto source = [this, number]() -> Source& { return *sources_[number]; };
  return {.received = [this, source](const std::vector<Task>& tasks) { received(source(), tasks); },
          .answered = [this, source] { fill_hand(source()); },
          .lost = [this](const Task& task,
                         Loss loss) { loop_.tell([task, loss] { task->lose(loss); }); },
          .report = [this, source](const std::string& what) { report(source(), what); }};
}

std::optional<Instant> Worker::Impl::poll(Source& source, Instant now) {
  if (source.main != nullptr && !source.main->pause->comes_back()) return std::nullopt;
  const QueueOptions& options = source.options;
  const std::size_t room = source.throttle.allowed(options.concurrency) + options.waiting_max;
  return source.consumer->poll({.places = room - std::min(room, source.hand.size()),
                                .polls_max = options.polls_max,
                                .pause = source.throttle.pause()},
                               now);
}

void Worker::Impl::fill_hand(Source& source) {
  if (const auto again = poll(source, Clock::now())) loop_.wake_by(*again);
}

void Worker::Impl::received(Source& source, const std::vector<Task>& tasks) {
  for (const Task& task : tasks) source.hand.add(task);
  wake_pool();
}

void Worker::Impl::begin() {
  const std::lock_guard lock(loop_.mutex());
  loop_.start([this](WorkerLoop::Lock&, Instant now) { return tick(now); });
  for (const auto& source : sources_) {
    // A paused queue is handled by the threads of the queue that was paused.
    if (source->main != nullptr) continue;
    const std::size_t threads = source->options.async_handler ? 1 : source->options.concurrency;
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }
}

bool Worker::Impl::all_settled() const {
  return std::all_of(sources_.begin(), sources_.end(),
                     [](const auto& source) { return source->hand.size() == 0; });
}

StopReport Worker::Impl::stop(milliseconds deadline) {
  std::unique_lock lock(loop_.mutex());
  const auto at = std::chrono::steady_clock::now() + std::min(deadline, kStopMax);
  stop_at_ = loop_.is_stopping() ? std::min(stop_at_, at) : at;
  if (!loop_.is_stopping()) {
    loop_.begin_to_stop();
    given_back_before_ = given_back();
    for (const auto& source : sources_) {
      source->consumer->stop();
      source->consumer->give_back(source->hand.take_waiting());
    }
  }
  loop_.settled();
  while (!all_settled() && std::chrono::steady_clock::now() < stop_at_) {
    const auto until = stop_at_;  // Another call may change it meanwhile.
    loop_.wait_until_settled(lock, until, [&] { return all_settled() || stop_at_ != until; });
  }
  abandon_running();
  loop_.wait_until_settled(lock, std::chrono::steady_clock::now() + kGiveBackMax,
                           [this] { return all_settled() && loop_.calls() == 0; });
  stopped_.given_back = given_back() - given_back_before_;
  return stopped_;
}

std::uint64_t Worker::Impl::given_back() const {
  std::uint64_t all = 0;
  for (const auto& source : sources_) all += source->consumer->figures().given_back;
  return all;
}

void Worker::Impl::abandon_running() {
  for (const auto& source : sources_) {
    for (const auto& [id, task] : std::exchange(source->running, {})) {
      ++stopped_.still_running;
      publisher_.forget(id);
      leave(*source, task, true);
      source->consumer->give_back(std::span(&task, 1));
      loop_.tell([lost = task] { lost->lose(Loss::kStopped); });
    }
  }
}

void Worker::Impl::tell_metrics() {
  if (!options_.on_metrics) return;
  loop_.tell([this, metrics = collect_metrics()] { options_.on_metrics(metrics); });
}

WorkerMetrics Worker::Impl::collect_metrics() const {
  WorkerMetrics metrics;
  for (const auto& source : sources_) {
    QueueMetrics& queue = metrics.queues.emplace_back(source->metrics);
    const ConsumerFigures& figures = source->consumer->figures();
    queue.received = figures.received;
    queue.redelivered = figures.redelivered;
    queue.damaged = figures.damaged;
    queue.extended = figures.extended;
    queue.given_back = figures.given_back;
    queue.lost = figures.lost;
    queue.in_hand = source->hand.size();
    queue.running = source->running.size();
    const QueueLoad& load = load_.load(source->number);
    queue.measured = load.measured;
    queue.visible = load.visible;
    queue.in_flight = load.in_flight;
    queue.oldest_seconds = load.oldest_seconds;
    queue.signals = load.signals;
  }
  return metrics;
}

WorkerMetrics Worker::Impl::metrics() {
  const std::lock_guard lock(loop_.mutex());
  return collect_metrics();
}

client::Outcome<PauseMode> Worker::Impl::set_paused(const std::string& queue_url, bool paused) {
  for (const auto& source : sources_)
    if (source->options.url == queue_url && source->pause) return source->pause->set_paused(paused);
  return invalid(queue_url +
                 " is no queue of this worker that can be paused; "
                 "set QueueOptions::pausable");
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

client::Outcome<PauseMode> Worker::pause(const std::string& queue_url) {
  return impl_->set_paused(queue_url, true);
}

client::Outcome<PauseMode> Worker::resume(const std::string& queue_url) {
  return impl_->set_paused(queue_url, false);
}

WorkerMetrics Worker::metrics() const {
  return impl_->metrics();
}

}  // namespace stanchion::worker
