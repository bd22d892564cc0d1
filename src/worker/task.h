// What a job knows about its message, and how it learns that it no longer holds it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <string>

#include "client/types.h"
#include "worker/publication.h"

namespace stanchion::worker {

// Time as the worker measures it: without a date, never set back, and counting while the machine is
// suspended.
struct Clock {
  using rep = std::int64_t;
  using period = std::milli;
  using duration = std::chrono::milliseconds;
  using time_point = std::chrono::time_point<Clock, duration>;
  static constexpr bool is_steady = true;

  static time_point now();
};
using Instant = Clock::time_point;

// Identifies a delivery within a worker; a message that is delivered again has another one.
enum class TaskId : std::uint64_t {};

// Why a message is no longer held, although its job has not ended. Another worker may get it.
enum class Loss {
  kGone,     // Deleted, or delivered to another: the server does not accept the receipt any more.
  kCapped,   // In flight for 12 hours, the most that SQS allows.
  kExpired,  // Its visibility ended, because no extension was acknowledged in time.
  kStopped,  // Given back: the worker was stopped, or an earlier one of its group failed.
};
const char* name_of(Loss loss);

struct TaskInformation;

// The way from a task to its worker; empty when the worker is gone.
struct PublishChannel {
  std::shared_mutex mutex;
  std::function<bool(const TaskInformation& task, Publication publication)> publish;
};

// A delivered message. It is created by the worker and valid as long as it is referred to; what
// follows `state` may change while the job runs, and any thread may ask for it.
struct TaskInformation {
  TaskId id{};
  std::string message_id = {};
  std::string queue_name = {};
  std::string queue_url = {};
  std::string queue_arn = {};
  std::string receipt_handle = {};
  std::string body = {};
  // How often the message was delivered, this time included.
  std::int64_t receive_count = 1;
  // It comes from a queue that is consumed for its dead letters (QueueOptions::poison).
  bool poison = false;
  client::StringMap attributes = {};  // SentTimestamp, MessageGroupId and the like.
  client::MessageAttributes message_attributes = {};

  // When the message becomes visible to others, unless its visibility is extended before.
  Instant visibility_end() const;
  // Set as soon as the message is lost; `stop` is requested at the same time.
  std::optional<Loss> loss() const;
  // A long job asks stop_requested() from time to time, or registers a std::stop_callback. What the
  // job does afterwards may be done twice.
  std::stop_token stop() const { return state->stop.get_token(); }

  // Sends a result. The message is deleted only when all that its job published is acknowledged; if
  // a publication fails, the job is retried. Returns at once, except that the first publication to a
  // queue by name waits until the queue is found or made. From any thread but that of a client's
  // completions, until the handler has returned, or after it (Verdict::done_after_last()). False,
  // and nothing is sent, if the message is not held any more.
  bool publish(Publication publication) const;

  struct State {
    std::atomic<Instant::rep> visibility_end{0};
    std::atomic<int> loss{-1};
    std::stop_source stop;
    std::shared_ptr<PublishChannel> channel;
    std::size_t source = 0;  // Of the worker's queues.
  };
  std::shared_ptr<State> state = std::make_shared<State>();

  void set_visibility_end(Instant end) const;
  // Callbacks of the stop token run inside.
  void lose(Loss loss) const;
};
using Task = std::shared_ptr<const TaskInformation>;

}  // namespace stanchion::worker
