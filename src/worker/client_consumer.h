// A consumer whose calls a client makes, and whose answers take the mutex of a loop.
//
// Functions are called with the loop's mutex held. The loop must be without calls under way before
// the consumer is destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client/batcher.h"
#include "client/client.h"
#include "worker/consumer.h"
#include "worker/worker_loop.h"

namespace stanchion::worker {

// What the owner of a consumer is told, with the mutex; it may call the consumer, except in `lost`
// and `report`.
struct ConsumerEvents {
  std::function<void(const std::vector<Task>& tasks)> received;  // They are held from now on.
  std::function<void()> answered;  // After each answer to a receive or to deletes.
  std::function<void(const Task& task, Loss loss)> lost;
  std::function<void(const std::string& what)> report;
};

// What the consumers of a worker share.
struct ConsumerContext {
  client::Client& client;
  client::Batcher& batcher;
  WorkerLoop& loop;
  TaskIds& ids;
};

class ClientConsumer final : private ConsumerPort {
 public:
  // `wait`: of a long poll.
  ClientConsumer(const ConsumerContext& context, std::chrono::seconds wait, ConsumerOptions options,
                 ConsumerEvents events);

  Consumer* operator->() { return &consumer_; }
  const Consumer* operator->() const { return &consumer_; }

 private:
  client::CallId receive(std::uint64_t poll, std::size_t count) override;
  void cancel(client::CallId receive) override { client_.cancel(receive); }
  void extend(ExtensionBatch batch) override;
  void remove(std::uint64_t batch, std::vector<std::string> receipt_handles) override;
  void change_visibility(const Task& task, std::chrono::seconds timeout) override;
  void tick_by(Instant time) override { loop_.wake_by(time); }
  void lost(const Task& task, Loss loss) override { events_.lost(task, loss); }
  void report(const std::string& what) override { events_.report(what); }

  client::Client& client_;
  client::Batcher& batcher_;
  WorkerLoop& loop_;
  const std::chrono::seconds wait_;
  const std::string queue_url_;
  const ConsumerEvents events_;
  Consumer consumer_;
};

}  // namespace stanchion::worker
