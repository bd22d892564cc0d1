// The connections of the load generator: many to one server, on one thread, each with one request
// under way; over TCP, TLS or a Unix socket.
//
// A request is given as bytes and written at once if the socket accepts them; sockets are
// registered with epoll once, edge-triggered, so that an exchange costs one send(), one recv() and
// its share of an epoll_wait().
//
//   CN1  If the server closes a connection between two responses, the next send() opens it again
//        without a report.
//   CN2  A connection that breaks while it is being opened or while a response is due is closed,
//        and on_broken() says why.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/client_connection.h"
#include "net/tls_client.h"
#include "os/fd.h"

struct epoll_event;

namespace stanchion::load {

struct Target {
  std::string host;  // Of a Unix socket: its path.
  std::string port;  // Empty: a Unix socket.
  bool tls = false;
  net::TlsTrust trust = {};
  // Polls for answers instead of sleeping. For a client with a core to itself: waking a sleeping
  // core costs its server as much as writing the answer.
  bool busy_poll = false;
};

class Connections {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    // The connection may be used again at once, even inside the call; doing so invalidates the
    // response.
    virtual void on_response(std::size_t connection, const net::ResponseReader& response) = 0;
    virtual void on_broken(std::size_t connection, const Failure& failure) = 0;
  };

  // Resolves the address; opens no connection yet. `handler` must outlive the connections.
  static Result<std::unique_ptr<Connections>> open(Target target, std::size_t connections,
                                                   Handler& handler);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  std::size_t size() const { return connections_.size(); }

  // Begins to open every closed connection; wait() continues with that.
  void connect_all();
  std::size_t open_count() const { return open_count_; }

  // Sends a complete request. REQUIRES: no response is due on the connection.
  void send(std::size_t connection, std::string_view request);

  // Closes the connection, whatever is due on it; the handler is not called.
  void close(std::size_t connection);

  using Time = std::chrono::steady_clock::time_point;

  // Handles pending events, and waits for one until then at most. Returns the number of connections
  // that had an event.
  std::size_t wait(Time until);

  // Processor time spent on polling without a result, with busy_poll.
  std::chrono::nanoseconds spun() const { return spun_; }

 private:
  struct Connection;

  explicit Connections(Target target, Handler& handler);
  Status find_address();
  bool connect(std::size_t index);
  int sleep_until(Time until, std::span<epoll_event> events);
  int spin_until(Time until, std::span<epoll_event> events);
  void on_event(std::size_t index);
  void count_open(Connection& connection);

  const Target target_;
  Handler& handler_;
  net::TlsClientContext context_;
  net::ClientAddress address_;
  os::Fd epoll_;
  os::Fd timer_;
  Time timer_at_{};
  std::chrono::nanoseconds spun_{0};
  std::vector<std::unique_ptr<Connection>> connections_;
  std::size_t open_count_ = 0;
  std::unique_ptr<char[]> scratch_;
};

}  // namespace stanchion::load
