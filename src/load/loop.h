// The loop of the load generator: workers, one per connection, each with one request under way. A
// Load chooses each worker's next request and processes the replies.
//
//   slot due ─▶ Load::next ─▶ send … response ─▶ Load::on_reply ─┐
//      ▲                                                         │
//      └─────────────────────────────────────────────────────────┘
//
// In a closed loop a worker goes on at once. At a fixed rate, units of work are due at fixed times
// whether or not a worker is free, and a unit's latency counts from when it was due: a server that
// stalls is charged for everything that would have been sent meanwhile.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "load/connections.h"
#include "load/histogram.h"
#include "load/requests.h"

namespace stanchion::load {

using Time = std::chrono::steady_clock::time_point;

// What is measured; each has its own line in the report.
enum class Op {
  kSend,
  kReceive,
  kDelete,
  kCycle,       // From the beginning of the send to the end of the delete.
  kPlainSend,   // To a queue on which nobody waits.
  kWakingSend,  // To a queue on which somebody waits.
  kWakeUp,      // From the beginning of that send to the end of the receive that it wakes.
  kWakeLag,     // From the end of that send; none if the receive ended first.
  kRequest,
  kSync,
};
inline constexpr std::size_t kOpCount = 10;
std::string_view name_of(Op op);

struct OpStats {
  Histogram latency;
  std::uint64_t messages = 0;
};

struct Stats {
  std::array<OpStats, kOpCount> ops;

  OpStats& operator[](Op op) { return ops[static_cast<std::size_t>(op)]; }
  const OpStats& operator[](Op op) const { return ops[static_cast<std::size_t>(op)]; }
  void add(Op op, Histogram::Nanos latency, std::uint64_t messages) {
    (*this)[op].latency.add(latency);
    (*this)[op].messages += messages;
  }
};

// Answers that were not 200, entries that were refused, connections that broke.
struct Errors {
  std::uint64_t refused = 0;
  std::uint64_t broken = 0;
  std::string first;
  std::uint64_t total() const { return refused + broken; }
};

struct Worker {
  enum class Step { kIdle, kSend, kReceive, kDelete };

  std::size_t index = 0;
  Step step = Step::kIdle;
  std::uint32_t queue = 0;
  std::string request;
  std::vector<PlacedMessage> messages;  // The messages of the send under way.
  std::vector<std::string> receipts;    // Received messages to be deleted.
  Time unit_due;                        // When the unit of work was due.
  Time due;                             // When the request under way was due.
  Time ask_again;                       // After Next::kLater.
};

class Load {
 public:
  virtual ~Load() = default;

  enum class Next {
    kRequest,  // worker.request is to be sent.
    kLater,    // Nothing now; call again at worker.ask_again.
    kDone,     // Nothing more for this worker.
  };

  // Whether the worker's next request begins a new unit of work, which waits for its slot.
  virtual bool begins_unit(const Worker& worker) const = 0;
  virtual Next next(Worker& worker, Time now) = 0;
  // False if the reply is invalid: then the run ends.
  virtual bool on_reply(Worker& worker, std::string_view body, Time now) = 0;
  // The request under way was refused or its connection broke.
  virtual void on_failure(Worker& worker) = 0;
  // True to end although requests are under way: the messages that they wait for will not come.
  virtual bool finished(Time now) const = 0;
};

class LoadLoop : public Connections::Handler {
 public:
  // `on_tick` is called ten times a second. Both flags must outlive the loop.
  LoadLoop(const std::atomic<bool>& interrupted, std::function<void(Time)> on_tick);

  // Opens all connections and waits until they are open.
  Status open(const Target& target, std::size_t connections);

  // Runs the load to its end. At `rate` units a second; 0 is a closed loop.
  Status run(Load& load, double rate);

  // From now on an interrupt does not end the current load, because it cleans up.
  void ignore_interrupts() { cleaning_up_ = true; }

  const Errors& errors() const { return errors_; }
  // Processor time spent on waiting instead of work.
  double spun_seconds() const {
    return client_ ? std::chrono::duration<double>(client_->spun()).count() : 0;
  }
  bool interrupted() const { return interrupted_; }

 private:
  void on_response(std::size_t connection, const net::ResponseReader& response) override;
  void on_broken(std::size_t connection, const Failure& failure) override;
  void go_on(Worker& worker, Time now);
  void ask(Worker& worker, Time now);
  void note(std::uint64_t& counter, std::string text);
  Time next_time(Time now) const;
  void wake(Time now);
  bool over(Time now) const;

  const std::atomic<bool>& interrupted_;
  std::function<void(Time)> on_tick_;
  std::unique_ptr<Connections> client_;
  std::vector<Worker> workers_;
  Load* load_ = nullptr;
  Histogram::Nanos interval_{0};
  Time next_slot_;
  std::deque<std::size_t> slotted_;  // Workers that wait for their slot, in its order.
  std::vector<std::size_t> later_;   // Workers that will be called again later.
  std::size_t under_way_ = 0;
  Time last_reply_;
  Time last_tick_;
  Errors errors_;
  bool cleaning_up_ = false;
  std::string failure_;  // Not empty: the failure with which the run ends.
};

}  // namespace stanchion::load
