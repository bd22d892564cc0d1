// One connection of a client: the socket, TLS on it, one request at a time and its response.
//
// The connection never blocks: its owner watches the socket, by whatever means, and calls advance()
// when something may have come. So one implementation serves a program that waits for one answer,
// an event loop, and a load generator with thousands of connections.
//
//   closed ─connect()─▶ connecting ─▶ handshake (TLS) ─▶ open ─▶ (send() ─▶ response) … ─▶ closed
//
// One thread at a time.
//
//   CC1  A response is due from send() on, until advance() has returned it or the connection is
//        closed.
//   CC2  A connection on which anything but a complete response came is never open afterwards.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/response_reader.h"
#include "net/tls_client.h"
#include "os/fd.h"

namespace stanchion::net {

struct ClientAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// The address of a Unix socket.
Result<ClientAddress> unix_address(const std::string& path);

// The address if `text` is numeric, as "127.0.0.1" or "::1"; nullopt if it is a name.
std::optional<ClientAddress> numeric_address(const std::string& host, const std::string& port);

// All addresses of a host, at least one. Blocks on the resolver, which has time limits of its own.
Result<std::vector<ClientAddress>> resolve(const std::string& host, const std::string& port);

class ClientConnection {
 public:
  explicit ClientConnection(ResponseLimits limits = {}) : reader_(limits) {}

  enum class News {
    kNone,      // Wait for the socket, unless may_have_more().
    kResponse,  // response() is complete. It is valid until the next send() or advance().
    kEnded,     // The server closed the connection, and nothing was due.
    kBroken,    // The connection closed before a due response was complete; failure() says why.
  };

  // Begins to open the connection. REQUIRES: closed. `context` is null without TLS.
  Status connect(const ClientAddress& address, ssl_ctx_st* context, const std::string& server_name);

  // Sends a complete request, once the connection is open. REQUIRES: not closed, and no response is
  // due. `bodiless`: it is a HEAD, whose response has no body.
  void send(std::string_view request, bool bodiless = false);

  // Goes on with whatever the connection is doing. Input is read through `scratch`.
  News advance(std::span<char> scratch);

  // Whether there may be more to read without an event of the socket: call advance() again.
  bool may_have_more() const { return may_have_more_; }

  void close();

  bool is_closed() const { return phase_ == Phase::kClosed; }
  bool is_open() const { return phase_ == Phase::kOpen; }
  // Whether the connection has become open since connect().
  bool was_open() const { return was_open_; }
  bool is_due() const { return due_; }
  // Whether bytes of the response to the last request have arrived.
  bool answer_begun() const { return reader_.begun(); }
  // Whether the connection waits to write and not only to read.
  bool wants_write() const { return phase_ == Phase::kConnecting || wants_write_; }
  // Whether the server has neither closed the connection nor sent anything, by checking the socket.
  bool is_quiet() const;

  int fd() const { return fd_.get(); }
  const ResponseReader& response() const { return reader_; }
  const Failure& failure() const { return failure_; }

 private:
  enum class Phase { kClosed, kConnecting, kHandshake, kOpen };

  bool finish_connect();
  bool shake_hands();
  void flush();
  News read(std::span<char> scratch);
  News take(std::string_view bytes);
  News end_of_stream(bool whole);
  News break_off(Failure failure);
  bool would_block(ssize_t result);

  os::Fd fd_;
  TlsSession session_;
  ssl_ctx_st* context_ = nullptr;
  std::string server_name_;
  Phase phase_ = Phase::kClosed;
  bool was_open_ = false;
  bool due_ = false;
  bool wants_write_ = false;
  bool may_have_more_ = false;
  std::string unsent_;
  ResponseReader reader_;
  Failure failure_;
};

}  // namespace stanchion::net
