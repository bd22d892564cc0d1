// The part of a server that lives on one reactor: its listening sockets and its connections.
//
// Reactor thread only, except the constructor, add_socket() before start(), and stats().
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "net/address_counts.h"
#include "net/connection.h"
#include "net/http_server.h"

namespace stanchion::net {

// State that the listeners of one server share.
struct ServerShared {
  HttpServerOptions options;
  HttpHandler* handler = nullptr;
  std::size_t listeners = 1;
  std::atomic<std::size_t> open = 0;      // Connections of all listeners.
  std::atomic<std::size_t> draining = 0;  // Listeners that are not yet drained.
  std::atomic<std::size_t> held = 0;      // Bytes for connections, as far as listeners told it.
  AddressCounts addresses;
  Task on_drained;
};

// A counter that one thread writes and any thread reads.
class Counter {
 public:
  void add() {
    value_.store(value_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_ = 0;
};

struct ListenerCounters {
  Counter accepted, refused, requests, bad_requests, timeouts, shed;
};

class Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener(std::shared_ptr<ServerShared> shared, Reactor& reactor);
  ~Listener();

  // Takes ownership of a listening, non-blocking socket.
  void add_socket(int fd);
  void start();
  void drain();
  void stop();

  // Called by its connections.
  Reactor& reactor() { return reactor_; }
  const HttpLimits& limits() const { return shared_->options.limits; }
  HttpHandler& handler() { return *shared_->handler; }
  bool draining() const { return draining_; }
  ListenerCounters& counters() { return counters_; }
  Poller& poller() { return *poller_; }
  std::span<char> scratch() { return {scratch_.get(), kScratchSize}; }
  // "Date: …\r\n" of the current second.
  std::string_view date_line();
  // Time is counted in ticks of the sweep, so that a request needs no clock. The tick at which
  // `timeout` from now has surely passed:
  std::uint32_t deadline_in(std::chrono::milliseconds timeout) const;
  bool is_past(std::uint32_t deadline) const { return deadline != 0 && tick_ >= deadline; }
  // Lets the connection write once the loop has done its current work, so that answers produced one
  // after the other leave together.
  void settle_later(std::shared_ptr<Connection> connection);
  void remove(Connection& connection);
  // A counter by which connections order their beginnings.
  std::uint64_t next_turn() { return ++turn_; }
  // Adds to the held bytes, modulo 2^64. False if the sum of all listeners is beyond the limit.
  bool count_held(std::size_t more);
  // Whether all listeners together are beyond the limit.
  bool full() const {
    return shared_->held.load(std::memory_order_relaxed) > limits().held_bytes_max;
  }
  // Whether there is room for an exchange that may wait long for its answer.
  bool may_wait() const { return shared_->held.load(std::memory_order_relaxed) <= crowded_at(); }
  std::size_t held() const { return held_.load(std::memory_order_relaxed); }  // Any thread.

 private:
  using SweepTimer =
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>,
                                        boost::asio::io_context::executor_type>;
  static constexpr std::size_t kScratchSize = 64 * 1024;

  void arm_accept(Descriptor& socket);
  void accept_some(Descriptor& socket);
  bool accept_up_to(int most, Descriptor& socket);
  void take(int fd, Peer peer, Network network);
  bool is_full(std::size_t open);
  bool close_a_silent_one();
  void close_sockets();
  void arm_sweep();
  void sweep();
  // Above the first figure room is made, until the second is reached.
  std::size_t crowded_at() const { return limits().held_bytes_max / 8 * 7; }
  std::size_t goal() const { return limits().held_bytes_max / 8 * 6; }
  void close_silent();
  bool has_memory_for_tls();
  void tell_held();
  void make_room();
  void settle_all();
  void report_drained();

  const std::shared_ptr<ServerShared> shared_;
  Reactor& reactor_;
  std::vector<std::unique_ptr<Descriptor>> sockets_;
  std::vector<std::shared_ptr<Connection>> connections_;
  std::vector<std::shared_ptr<Connection>> unsettled_;
  std::vector<std::shared_ptr<Connection>> closed_;  // Kept until no event can refer to them.
  std::shared_ptr<Poller> poller_;
  std::unique_ptr<char[]> scratch_;
  ListenerCounters counters_;

  std::atomic<std::size_t> held_ = 0;  // For the connections of this listener.
  std::size_t told_ = 0;               // The part of it that is included in shared_->held.
  std::uint64_t turn_ = 0;
  bool making_room_ = false;                 // A call of make_room() is scheduled.
  std::uint32_t no_room_tick_ = UINT32_MAX;  // When make_room() found too little to drop.

  SweepTimer sweep_timer_;
  std::chrono::milliseconds tick_length_;
  std::uint32_t tick_ = 1;
  bool sweeping_ = false;
  std::vector<Descriptor*> resting_;  // Sockets that accept again at the next tick.

  std::int64_t date_second_ = -1;
  char date_line_[48] = {};
  std::size_t date_size_ = 0;

  bool draining_ = false;
  bool drained_ = false;
  bool stopped_ = false;
};

}  // namespace stanchion::net
