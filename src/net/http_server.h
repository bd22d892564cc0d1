// The HTTP/1.1 server: connections in, exchanges to a handler, answers out in order.
//
// Each reactor of the pool accepts on its own socket (SO_REUSEPORT) and keeps its connections to
// itself. A connection's requests go to the handler as they come, several at a time if the client
// pipelines; handlers may answer in any order, and answers are sent in the order of the requests.
//
//   accept ─▶ idle ─▶ head ─▶ body ─▶ Exchange ─▶ handler … answer() ─▶ written ─▶ idle
//               │       │       │         │
//            timeout   408   408, 413   client leaves: on_abandoned
//
// The body of a large answer may be made while the client takes it: answer() with a BodySource. In
// place of answer(), a handler may begin an answer that goes on: stream(). Such an answer is the last
// one of its connection.
//
// Mistakes of a client are answered here and never reach the handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/http_limits.h"
#include "net/http_message.h"
#include "net/reactor.h"
#include "net/tls.h"

namespace stanchion::net {

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // An address, or a name; then all its addresses are listened on.
  std::uint16_t port = 0;          // 0: any free one.
  std::string unix_path = {};      // If set, a Unix socket in place of host and port.
  HttpLimits limits = {};
  std::shared_ptr<TlsCredentials> tls = nullptr;  // Null: plain HTTP.
};

struct ExchangeState;

// The body of an answer that goes on, piece by piece, until its owner destroys the stream, the
// client leaves, or the server is drained. Belongs to the reactor of its exchange, as that did: it
// may be moved to other threads and destroyed there, but is used only on its reactor's thread, and
// must be gone before the reactor pool is.
//
//   RS1  At most one piece waits for a client: what is sent before the client has taken the last
//        piece is dropped as a whole.
//   RS2  The connection is not closed for being silent, but if the client does not take a piece for
//        as long as write_timeout, or to make room in memory, as with any answer.
//   RS3  A client that closes its sending side has left.
class ResponseStream {
 public:
  explicit ResponseStream(std::shared_ptr<ExchangeState> state);
  ~ResponseStream();
  ResponseStream(ResponseStream&&) noexcept = default;
  ResponseStream& operator=(ResponseStream&&) noexcept = delete;

  // Whether the piece will be written. False: it was dropped, by RS1 or because the client is gone.
  // `piece` must not be empty.
  [[nodiscard]] bool send(std::string_view piece);

  // `callback` runs once, soon after the client or the server has ended the stream; never inside a
  // call of this class, and it never begins after the stream was destroyed, on whatever thread.
  void on_gone(Task callback);

 private:
  std::shared_ptr<ExchangeState> state_;
};

// What a source of an answer's body has to say when it was asked for more.
enum class BodyPart {
  kMore,  // There is more behind what it appended.
  kLast,  // There is not.
  kCut,   // There is, but it cannot be had: the connection is closed, so that nobody takes what was
          // sent for all of it.
};

// Makes the body of an answer, part by part: appends the next one to `into`. Asked on the reactor's
// thread, one part per turn of the loop, when everything before is written: so a client that does
// not read costs no more than one part. Destroyed after its last part, or with the connection.
using BodySource = std::move_only_function<BodyPart(std::string& into)>;

// One request and the right to answer it once. Belongs to the reactor that received it: it may be
// moved to other threads, but is read and answered only on its reactor's thread, and must be gone
// before the reactor pool is.
//
//   EX1  Answered or streamed exactly once. An exchange dropped without either is answered with
//        500.
//   EX2  Answering after the client has disconnected does nothing.
class Exchange {
 public:
  explicit Exchange(std::shared_ptr<ExchangeState> state);
  ~Exchange();
  Exchange(Exchange&&) noexcept = default;
  Exchange& operator=(Exchange&&) noexcept = delete;

  HttpRequest& request();
  Reactor& reactor();

  // Ends the exchange; the request must not be used any more. May be called inside handle(). Makes
  // no callback.
  void answer(HttpResponse response);
  // The same with a body that is made as the client takes it: `source` makes what comes behind the
  // body of `begin`. Its size is not told; a client of HTTP/1.1 gets it in chunks.
  void answer(HttpResponse begin, BodySource source);

  // Begins an answer that goes on, in place of answer(). The body of `begin` is its first piece,
  // and always sent. No further request is taken from the connection, which is closed afterwards.
  ResponseStream stream(HttpResponse begin);
  bool answered() const { return state_ == nullptr; }

  // `callback` runs once, soon after the client closed its side or broke the connection while the
  // answer is pending; never inside a call of this class, and never after the answer. A client that
  // closed only its sending side can still be answered. A client with pipelined_max requests
  // pending is not watched.
  void on_abandoned(Task callback);
  bool abandoned() const;
  // Whether nobody can be answered any more, because the connection is closed.
  bool cut_off() const;

  // Frees the memory of the request, except small buffers. After that request() is empty, except
  // for the peer.
  void forget_request();

  // The handler holds `bytes` for this exchange until it is answered; replaces the figure given
  // before. False if all connections together hold too much to let an exchange wait.
  [[nodiscard]] bool hold(std::size_t bytes);

 private:
  std::shared_ptr<ExchangeState> state_;
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // On the thread of exchange.reactor(). Must not throw and must not block.
  virtual void handle(Exchange exchange) = 0;

  // Writes the answer to a request that the server refuses before it is complete. `request` has
  // what was read of it: nothing, or the head. Called on the thread of a reactor; must not throw.
  virtual HttpResponse refuse(const HttpRequest& request, int status, std::string_view reason);
};

struct HttpStats {
  std::uint64_t accepted = 0;  // Accepted connections, including refused ones.
  std::uint64_t refused = 0;   // Of these, by connections_max, per_address_max, or held_bytes_max.
  std::uint64_t open = 0;      // Connections now.
  std::uint64_t held_bytes = 0;    // Bytes held for requests, answers and TLS now.
  std::uint64_t shed = 0;          // Connections or requests dropped to make room.
  std::uint64_t requests = 0;      // Handed to the handler.
  std::uint64_t bad_requests = 0;  // Answered by the server with 4xx or 5xx.
  std::uint64_t timeouts = 0;      // Of these, with 408; and connections closed for silence.
};

class HttpServer {
 public:
  // Listens, or returns why it cannot. `pool` and `handler` must outlive the server. Requests come
  // as soon as the pool runs, before or after this call. A port that another server holds is
  // refused.
  static Result<std::unique_ptr<HttpServer>> start(ReactorPool& pool, HttpServerOptions options,
                                                   HttpHandler& handler);
  ~HttpServer();  // As stop().

  // The port that is listened on; 0 for a Unix socket.
  std::uint16_t port() const;

  // Any thread, once: stops accepting, closes idle connections, lets the exchanges in progress
  // finish and closes each connection after them. Then calls `done` on one of the reactors.
  void drain(Task done);

  // Closes everything now. After it returns, the handler is not called again; on_abandoned
  // callbacks may still run. Not from a reactor's thread. May be called twice.
  void stop();

  // Any thread.
  HttpStats stats() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stanchion::net
