#include "worker/worker.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "base/check.h"
#include "client/batcher.h"
#include "worker/consumed_queue.h"
#include "worker/copies.h"
#include "worker/handler_pool.h"
#include "worker/load_reporter.h"
#include "worker/named_queues.h"
#include "worker/publisher.h"
#include "worker/worker_loop.h"

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

// The queues of a worker and what they share, from the first look at them to the stop.
//
// The loop's mutex guards everything. The pool's threads release it while a handler runs; the loop's
// thread extends visibility, begins receives and tells jobs and the caller what happened, and
// releases it for the latter. Completions of calls take it for a moment.
class Worker::Impl {
 public:
  Impl(client::Client& client, WorkerOptions options);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Without the mutex, all of these. Asks the queues for their attributes.
  std::optional<client::Error> prepare();
  void begin();
  StopReport stop(milliseconds deadline);
  client::Outcome<PauseMode> set_paused(const std::string& queue_url, bool paused);
  WorkerMetrics metrics();

 private:
  LoadReporter::Outside load_outside();
  Publisher::Outside publisher_outside();
  std::optional<client::Error> add_queue(QueueOptions queue);
  std::optional<client::Error> add_paused_queue(ConsumedQueue& queue);

  // With the mutex, the others.
  ConsumedQueue& queue_of(const TaskInformation& task) const;
  std::optional<Instant> tick(Instant now);
  void begin_to_stop();
  bool is_settled() const;
  std::uint64_t given_back() const;
  WorkerMetrics collect_metrics() const;
  void tell_metrics();

  client::Client& client_;
  const WorkerOptions options_;
  client::Batcher batcher_;
  NamedQueues named_queues_;
  WorkerLoop loop_;
  TaskIds ids_;
  LoadReporter load_;
  Publisher publisher_;
  HandlerPool pool_;
  std::vector<std::unique_ptr<ConsumedQueue>> queues_;

  std::chrono::steady_clock::time_point stop_at_;
  StopReport stopped_;
  std::uint64_t given_back_before_ = 0;  // Before the stop.
};

Worker::Impl::Impl(client::Client& client, WorkerOptions options)
    : client_(client),
      options_(std::move(options)),
      batcher_(client),
      named_queues_(client),
      load_(client, loop_,
            {.tells = options_.on_metrics != nullptr,
             .asks_queues = options_.watch_load,
             .every = std::max(options_.metrics_every, kMetricsEveryMin)},
            load_outside()),
      publisher_(batcher_, named_queues_, loop_, publisher_outside()),
      pool_(loop_) {}

Worker::Impl::~Impl() {
  stop(milliseconds(0));
  publisher_.close();
  WorkerLoop::Lock lock(loop_.mutex());
  pool_.close();
  lock.unlock();
  loop_.close();
  pool_.join();
  lock.lock();
  loop_.wait_until_settled(lock, [this] { return loop_.calls() == 0 && pool_.unanswered() == 0; });
  loop_.tell_now(lock);
}

LoadReporter::Outside Worker::Impl::load_outside() {
  return {.completed = [this](std::size_t queue) { return queues_[queue]->completed(); },
          .report = [this](std::size_t queue,
                           const std::string& what) { queues_[queue]->report(what); },
          .tell = [this] { tell_metrics(); }};
}

Publisher::Outside Worker::Impl::publisher_outside() {
  return {
      .find_running =
          [this](const TaskInformation& task) { return queue_of(task).find_running(task.id); },
      .published = [this](const TaskInformation& task) { queue_of(task).published(); },
      .report = [this](const TaskInformation& task,
                       const std::string& what) { queue_of(task).report(what); },
      .conclude = [this](const Task& task,
                         Verdict verdict) { queue_of(*task).conclude(task, std::move(verdict)); },
      .settle = [this](const Task& task,
                       const Verdict& verdict) { queue_of(*task).settle(task, verdict); }};
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
    if (auto error = add_queue(std::move(queue))) return error;
    if (!pausable) continue;
    if (auto error = add_paused_queue(*queues_.back())) return error;
  }
  return std::nullopt;
}

std::optional<client::Error> Worker::Impl::add_queue(QueueOptions queue) {
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
  CHECK(queue.visibility > seconds(0), "WK4: there is a visibility that can be extended");
  load_.add(queue.url, queue.load);
  const WorkerParts parts{options_, client_, batcher_, loop_, ids_, pool_, publisher_, load_};
  queues_.push_back(std::make_unique<ConsumedQueue>(parts, std::move(queue), queues_.size(),
                                                    attributes->attributes["QueueArn"]));
  return std::nullopt;
}

