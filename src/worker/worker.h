// Consumes queues: receives by long polls, runs a handler for each message on a pool of threads,
// keeps the visibility of what is in flight, and settles every message by its handler's verdict.
//
//   auto client = stanchion::client::Client::open({.endpoint = "http://127.0.0.1:9324"});
//   auto worker = stanchion::worker::Worker::open(*client, {
//       .queues = {{.url = url, .concurrency = 16}},
//       .handler = [](const TaskInformation& task) { …; return Verdict::done(); }});
//   if (!worker) … worker.error().to_string() …
//   …
//   (*worker)->stop(std::chrono::seconds(30));
//
// Any thread may call; stop() and the destructor not from a handler or a completion.
//
//   WK1  A message is deleted only after its handler returned done, or after the queue for rejected
//        messages or the paused queue has acknowledged it.
//   WK2  A message is received only if a thread or a place to wait is reserved for it.
//   WK3  A message of a FIFO group begins only after the one before it is deleted; if one fails, the
//        later ones in flight go back as well.
//   WK4  A message that is in flight is extended until it is settled; if that fails, its job is
//        told.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "client/client.h"
#include "client/outcome.h"
#include "worker/metrics.h"
#include "worker/options.h"

namespace stanchion::worker {

// What stop() has done with the messages that were in flight.
struct StopReport {
  std::size_t given_back = 0;  // Had not begun, or had not ended at the deadline.
  // Handlers that have not returned. Their messages are back in the queue, and what they return is
  // ignored.
  std::size_t still_running = 0;
};

class Worker {
 public:
  // Asks every queue for its attributes, and begins. The client must outlive the worker and must not
  // be moved. Fails with code::kInvalidSettings, or with what the server says about a queue.
  static client::Outcome<std::unique_ptr<Worker>> open(client::Client& client,
                                                       WorkerOptions options);
  // Stops without waiting for jobs, if stop() was not called, and waits until handlers have returned.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Receives nothing more, gives back what has not begun, and waits until the rest is settled. At
  // the deadline running jobs are told to stop (Loss::kStopped) and their messages given back. A
  // second call with a shorter time, from another thread, ends the wait of the first one.
  StopReport stop(std::chrono::milliseconds deadline);

  // Messages of the queue are no longer handled, by any worker, but moved to the paused queue, until
  // resume(). What was paused is handled then, in order on FIFO queues. Both are durable when they
  // return, and noticed by all workers of the queue within WorkerOptions::pause_check. Fails with
  // code::kInvalidSettings if the queue is not QueueOptions::pausable, or with what the server says.
  client::Outcome<PauseMode> pause(const std::string& queue_url);
  client::Outcome<PauseMode> resume(const std::string& queue_url);

  WorkerMetrics metrics() const;

 private:
  class Impl;
  explicit Worker(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace stanchion::worker
