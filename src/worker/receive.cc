// Receiving: when a receive begins, and how its messages come into the worker's hand.
#include <algorithm>

#include "worker/copies.h"
#include "worker/impl.h"

namespace stanchion::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kReceiveMax = 10;  // Messages of one receive.
constexpr milliseconds kReceiveAgain{250};
constexpr milliseconds kReceiveAgainMax{30'000};

}  // namespace

std::optional<Instant> Worker::Impl::poll(Source& source, Instant now) {
  const QueueOptions& options = source.options;
  if (source.main != nullptr && !source.main->watch->comes_back()) return std::nullopt;
  while (!loop_.is_stopping()) {
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

void Worker::Impl::fill_hand(Source& source) {
  if (const auto again = poll(source, Clock::now())) loop_.wake_by(*again);
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
      counted(source,
              [this, &source, poll, count](client::Outcome<client::ReceiveMessageResult> outcome) {
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
    source.busy = false;
    if (loop_.is_stopping() || outcome.error().code == client::code::kCancelled) return;
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
  if (loop_.is_stopping()) {
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
  }
  if (const auto tick = source.monitor.next_tick()) loop_.wake_by(*tick);
  wake_pool();
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
  task.state->outlet = outlet_;
  task.state->source = source.index;
  return std::make_shared<const TaskInformation>(std::move(task));
}

}  // namespace stanchion::worker
