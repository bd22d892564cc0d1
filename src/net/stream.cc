#include "net/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

namespace stanchion::net {

namespace {

IoResult system_error(IoState would_block) {
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {would_block};
  return {IoState::kFailed};
}

// An interrupted call is repeated at once: what it left in the socket is not reported again.
template <class Call>
ssize_t uninterrupted(const Call& call) {
  ssize_t n = 0;
  do n = call();
  while (n < 0 && errno == EINTR);
  return n;
}

int clamp_to_int(std::size_t size) {
  return static_cast<int>(
      std::min(size, static_cast<std::size_t>(std::numeric_limits<int>::max())));
}

}  // namespace

void Stream::TlsDeleter::operator()(ssl_st* tls) const {
  SSL_free(tls);
}

Stream::Stream(int fd, ssl_st* tls) : fd_(fd), tls_(tls) {
  if (tls_) {
    SSL_set_fd(tls_.get(), fd);
    SSL_set_accept_state(tls_.get());
  }
}

IoResult Stream::read(std::span<char> into) {
  if (tls_) {
    if (tls_broken_) return {IoState::kFailed};
    ERR_clear_error();
    return tls_result(SSL_read(tls_.get(), into.data(), clamp_to_int(into.size())));
  }
  const ssize_t n = uninterrupted([&] { return ::recv(fd_.get(), into.data(), into.size(), 0); });
  if (n > 0) return {IoState::kDone, static_cast<std::size_t>(n)};
  return n == 0 ? IoResult{IoState::kEnd} : system_error(IoState::kWantsRead);
}

IoResult Stream::write(std::span<const iovec> from) {
  if (tls_) {
    if (tls_broken_) return {IoState::kFailed};
    ERR_clear_error();
    return tls_result(
        SSL_write(tls_.get(), from.front().iov_base, clamp_to_int(from.front().iov_len)));
  }
  ssize_t n = 0;
  if (from.size() == 1) {
    n = uninterrupted([&] {
      return ::send(fd_.get(), from.front().iov_base, from.front().iov_len, MSG_NOSIGNAL);
    });
  } else {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(from.data());
    message.msg_iovlen = from.size();
    n = uninterrupted([&] { return ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL); });
  }
  if (n >= 0) return {IoState::kDone, static_cast<std::size_t>(n)};
  return system_error(IoState::kWantsWrite);
}

bool Stream::has_part_of_hello() const {
  return tls_ && SSL_get_state(tls_.get()) == TLS_ST_SR_CLNT_HELLO;
}

bool Stream::is_shaking_hands() const {
  return tls_ && !SSL_is_init_finished(tls_.get());
}

std::size_t Stream::memory() const {
  if (!tls_) return 0;
  if (has_part_of_hello()) return kHelloBytes;
  if (is_shaking_hands()) return kHandshakeBytes;
  return kTlsBytes + (SSL_has_pending(tls_.get()) == 1 ? kRecordBytes : 0) +
         (SSL_want_write(tls_.get()) ? kRecordBytes : 0);
}

IoResult Stream::tls_result(int returned) {
  if (returned > 0) return {IoState::kDone, static_cast<std::size_t>(returned)};
  switch (SSL_get_error(tls_.get(), returned)) {
    case SSL_ERROR_WANT_READ:
      return {IoState::kWantsRead};
    case SSL_ERROR_WANT_WRITE:
      return {IoState::kWantsWrite};
    case SSL_ERROR_ZERO_RETURN:
      return {IoState::kEnd};
    default:
      spoke_http_ = !SSL_is_init_finished(tls_.get()) &&
                    ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;
      tls_broken_ = true;
      return {IoState::kFailed};
  }
}

bool Stream::fall_back_to_plain() {
  if (!std::exchange(spoke_http_, false)) return false;
  ERR_clear_error();
  tls_.reset();
  tls_broken_ = false;
  return true;
}

void Stream::shutdown_write() {
  if (tls_ && !tls_broken_ && SSL_is_init_finished(tls_.get())) {
    ERR_clear_error();
    SSL_shutdown(tls_.get());
  }
  ::shutdown(fd_.get(), SHUT_WR);
}

void Stream::limit_unacknowledged(std::chrono::milliseconds time) {
  const int millis = clamp_to_int(static_cast<std::size_t>(time.count()));
  // Other sockets than those of TCP have no such option and no peer that can vanish.
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &millis, sizeof millis);
}

void Stream::close() {
  if (tls_ && !tls_broken_ && SSL_is_init_finished(tls_.get())) {
    ERR_clear_error();
    SSL_shutdown(tls_.get());  // One try at a TLS close notification; the peer need not answer.
  }
  tls_.reset();
  fd_ = Fd();
}

}  // namespace stanchion::net
