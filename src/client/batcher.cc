#include "client/batcher.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <future>
#include <mutex>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "client/batch_plan.h"
#include "client/calls.h"
#include "client/impl.h"

namespace stanchion::client {
namespace {

std::size_t bytes_of(const MessageAttributes& attributes) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : attributes)
    bytes += name.size() + value.data_type.size() +
             (value.string_value ? value.string_value->size() : 0) +
             (value.binary_value ? value.binary_value->size() : 0);
  return bytes;
}

std::size_t bytes_of(const SendMessageRequest& request) {
  return request.message_body.size() + bytes_of(request.message_attributes);
}
std::size_t bytes_of(const DeleteMessageRequest&) {
  return 0;
}
std::size_t bytes_of(const ChangeMessageVisibilityRequest&) {
  return 0;
}

// The batch request in which a single request is sent.
template <class Request>
struct BatchOf;
template <>
struct BatchOf<SendMessageRequest> {
  using Type = SendMessageBatchRequest;
  static SendMessageBatchRequestEntry entry(SendMessageRequest&& r) {
    return {.message_body = std::move(r.message_body),
            .delay_seconds = r.delay_seconds,
            .message_attributes = std::move(r.message_attributes),
            .message_system_attributes = std::move(r.message_system_attributes),
            .message_deduplication_id = std::move(r.message_deduplication_id),
            .message_group_id = std::move(r.message_group_id)};
  }
  static SendMessageResult result(SendMessageBatchResultEntry&& e) {
    return {std::move(e.message_id), std::move(e.md5_of_message_body),
            std::move(e.md5_of_message_attributes), std::move(e.md5_of_message_system_attributes),
            std::move(e.sequence_number)};
  }
};
template <>
struct BatchOf<DeleteMessageRequest> {
  using Type = DeleteMessageBatchRequest;
  static DeleteMessageBatchRequestEntry entry(DeleteMessageRequest&& r) {
    return {.receipt_handle = std::move(r.receipt_handle)};
  }
  static DeleteMessageResult result(BatchResultEntry&&) { return {}; }
};
template <>
struct BatchOf<ChangeMessageVisibilityRequest> {
  using Type = ChangeMessageVisibilityBatchRequest;
  static ChangeMessageVisibilityBatchRequestEntry entry(ChangeMessageVisibilityRequest&& r) {
    return {.receipt_handle = std::move(r.receipt_handle),
            .visibility_timeout = r.visibility_timeout};
  }
  static ChangeMessageVisibilityResult result(BatchResultEntry&&) { return {}; }
};

Error error_of_entry(BatchResultErrorEntry&& entry, const CallInfo& info) {
  const bool damaged = entry.code == code::kChecksumMismatch;
  return {.code = std::move(entry.code),
          .message = std::move(entry.message),
          .http_status = 200,
          .request_id = info.request_id,
          .fault = entry.sender_fault ? Fault::kSender : Fault::kReceiver,
          .may_have_happened = damaged};
}

// A request that waits for its batch. `done` runs on the core's thread.
template <class Request>
struct Waiting {
  Request request;
  std::function<void(Outcome<typename Request::Result>)> done;
  bool doubles = false;  // Without a deduplication id, a repeated send may arrive twice.
};

// Completes every entry of a batch with its outcome.
template <class Request>
void settle(std::vector<Waiting<Request>>& entries,
            Outcome<typename BatchOf<Request>::Type::Result> outcome) {
  using Single = Outcome<typename Request::Result>;
  std::vector<std::optional<Single>> ends(entries.size());
  const auto place_of = [&](const std::string& id) -> std::optional<Single>* {
    const auto at = parse_decimal(id);
    return at && *at < ends.size() ? &ends[*at] : nullptr;
  };
  if (outcome) {
    for (auto& entry : outcome->successful)
      if (auto* end = place_of(entry.id))
        end->emplace(BatchOf<Request>::result(std::move(entry)), outcome.info());
    for (auto& entry : outcome->failed)
      if (auto* end = place_of(entry.id))
        end->emplace(error_of_entry(std::move(entry), outcome.info()), outcome.info());
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    CallInfo info = outcome.info();
    info.may_be_duplicated = info.may_be_duplicated && entries[i].doubles;
    if (!outcome) {
      entries[i].done(Single(outcome.error(), std::move(info)));
    } else if (!ends[i]) {
      entries[i].done(Single(Error{.code = code::kBadAnswer,
                                   .message = "the answer to the batch does not name this entry",
                                   .http_status = 200,
                                   .request_id = outcome.info().request_id,
                                   .may_have_happened = true},
                             std::move(info)));
    } else if (*ends[i]) {
      entries[i].done(Single(*std::move(*ends[i]), std::move(info)));
    } else {
      entries[i].done(std::move(*ends[i]));
    }
  }
}

}  // namespace

