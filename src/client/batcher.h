// Combines single sends, deletes and changes of visibility into batches automatically.
//
// Requests for one queue within the linger time go out as one call of up to 10 entries and 1 MiB; a
// full batch goes out at once. Each entry has its own completion, with its own result or error.
// Entries of one queue go out in the order in which one thread adds them; for FIFO queues the next
// batch of sends waits for the answer to the one before, so that order is kept.
//
// Any thread may call. Completions run where the client's do.
//
//   BT1  The completion of an entry runs exactly once, and never inside the call.
//   BT2  An entry waits no longer than the linger time before it is passed to the client, except
//        sends to FIFO queues.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "client/client.h"

namespace stanchion::client {

struct BatcherOptions {
  std::chrono::milliseconds linger{5};
  std::size_t entries_max = 10;       // Of a batch; 10 is the most that SQS accepts.
  std::size_t bytes_max = 1'048'576;  // Bodies and attributes of a batch; SQS accepts 1 MiB.
  std::size_t waiting_max = 100'000;  // Entries in hand; more fail with code::kTooManyCalls.
};

class Batcher {
 public:
  // The client must not be moved or destroyed before the batcher.
  explicit Batcher(Client& client, BatcherOptions options = {});
  // Sends the entries that it holds, and waits until they are answered. Not from a completion.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  void send(SendMessageRequest request, Completion<SendMessageResult> done);
  void remove(DeleteMessageRequest request, Completion<DeleteMessageResult> done);
  void change_visibility(ChangeMessageVisibilityRequest request,
                         Completion<ChangeMessageVisibilityResult> done);

  // The same, and waits for the answer; for programs with many threads.
  Outcome<SendMessageResult> send(SendMessageRequest request);
  Outcome<DeleteMessageResult> remove(DeleteMessageRequest request);
  Outcome<ChangeMessageVisibilityResult> change_visibility(ChangeMessageVisibilityRequest request);

  // Passes all waiting entries to the client now.
  void flush();
  // … and waits until all of them are answered. Not from a completion.
  void drain();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace stanchion::client
