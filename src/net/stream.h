// A connected socket, plain or with TLS, that never blocks.
//
// Reactor thread only. Each call does what can be done now and says if it could not; the owner
// waits for readiness and calls again. The TLS handshake happens inside the first reads and writes.
#pragma once

#include <sys/uio.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>

#include "net/listen_socket.h"

struct ssl_st;

namespace stanchion::net {

// Asio's wait for a file descriptor, without the type-erased executor.
using Descriptor =
    boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type>;

enum class IoState {
  kDone,        // `bytes` were moved, at least one.
  kWantsRead,   // Nothing moved; call again when the socket is readable.
  kWantsWrite,  // Nothing moved; call again when the socket is writable.
  kEnd,         // The peer sends nothing more.
  kFailed,      // The connection is broken.
};

struct IoResult {
  IoState state = IoState::kFailed;
  std::size_t bytes = 0;
};

class Stream {
 public:
  // About what OpenSSL takes for a connection: while its handshake is under way; while a hello has
  // arrived in part, for which it reserves what the client says; afterwards; and besides for a
  // record of which only a part was read or written.
  static constexpr std::size_t kHandshakeBytes = 40 << 10;
  static constexpr std::size_t kHelloBytes = 176 << 10;
  static constexpr std::size_t kTlsBytes = 16 << 10;
  static constexpr std::size_t kRecordBytes = 17 << 10;

  // Takes ownership of `fd`, which is non-blocking, and `tls`, which is null for a plain
  // connection.
  Stream(int fd, ssl_st* tls);

  IoResult read(std::span<char> into);
  IoResult write(std::span<const iovec> from);

  bool is_tls() const { return tls_ != nullptr; }
  // About what OpenSSL holds for the connection; 0 for a plain one.
  std::size_t memory() const;
  // Whether a part of the client's hello has arrived, and no more.
  bool has_part_of_hello() const;
  bool is_shaking_hands() const;
  // After a failed read: whether the peer speaks plain HTTP on a TLS port. Then the stream is a
  // plain one from now on, so that the peer can be told.
  bool fall_back_to_plain();
  // Tells the peer that nothing more will be sent; reading goes on.
  void shutdown_write();
  // From now on the connection is broken if the peer does not acknowledge for this long what was
  // written, or takes nothing: a peer that vanished is noticed, although nothing waits here.
  void limit_unacknowledged(std::chrono::milliseconds time);
  void close();

  int fd() const { return fd_.get(); }

 private:
  struct TlsDeleter {
    void operator()(ssl_st* tls) const;
  };

  IoResult tls_result(int returned);

  Fd fd_;
  std::unique_ptr<ssl_st, TlsDeleter> tls_;
  bool spoke_http_ = false;  // In place of a handshake.
  bool tls_broken_ = false;  // OpenSSL forbids further calls after a fatal error.
};

}  // namespace stanchion::net