struct Batcher::Impl {
  using Clock = std::chrono::steady_clock;

  Impl(std::shared_ptr<Client::Impl> c, BatcherOptions o)
      : client(std::move(c)),
        options(o),
        sends(limits()),
        deletes(limits()),
        changes(limits()),
        timer(client->core.loop()) {}

  BatchLimits limits() const {
    return {options.linger, std::clamp<std::size_t>(options.entries_max, 1, 10),
            std::clamp<std::size_t>(options.bytes_max, 1, 1'048'576)};
  }

  template <class Request>
  BatchPlan<Waiting<Request>>& plan_of() {
    if constexpr (std::is_same_v<Request, SendMessageRequest>)
      return sends;
    else if constexpr (std::is_same_v<Request, DeleteMessageRequest>)
      return deletes;
    else
      return changes;
  }

  template <class Request>
  void add(Request request, Completion<typename Request::Result> done, bool direct);
  template <class Request>
  void send_due(bool all);
  void send_all_due(bool all);
  void set_timer();
  void count_down();
  void wait_until_none();

  const std::shared_ptr<Client::Impl> client;
  const BatcherOptions options;
  // The core's thread only.
  BatchPlan<Waiting<SendMessageRequest>> sends;
  BatchPlan<Waiting<DeleteMessageRequest>> deletes;
  BatchPlan<Waiting<ChangeMessageVisibilityRequest>> changes;
  boost::asio::steady_timer timer;
  std::optional<Clock::time_point> timer_at;
  // Entries whose completion has not run.
  std::mutex mutex;
  std::condition_variable none_left;
  std::size_t in_hand = 0;
};

// `direct`: the completion runs on the core's thread, whatever the client's executor is.
template <class Request>
void Batcher::Impl::add(Request request, Completion<typename Request::Result> done, bool direct) {
  using Single = Outcome<typename Request::Result>;
  Core& core = client->core;
  auto tell = [this, &core, direct, done = std::move(done)](Single outcome) {
    if (direct)
      done(std::move(outcome));
    else
      complete(core.options().executor, done, std::move(outcome));
    count_down();
  };
  bool full = false;
  {
    const std::lock_guard lock(mutex);
    full = in_hand >= options.waiting_max;
    ++in_hand;
  }
  if (full)
    return core.post([tell = std::move(tell)] {
      tell(local_error(code::kTooManyCalls, "more entries wait than waiting_max allows"));
    });
  // An entry that cannot be written must not fail the batch of the others.
  if (const auto written = RequestJson::write(request); !written)
    return core.post([tell = std::move(tell), message = written.error().message] {
      tell(local_error(code::kInvalidRequest, message));
    });
  Waiting<Request> waiting{std::move(request), std::move(tell)};
  waiting.doubles = repetition_of(waiting.request) == Repetition::kDoubles;
  core.post([this, waiting = std::move(waiting)]() mutable {
    const std::string lane = waiting.request.queue_url;
    const bool ordered = std::is_same_v<Request, SendMessageRequest> && is_fifo(lane);
    const std::size_t bytes = bytes_of(waiting.request);
    plan_of<Request>().add(lane, ordered, bytes, std::move(waiting), Clock::now());
    send_due<Request>(false);
    set_timer();
  });
}

