// A client of Amazon SQS, and of every server that speaks its protocol.
//
//   auto client = stanchion::client::Client::open({.endpoint = "http://127.0.0.1:9324"});
//   if (!client) … client.error().to_string() …
//   auto sent = client->send_message({.queue_url = url, .message_body = "hello"});
//   client->receive_message({.queue_url = url, .wait_time_seconds = 20},
//                           [](Outcome<ReceiveMessageResult> received) { … });
//
// Every action exists twice: with a completion it returns at once, without one it waits.
//
// Any thread may call. A client has one thread of its own for all communication; completions run on
// it, or where Options::executor passes them. A completion that runs on the client's thread must
// not wait: a call without a completion fails there with code::kInvalidRequest.
//
//   CT1  The completion of a call runs exactly once, and never inside the call; when the client is
//        destroyed, calls still under way complete with code::kClosed.
//   CT2  A send without a deduplication id that may have succeeded is not repeated, unless
//        RetryOptions::repeat_ambiguous_sends allows it.
//   CT3  Calls begin in the order in which one thread makes them; they may end in any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "client/options.h"
#include "client/outcome.h"
#include "client/types.h"

namespace stanchion::client {

template <class Result>
using Completion = std::function<void(Outcome<Result>)>;

// Identifies a call under way, to cancel it.
enum class CallId : std::uint64_t {};

class Client {
 public:
  // Determines the region and the endpoint, without connecting. Fails with code::kInvalidSettings.
  static Outcome<Client> open(Options options = {});
  // Ends the client's thread. Not from a completion that runs on it.
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  // Where calls are sent, and for which region they are signed.
  const std::string& endpoint() const;
  const std::string& region() const;

  // The call completes with code::kCancelled, soon; a call that has ended is left alone. A request
  // that was already sent may have been executed: messages that a cancelled receive was about to
  // get may be in flight.
  void cancel(CallId call);

  // Messages.
  Outcome<SendMessageResult> send_message(SendMessageRequest request);
  CallId send_message(SendMessageRequest request, Completion<SendMessageResult> done);
  Outcome<SendMessageBatchResult> send_message_batch(SendMessageBatchRequest request);
  CallId send_message_batch(SendMessageBatchRequest request,
                            Completion<SendMessageBatchResult> done);
  Outcome<ReceiveMessageResult> receive_message(ReceiveMessageRequest request);
  CallId receive_message(ReceiveMessageRequest request, Completion<ReceiveMessageResult> done);
  Outcome<DeleteMessageResult> delete_message(DeleteMessageRequest request);
  CallId delete_message(DeleteMessageRequest request, Completion<DeleteMessageResult> done);
  Outcome<DeleteMessageBatchResult> delete_message_batch(DeleteMessageBatchRequest request);
  CallId delete_message_batch(DeleteMessageBatchRequest request,
                              Completion<DeleteMessageBatchResult> done);
  Outcome<ChangeMessageVisibilityResult> change_message_visibility(
      ChangeMessageVisibilityRequest request);
  CallId change_message_visibility(ChangeMessageVisibilityRequest request,
                                   Completion<ChangeMessageVisibilityResult> done);
  Outcome<ChangeMessageVisibilityBatchResult> change_message_visibility_batch(
      ChangeMessageVisibilityBatchRequest request);
  CallId change_message_visibility_batch(ChangeMessageVisibilityBatchRequest request,
                                         Completion<ChangeMessageVisibilityBatchResult> done);

  // Queues.
  Outcome<CreateQueueResult> create_queue(CreateQueueRequest request);
  CallId create_queue(CreateQueueRequest request, Completion<CreateQueueResult> done);
  Outcome<DeleteQueueResult> delete_queue(DeleteQueueRequest request);
  CallId delete_queue(DeleteQueueRequest request, Completion<DeleteQueueResult> done);
  Outcome<GetQueueUrlResult> get_queue_url(GetQueueUrlRequest request);
  CallId get_queue_url(GetQueueUrlRequest request, Completion<GetQueueUrlResult> done);
  Outcome<ListQueuesResult> list_queues(ListQueuesRequest request = {});
  CallId list_queues(ListQueuesRequest request, Completion<ListQueuesResult> done);
  Outcome<ListDeadLetterSourceQueuesResult> list_dead_letter_source_queues(
      ListDeadLetterSourceQueuesRequest request);
  CallId list_dead_letter_source_queues(ListDeadLetterSourceQueuesRequest request,
                                        Completion<ListDeadLetterSourceQueuesResult> done);
  Outcome<GetQueueAttributesResult> get_queue_attributes(GetQueueAttributesRequest request);
  CallId get_queue_attributes(GetQueueAttributesRequest request,
                              Completion<GetQueueAttributesResult> done);
  Outcome<SetQueueAttributesResult> set_queue_attributes(SetQueueAttributesRequest request);
  CallId set_queue_attributes(SetQueueAttributesRequest request,
                              Completion<SetQueueAttributesResult> done);
  Outcome<PurgeQueueResult> purge_queue(PurgeQueueRequest request);
  CallId purge_queue(PurgeQueueRequest request, Completion<PurgeQueueResult> done);
  Outcome<ListQueueTagsResult> list_queue_tags(ListQueueTagsRequest request);
  CallId list_queue_tags(ListQueueTagsRequest request, Completion<ListQueueTagsResult> done);
  Outcome<TagQueueResult> tag_queue(TagQueueRequest request);
  CallId tag_queue(TagQueueRequest request, Completion<TagQueueResult> done);
  Outcome<UntagQueueResult> untag_queue(UntagQueueRequest request);
  CallId untag_queue(UntagQueueRequest request, Completion<UntagQueueResult> done);
  Outcome<AddPermissionResult> add_permission(AddPermissionRequest request);
  CallId add_permission(AddPermissionRequest request, Completion<AddPermissionResult> done);
  Outcome<RemovePermissionResult> remove_permission(RemovePermissionRequest request);
  CallId remove_permission(RemovePermissionRequest request,
                           Completion<RemovePermissionResult> done);

  // Looking at a queue without changing it. Stanchion only.
  Outcome<StanchionPeekResult> stanchion_peek(StanchionPeekRequest request);
  CallId stanchion_peek(StanchionPeekRequest request, Completion<StanchionPeekResult> done);
  Outcome<StanchionAdviceResult> stanchion_advice(StanchionAdviceRequest request = {});
  CallId stanchion_advice(StanchionAdviceRequest request, Completion<StanchionAdviceResult> done);
  Outcome<StanchionGroupsResult> stanchion_groups(StanchionGroupsRequest request);
  CallId stanchion_groups(StanchionGroupsRequest request, Completion<StanchionGroupsResult> done);

  // Moving messages back from a dead-letter queue.
  Outcome<StartMessageMoveTaskResult> start_message_move_task(StartMessageMoveTaskRequest request);
  CallId start_message_move_task(StartMessageMoveTaskRequest request,
                                 Completion<StartMessageMoveTaskResult> done);
  Outcome<CancelMessageMoveTaskResult> cancel_message_move_task(
      CancelMessageMoveTaskRequest request);
  CallId cancel_message_move_task(CancelMessageMoveTaskRequest request,
                                  Completion<CancelMessageMoveTaskResult> done);
  Outcome<ListMessageMoveTasksResult> list_message_move_tasks(ListMessageMoveTasksRequest request);
  CallId list_message_move_tasks(ListMessageMoveTasksRequest request,
                                 Completion<ListMessageMoveTasksResult> done);

 private:
  friend class Batcher;
  struct Impl;
  explicit Client(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace stanchion::client
