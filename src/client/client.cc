#include "client/client.h"

#include <future>
#include <utility>

#include "client/calls.h"
#include "client/impl.h"
#include "client/settings.h"

namespace stanchion::client {
namespace {

template <class Request>
Core::Id start(Core& core, Request request, Completion<typename Request::Result> done) {
  return start_call(core, std::move(request),
                    [&core, done = std::move(done)](auto outcome) mutable {
                      complete(core.options().executor, std::move(done), std::move(outcome));
                    });
}

// The caller's own thread waits, so the executor is not used.
template <class Request>
Outcome<typename Request::Result> call_and_wait(Core& core, Request request) {
  using Answered = Outcome<typename Request::Result>;
  if (core.is_own_thread())
    return Answered(local_error(code::kInvalidRequest,
                                "a completion that runs on the client's thread cannot wait for "
                                "another call: give that call a completion"));
  // Shared, because the other thread may still be in set_value() when this one has the answer.
  const auto answered = std::make_shared<std::promise<Answered>>();
  auto answer = answered->get_future();
  start_call(core, std::move(request),
             [answered](Answered outcome) { answered->set_value(std::move(outcome)); });
  return answer.get();
}

}  // namespace

Outcome<Client> Client::open(Options options) {
  auto settings = read_settings(options, process_environment());
  if (!settings) return settings.error();
  if (options.connections_max == 0 || options.calls_max == 0)
    return local_error(code::kInvalidSettings, "connections_max and calls_max are at least 1");
  if (options.retry.attempts_max < 1)
    return local_error(code::kInvalidSettings, "retry.attempts_max is at least 1");
  return Client(std::make_shared<Impl>(std::move(options), *std::move(settings)));
}

Client::Client(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

const std::string& Client::endpoint() const {
  return impl_->core.settings().endpoint;
}

const std::string& Client::region() const {
  return impl_->core.settings().region;
}

void Client::cancel(CallId call) {
  impl_->core.cancel(static_cast<Core::Id>(call));
}

// The two forms of every action differ only in their types.
#define STANCHION_CLIENT_CALL(function, Action)                                          \
  Outcome<Action##Result> Client::function(Action##Request request) {                    \
    return call_and_wait(impl_->core, std::move(request));                               \
  }                                                                                      \
  CallId Client::function(Action##Request request, Completion<Action##Result> done) {    \
    return static_cast<CallId>(start(impl_->core, std::move(request), std::move(done))); \
  }

STANCHION_CLIENT_CALL(add_permission, AddPermission)
STANCHION_CLIENT_CALL(cancel_message_move_task, CancelMessageMoveTask)
STANCHION_CLIENT_CALL(change_message_visibility, ChangeMessageVisibility)
STANCHION_CLIENT_CALL(change_message_visibility_batch, ChangeMessageVisibilityBatch)
STANCHION_CLIENT_CALL(create_queue, CreateQueue)
STANCHION_CLIENT_CALL(delete_message, DeleteMessage)
STANCHION_CLIENT_CALL(delete_message_batch, DeleteMessageBatch)
STANCHION_CLIENT_CALL(delete_queue, DeleteQueue)
STANCHION_CLIENT_CALL(get_queue_attributes, GetQueueAttributes)
STANCHION_CLIENT_CALL(get_queue_url, GetQueueUrl)
STANCHION_CLIENT_CALL(list_dead_letter_source_queues, ListDeadLetterSourceQueues)
STANCHION_CLIENT_CALL(list_message_move_tasks, ListMessageMoveTasks)
STANCHION_CLIENT_CALL(list_queue_tags, ListQueueTags)
STANCHION_CLIENT_CALL(list_queues, ListQueues)
STANCHION_CLIENT_CALL(purge_queue, PurgeQueue)
STANCHION_CLIENT_CALL(receive_message, ReceiveMessage)
STANCHION_CLIENT_CALL(remove_permission, RemovePermission)
STANCHION_CLIENT_CALL(send_message, SendMessage)
STANCHION_CLIENT_CALL(send_message_batch, SendMessageBatch)
STANCHION_CLIENT_CALL(set_queue_attributes, SetQueueAttributes)
STANCHION_CLIENT_CALL(stanchion_advice, StanchionAdvice)
STANCHION_CLIENT_CALL(stanchion_groups, StanchionGroups)
STANCHION_CLIENT_CALL(stanchion_peek, StanchionPeek)
STANCHION_CLIENT_CALL(start_message_move_task, StartMessageMoveTask)
STANCHION_CLIENT_CALL(tag_queue, TagQueue)
STANCHION_CLIENT_CALL(untag_queue, UntagQueue)

#undef STANCHION_CLIENT_CALL

}  // namespace stanchion::client