template <class Request>
void Batcher::Impl::send_due(bool all) {
  auto& plan = plan_of<Request>();
  while (auto batch = plan.take(Clock::now(), all)) {
    typename BatchOf<Request>::Type request{.queue_url = batch->lane};
    for (auto& waiting : batch->items)
      request.entries.push_back(BatchOf<Request>::entry(std::move(waiting.request)));
    start_call(client->core, std::move(request),
               [this, entries = std::move(batch->items), lane = batch->lane](auto outcome) mutable {
                 plan_of<Request>().answered(lane);
                 send_due<Request>(false);
                 set_timer();
                 settle<Request>(entries, std::move(outcome));
               });
  }
}

void Batcher::Impl::send_all_due(bool all) {
  send_due<SendMessageRequest>(all);
  send_due<DeleteMessageRequest>(all);
  send_due<ChangeMessageVisibilityRequest>(all);
  set_timer();
}

void Batcher::Impl::set_timer() {
  std::optional<Clock::time_point> next;
  for (const auto& deadline :
       {sends.next_deadline(), deletes.next_deadline(), changes.next_deadline()})
    if (deadline && (!next || *deadline < *next)) next = deadline;
  // A timer that fires early checks again; only one that would be late is moved.
  if (!next || (timer_at && *timer_at <= *next)) return;
  timer_at = next;
  timer.expires_at(*next);
  timer.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    timer_at.reset();
    send_all_due(false);
  });
}

void Batcher::Impl::count_down() {
  const std::lock_guard lock(mutex);
  if (--in_hand == 0) none_left.notify_all();
}

void Batcher::Impl::wait_until_none() {
  CHECK(!client->core.is_own_thread(), "a completion does not wait for its batcher");
  std::unique_lock lock(mutex);
  none_left.wait(lock, [&] { return in_hand == 0; });
}

Batcher::Batcher(Client& client, BatcherOptions options)
    : impl_(std::make_shared<Impl>(client.impl_, options)) {}

Batcher::~Batcher() {
  drain();
  // After this, nothing of the batcher is left on the loop.
  const auto gone = std::make_shared<std::promise<void>>();
  Core& core = impl_->client->core;
  core.post([impl = impl_.get(), &core, gone] {
    impl->timer.cancel();
    core.post([gone] { gone->set_value(); });
  });
  gone->get_future().wait();
}

void Batcher::send(SendMessageRequest request, Completion<SendMessageResult> done) {
  impl_->add(std::move(request), std::move(done), false);
}

void Batcher::remove(DeleteMessageRequest request, Completion<DeleteMessageResult> done) {
  impl_->add(std::move(request), std::move(done), false);
}

void Batcher::change_visibility(ChangeMessageVisibilityRequest request,
                                Completion<ChangeMessageVisibilityResult> done) {
  impl_->add(std::move(request), std::move(done), false);
}

namespace {

template <class Result, class Add>
Outcome<Result> wait_for(const Core& core, const Add& add) {
  if (core.is_own_thread())
    return local_error(code::kInvalidRequest,
                       "a completion that runs on the client's thread cannot wait for a batch");
  const auto answered = std::make_shared<std::promise<Outcome<Result>>>();
  auto answer = answered->get_future();
  add([answered](Outcome<Result> outcome) { answered->set_value(std::move(outcome)); });
  return answer.get();
}

}  // namespace

Outcome<SendMessageResult> Batcher::send(SendMessageRequest request) {
  return wait_for<SendMessageResult>(impl_->client->core, [&](auto done) {
    impl_->add(std::move(request), std::move(done), true);
  });
}

Outcome<DeleteMessageResult> Batcher::remove(DeleteMessageRequest request) {
  return wait_for<DeleteMessageResult>(impl_->client->core, [&](auto done) {
    impl_->add(std::move(request), std::move(done), true);
  });
}

Outcome<ChangeMessageVisibilityResult> Batcher::change_visibility(
    ChangeMessageVisibilityRequest request) {
  return wait_for<ChangeMessageVisibilityResult>(impl_->client->core, [&](auto done) {
    impl_->add(std::move(request), std::move(done), true);
  });
}

void Batcher::flush() {
  impl_->client->core.post([impl = impl_.get()] { impl->send_all_due(true); });
}

void Batcher::drain() {
  flush();
  impl_->wait_until_none();
}

}  // namespace stanchion::client
