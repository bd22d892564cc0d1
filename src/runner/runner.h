// How `stanchion work` handles messages: by commands, by a process, by an endpoint.
#pragma once

#include "base/prometheus_text.h"
#include "worker/options.h"

namespace stanchion::runner {

// Any thread. It outlives the worker.
class Runner {
 public:
  virtual ~Runner() = default;

  // Sets the handler of a queue, and what else this way of handling needs.
  virtual void attach(worker::QueueOptions& queue) = 0;
  // Nothing more comes: what waits for more of it should not wait any longer.
  virtual void finish() {}
  // The messages in flight were given back: ends what is under way, and answers.
  virtual void abandon() {}
  virtual void add_metrics(PrometheusText& /*text*/) const {}
};

}  // namespace stanchion::runner
