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

#include "net/connection.h"
#include "net/http_server.h"

namespace stanchion::net {

// What the listeners of one server share.
struct ServerShared {
  HttpServerOptions options;
  HttpHandler* handler = nullptr;
  std::atomic<std::size_t> open = 0;          // Connections of all listeners.
  std::atomic<std::size_t> draining = 0;      // Listeners that are not yet drained.
  std::atomic<std::size_t> body_bytes = 0;    // Of large bodies that are being read.
  std::atomic<std::size_t> output_bytes = 0;  // That wait for clients which do not read.
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
  Counter accepted, refused, requests, bad_requests, timeouts;
};

class Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener(std::shared_ptr<ServerShared> shared, Reactor& reactor);
  ~Listener();

  // Takes over a listening, non-blocking socket.
  void add_socket(int fd);
  void start();
  void drain();
  void stop();

  // For its connections.
  Reactor& reactor() { return reactor_; }
  const HttpLimits& limits() const { return shared_->options.limits; }
  HttpHandler& handler() { return *shared_->handler; }
  bool draining() const { return draining_; }
  ListenerCounters& counters() { return counters_; }
  Poller& poller() { return *poller_; }
  std::span<char> scratch() { return {scratch_.get(), kScratchSize}; }
  // "Date: …\r\n" of this second.
  std::string_view date_line();
  // Time is counted in ticks of the sweep, so that a request needs no clock. The tick at which
  // `timeout` from now has surely passed:
  std::uint32_t deadline_in(std::chrono::milliseconds timeout) const;
  bool is_past(std::uint32_t deadline) const { return deadline != 0 && tick_ >= deadline; }
  // Lets the connection write once the loop has done what is at hand, so that answers that come
  // one after the other leave together.
  void settle_later(std::shared_ptr<Connection> connection);
  void remove(Connection& connection);
  // Adds to what large bodies take, modulo 2^64; returns the sum over all listeners.
  std::size_t count_body_bytes(std::size_t more) {
    return shared_->body_bytes.fetch_add(more, std::memory_order_relaxed) + more;
  }
  // Likewise what waits to be written.
  std::size_t count_output_bytes(std::size_t more) {
    return shared_->output_bytes.fetch_add(more, std::memory_order_relaxed) + more;
  }

 private:
  using SweepTimer =
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>,
                                        boost::asio::io_context::executor_type>;
  static constexpr std::size_t kScratchSize = 64 * 1024;

  void arm_accept(Descriptor& socket);
  void accept_some(Descriptor& socket);
  bool accept_up_to(int most, Descriptor& socket);
  void take(int fd, Peer peer);
  void close_sockets();
  void arm_sweep();
  void sweep();
  void settle_all();
  void report_drained();

  const std::shared_ptr<ServerShared> shared_;
  Reactor& reactor_;
  std::vector<std::unique_ptr<Descriptor>> sockets_;
  std::vector<std::shared_ptr<Connection>> connections_;
  std::vector<std::shared_ptr<Connection>> unsettled_;
  std::vector<std::shared_ptr<Connection>> closed_;  // Until nothing can be reported of them.
  std::shared_ptr<Poller> poller_;
  std::unique_ptr<char[]> scratch_;
  ListenerCounters counters_;

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