std::optional<client::Error> Worker::Impl::add_paused_queue(ConsumedQueue& queue) {
  QueueOptions paused = queue.options();
  auto url = named_queues_.find_or_make({.name = paused.paused_queue.empty()
                                                     ? with_suffix(queue.name(), "-paused")
                                                     : paused.paused_queue,
                                         .attributes = {{"MessageRetentionPeriod", "1209600"}},
                                         .max_receive_count = 0});
  if (!url) return url.error();
  auto tags = client_.list_queue_tags({.queue_url = *url});
  if (!tags) return tags.error();
  const Instant now = Clock::now();
  paused.url = *url;
  paused.pausable = false;
  if (auto error = add_queue(std::move(paused))) return error;
  queue.pause_with(*queues_.back(), tags->tags, now);
  return std::nullopt;
}

void Worker::Impl::begin() {
  CHECK(!queues_.empty(), "there is something to consume");
  const std::lock_guard lock(loop_.mutex());
  loop_.start([this](WorkerLoop::Lock&, Instant now) { return tick(now); });
  for (const auto& queue : queues_) {
    const std::size_t threads = queue->options().async_handler ? 1 : queue->options().concurrency;
    // A paused queue is handled by the threads of the queue that was paused.
    pool_.add(*queue, queue->is_paused_queue() ? 0 : threads);
  }
  pool_.start();
}

ConsumedQueue& Worker::Impl::queue_of(const TaskInformation& task) const {
  CHECK(task.state->source < queues_.size(), "a task is of a queue of its worker");
  return *queues_[task.state->source];
}

std::optional<Instant> Worker::Impl::tick(Instant now) {
  std::optional<Instant> next = load_.tick(now);
  for (const auto& queue : queues_) next = earlier(next, queue->tick(now));
  return next;
}

StopReport Worker::Impl::stop(milliseconds deadline) {
  WorkerLoop::Lock lock(loop_.mutex());
  const auto at = std::chrono::steady_clock::now() + std::min(deadline, kStopMax);
  stop_at_ = loop_.is_stopping() ? std::min(stop_at_, at) : at;
  if (!loop_.is_stopping()) begin_to_stop();
  // A wait for a later time ends.
  loop_.settled();
  while (!is_settled() && std::chrono::steady_clock::now() < stop_at_) {
    const auto until = stop_at_;  // Another call may change it meanwhile.
    loop_.wait_until_settled(lock, until, [&] { return is_settled() || stop_at_ != until; });
  }
  for (const auto& queue : queues_) stopped_.still_running += queue->abandon_running();
  loop_.wait_until_settled(lock, std::chrono::steady_clock::now() + kGiveBackMax,
                           [this] { return is_settled() && loop_.calls() == 0; });
  CHECK(given_back() >= given_back_before_, "figures only grow");
  stopped_.given_back = given_back() - given_back_before_;
  return stopped_;
}

void Worker::Impl::begin_to_stop() {
  CHECK(!loop_.is_stopping(), "a worker stops once");
  loop_.begin_to_stop();
  given_back_before_ = given_back();
  for (const auto& queue : queues_) queue->stop();
}

bool Worker::Impl::is_settled() const {
  return std::ranges::all_of(queues_, [](const auto& queue) { return queue->is_settled(); });
}

std::uint64_t Worker::Impl::given_back() const {
  std::uint64_t all = 0;
  for (const auto& queue : queues_) all += queue->given_back();
  return all;
}

void Worker::Impl::tell_metrics() {
  if (!options_.on_metrics) return;
  loop_.tell([this, metrics = collect_metrics()] { options_.on_metrics(metrics); });
}

WorkerMetrics Worker::Impl::collect_metrics() const {
  WorkerMetrics metrics;
  for (const auto& queue : queues_) metrics.queues.push_back(queue->metrics());
  return metrics;
}

WorkerMetrics Worker::Impl::metrics() {
  const std::lock_guard lock(loop_.mutex());
  return collect_metrics();
}

client::Outcome<PauseMode> Worker::Impl::set_paused(const std::string& queue_url, bool paused) {
  for (const auto& queue : queues_)
    if (queue->options().url == queue_url && queue->pause() != nullptr)
      return queue->pause()->set_paused(paused);
  return invalid(queue_url +
                 " is no queue of this worker that can be paused; set QueueOptions::pausable");
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
