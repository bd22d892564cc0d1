// One call of an HTTP client, and the idle connections that wait for the next call.
//
// Neither blocks: HttpClient drives a call with poll(), AsyncHttpClient with an event loop.
// http_client.h describes what a caller passes and gets.
//
//   idle connection ─▶ request ─▶ response ─▶ idle again
//          │ closed before a byte came, and the request may be repeated: once
//          ▼
//   addresses ─▶ connect to each in turn ─▶ request ─▶ response
//
// One thread at a time.
//
//   CL1  A request is written to at most one connection, or to two if it is repeatable and the
//        first was an idle one on which no byte of an answer came.
//   CL2  A connection returns to the idle ones only after a complete response that allows it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/client_connection.h"
#include "net/http_client.h"
#include "net/reactor.h"

namespace stanchion::net {

class IdleConnections {
 public:
  IdleConnections(std::size_t count_max, std::chrono::milliseconds time_max)
      : count_max_(count_max), time_max_(time_max) {}

  // The most recently used one, or null. It is still open, as far as can be seen.
  std::unique_ptr<ClientConnection> take(const std::string& key, SteadyTime now);
  void give(std::string key, std::unique_ptr<ClientConnection> connection, SteadyTime now);
  std::size_t size() const { return idle_.size(); }

 private:
  struct Idle {
    std::string key;
    std::unique_ptr<ClientConnection> connection;
    SteadyTime since;
  };

  const std::size_t count_max_;
  const std::chrono::milliseconds time_max_;
  std::vector<Idle> idle_;  // In the order in which they became idle.
};

// What all calls of a client share.
struct ClientState {
  explicit ClientState(ClientOptions o)
      : options(std::move(o)),
        idle(options.idle_max, options.idle_time),
        scratch(std::make_unique_for_overwrite<char[]>(kScratchSize)) {}

  static constexpr std::size_t kScratchSize = 64 * 1024;

  // Made by the first call that needs it.
  Result<ssl_ctx_st*> tls_context();

  const ClientOptions options;
  TlsClientContext context;
  IdleConnections idle;
  std::unique_ptr<char[]> scratch;
};

class ClientCall {
 public:
  // `state` outlives the call.
  ClientCall(ClientState& state, ClientRequest request, SteadyTime now);

  enum class Needs {
    kAddresses,  // For the addresses of host() and port(): continue with take_addresses().
    kSocket,     // For an event on fd(), or until deadline(): continue with advance().
    kNothing,    // The call has ended; see take_result().
  };
  Needs needs() const { return needs_; }

  const std::string& host() const { return request_.url.host; }
  const std::string& port() const { return request_.url.port; }
  void take_addresses(Result<std::vector<ClientAddress>> addresses, SteadyTime now);

  int fd() const { return connection_ ? connection_->fd() : -1; }
  bool wants_write() const { return connection_->wants_write(); }
  // Whether advance() has something to do although no new event has come.
  bool may_have_more() const { return connection_->may_have_more(); }
  SteadyTime deadline() const;
  void advance(SteadyTime now);

  Result<ClientResponse> take_result() { return std::move(*result_); }

  // Whether the request or a part of it may have reached the server.
  bool sent() const { return sent_ || (connection_ && connection_->was_open()); }

 private:
  void connect_next(SteadyTime now);
  void begin_again(SteadyTime now);
  void on_broken(const Failure& failure, SteadyTime now);
  void on_late(SteadyTime now);
  void finish(SteadyTime now);
  void fail_with(std::string message, int os_error = 0);
  std::string with_target(const std::string& message) const;

  ClientState& state_;
  const ClientRequest request_;
  std::string bytes_;
  std::string key_;  // Of connections that this request may use.
  const SteadyTime end_;
  SteadyTime connect_end_;
  SteadyTime attempt_end_;  // Deadline of the address that is tried.
  std::vector<ClientAddress> addresses_;
  std::size_t next_address_ = 0;
  std::unique_ptr<ClientConnection> connection_;
  bool reused_ = false;
  bool sent_ = false;  // On a connection that is gone.
  Needs needs_ = Needs::kAddresses;
  std::optional<Result<ClientResponse>> result_;
};

}  // namespace stanchion::net
