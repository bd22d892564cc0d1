// The client's side of HTTP/1.1 for programs that make load: many connections on one thread, one
// request at a time on each, over TCP, TLS or a Unix socket.
//
// One thread. A request is given as bytes and written at once where the socket takes them; sockets
// are registered with epoll once and edge-triggered, so that an exchange costs one send(), one
// recv() and its share of an epoll_wait().
//
//   closed ──send() or connect_all()──▶ connecting ─▶ open ─▶ (waiting ─▶ response) … ─▶ closed
//
//   H1  A connection that the server closes between two responses is opened again by the next
//       send(); nobody is told.
//   H2  A connection that breaks while it is opened or while a response is due is closed, and
//       on_broken() says why.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/listen_socket.h"
#include "net/response_reader.h"
#include "net/tls_client.h"

struct epoll_event;

namespace stanchion::net {

struct ClientTarget {
  std::string host;  // Of a Unix socket: its path.
  std::string port;  // Empty: a Unix socket.
  bool tls = false;
  TlsTrust trust = {};
  // Asks for answers again and again instead of sleeping. For a client with a core to itself: to
  // wake one that sleeps costs its server as much as to write the answer.
  bool busy_poll = false;
};

class HttpClient {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    // The connection may be used again at once, inside the call as well; doing so ends the life of
    // the response.
    virtual void on_response(std::size_t connection, const ResponseReader& response) = 0;
    virtual void on_broken(std::size_t connection, const Failure& failure) = 0;
  };

  // Looks up the address; connects nothing yet. `handler` outlives the client.
  static Result<std::unique_ptr<HttpClient>> open(ClientTarget target, std::size_t connections,
                                                  Handler& handler);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  std::size_t size() const { return connections_.size(); }

  // Begins to open every connection that is closed; wait() goes on with it.
  void connect_all();
  std::size_t open_count() const { return open_count_; }

  // Sends a whole request. REQUIRES: no response is due on the connection.
  void send(std::size_t connection, std::string_view request);

  // Closes the connection, whatever is due on it; the handler is not called.
  void close(std::size_t connection);

  using Time = std::chrono::steady_clock::time_point;

  // Handles what has come, and waits for something to come until then at most. Returns the number
  // of connections on which something came.
  std::size_t wait(Time until);

  // The processor's time that went into asking in vain, with busy_poll.
  std::chrono::nanoseconds spun() const { return spun_; }

 private:
  struct Connection;

  explicit HttpClient(ClientTarget target, Handler& handler);
  Status resolve();
  void connect(std::size_t index);
  bool finish_connect(std::size_t index);
  bool start_session(Connection& connection);
  int sleep_until(Time until, std::span<epoll_event> events);
  int spin_until(Time until, std::span<epoll_event> events);
  void on_event(std::size_t index);
  void flush(std::size_t index);
  void read(std::size_t index);
  void take(std::size_t index, std::string_view bytes);
  void hand_out(std::size_t index);
  void end_of_stream(std::size_t index);
  void break_off(std::size_t index, Failure failure);

  const ClientTarget target_;
  Handler& handler_;
  TlsClientContext context_;
  sockaddr_storage address_{};
  socklen_t address_size_ = 0;
  Fd epoll_;
  Fd timer_;
  Time timer_at_{};
  std::chrono::nanoseconds spun_{0};
  std::vector<std::unique_ptr<Connection>> connections_;
  std::size_t open_count_ = 0;
  std::unique_ptr<char[]> scratch_;
};

}  // namespace stanchion::net
