#include "net/client_connection.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/check.h"

namespace stanchion::net {
namespace {

constexpr std::size_t kTlsWriteMax = 1 << 20;
// A server that sends without end must not keep its client from checking the time.
constexpr int kReadsAtOnceMax = 16;

// 0, or the error of getaddrinfo().
int look_up(const std::string& host, const std::string& port, int flags,
            std::vector<ClientAddress>& addresses) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list)) return error;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    ClientAddress& address = addresses.emplace_back();
    CHECK(a->ai_addrlen <= sizeof address.storage, "every address fits a sockaddr_storage");
    std::memcpy(&address.storage, a->ai_addr, a->ai_addrlen);
    address.size = a->ai_addrlen;
  }
  return 0;
}

}  // namespace

Result<ClientAddress> unix_address(const std::string& path) {
  ClientAddress address;
  auto& name = reinterpret_cast<sockaddr_un&>(address.storage);
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof name.sun_path)
    return fail(fmt::format("{}: the path of a Unix socket is too long", path), ENAMETOOLONG);
  std::memcpy(name.sun_path, path.data(), path.size());
  address.size = sizeof name;
  return address;
}

std::optional<ClientAddress> numeric_address(const std::string& host, const std::string& port) {
  std::vector<ClientAddress> addresses;
  if (look_up(host, port, AI_NUMERICHOST, addresses) != 0) return std::nullopt;
  return addresses.empty() ? std::nullopt : std::optional(addresses.front());
}

Result<std::vector<ClientAddress>> resolve(const std::string& host, const std::string& port) {
  std::vector<ClientAddress> addresses;
  if (const int error = look_up(host, port, 0, addresses); error != 0)
    return fail(fmt::format("{}: {}", host, ::gai_strerror(error)));
  if (addresses.empty()) return fail(fmt::format("{}: has no address", host));
  return addresses;
}

// Connecting.

Status ClientConnection::connect(const ClientAddress& address, ssl_ctx_st* context,
                                 const std::string& server_name) {
  CHECK(is_closed(), "a connection is opened once");
  fd_ = os::Fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd_.valid()) return fail("cannot make a socket", errno);
  if (address.storage.ss_family != AF_UNIX) {
    const int on = 1;
    ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  context_ = context;
  server_name_ = server_name;
  reader_.reset();
  was_open_ = false;
  if (::connect(fd_.get(), address.get(), address.size) != 0 && errno != EINPROGRESS) {
    const int error = errno;
    fd_ = os::Fd();
    return fail(fmt::format("cannot connect: {}", std::strerror(error)), error);
  }
  phase_ = Phase::kConnecting;
  return {};
}

// True once requests can be written; false also if the connection broke.
bool ClientConnection::finish_connect() {
  if (phase_ == Phase::kConnecting) {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      break_off({fmt::format("cannot connect: {}", std::strerror(error)), error});
      return false;
    }
    ClientAddress peer;
    peer.size = sizeof peer.storage;
    if (::getpeername(fd_.get(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.size) != 0)
      return false;
    if (context_ == nullptr) {
      phase_ = Phase::kOpen;
      was_open_ = true;
      return true;
    }
    session_ = make_client_session(context_, server_name_, fd_.get());
    if (!session_) {
      break_off({"cannot set up TLS: " + take_tls_reason(nullptr)});
      return false;
    }
    phase_ = Phase::kHandshake;
  }
  return shake_hands();
}

bool ClientConnection::shake_hands() {
  ERR_clear_error();
  const int done = SSL_do_handshake(session_.get());
  if (done == 1) {
    wants_write_ = false;
    phase_ = Phase::kOpen;
    was_open_ = true;
    return true;
  }
  if (!would_block(done)) break_off({"TLS: " + take_tls_reason(session_.get())});
  return false;
}

// Exchanges.

void ClientConnection::send(std::string_view request, bool bodiless) {
  CHECK(!is_closed(), "a request is sent on a connection");
  CHECK(!due_, "one request at a time");
  due_ = true;
  reader_.reset(bodiless);
  if (phase_ == Phase::kOpen && !session_) {
    const ssize_t sent = ::send(fd_.get(), request.data(), request.size(), MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(request.size())) return;
    if (sent > 0) request.remove_prefix(static_cast<std::size_t>(sent));
  }
  unsent_.assign(request);
  if (phase_ == Phase::kOpen) flush();
}

// Whether the last call on the socket only has to be repeated later; notes the event to wait for.
bool ClientConnection::would_block(ssize_t result) {
  if (!session_) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  const int why = SSL_get_error(session_.get(), static_cast<int>(result));
  wants_write_ = why == SSL_ERROR_WANT_WRITE;
  return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
}

void ClientConnection::flush() {
  std::size_t sent = 0;
  wants_write_ = false;
  while (sent < unsent_.size()) {
    const std::string_view rest = std::string_view(unsent_).substr(sent);
    if (session_) ERR_clear_error();
    const ssize_t n = session_ ? SSL_write(session_.get(), rest.data(),
                                           static_cast<int>(std::min(rest.size(), kTlsWriteMax)))
                               : ::send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
      continue;
    }
    if (would_block(n)) {
      wants_write_ = wants_write_ || !session_;
      break;
    }
    // The answer may say why the server accepts no more: read() finds the answer or the failure.
    sent = unsent_.size();
  }
  unsent_.erase(0, sent);
}

ClientConnection::News ClientConnection::advance(std::span<char> scratch) {
  if (is_closed()) return News::kNone;
  if (!is_open() && !finish_connect()) return is_closed() ? News::kBroken : News::kNone;
  if (!unsent_.empty()) flush();
  return read(scratch);
}

ClientConnection::News ClientConnection::read(std::span<char> scratch) {
  for (int reads = 0; reads < kReadsAtOnceMax; ++reads) {
    if (session_) ERR_clear_error();
    const ssize_t n =
        session_ ? SSL_read(session_.get(), scratch.data(),
                            static_cast<int>(std::min<std::size_t>(scratch.size(), kTlsWriteMax)))
                 : ::recv(fd_.get(), scratch.data(), scratch.size(), 0);
    if (n > 0) {
      // A short read leaves the socket empty; later data is a new event.
      may_have_more_ = session_ != nullptr || static_cast<std::size_t>(n) == scratch.size();
      const News news = take({scratch.data(), static_cast<std::size_t>(n)});
      if (news != News::kNone || !may_have_more_) return news;
      continue;
    }
    may_have_more_ = false;
    const bool was_writing = wants_write_;
    if ((n < 0 || session_) && would_block(n)) {
      wants_write_ = wants_write_ || (was_writing && !unsent_.empty());
      return News::kNone;
    }
    // Without TLS's close notification somebody on the way may have cut off the rest.
    return end_of_stream(!session_ ? n == 0
                                   : SSL_get_error(session_.get(), static_cast<int>(n)) ==
                                         SSL_ERROR_ZERO_RETURN);
  }
  return News::kNone;
}

ClientConnection::News ClientConnection::take(std::string_view bytes) {
  if (!due_) return break_off({"the server sent what nobody asked for"});
  switch (reader_.feed(bytes)) {
    case ResponseReader::State::kMore:
      return News::kNone;
    case ResponseReader::State::kFailed:
      return break_off({"the answer is not HTTP, or too large"});
    case ResponseReader::State::kDone:
      break;
  }
  due_ = false;
  // After a request that was not fully accepted, client and server disagree about what comes next.
  if (!reader_.keep_alive() || !unsent_.empty()) close();
  return News::kResponse;
}

ClientConnection::News ClientConnection::end_of_stream(bool whole) {
  if (!due_) {
    close();
    return News::kEnded;
  }
  if (!whole || reader_.end() != ResponseReader::State::kDone)
    return break_off({reader_.begun() ? "the server closed the connection within its answer"
                                      : "the server closed the connection without an answer"});
  close();
  return News::kResponse;
}

void ClientConnection::close() {
  session_.reset();
  fd_ = os::Fd();
  phase_ = Phase::kClosed;
  due_ = false;
  wants_write_ = false;
  may_have_more_ = false;
  unsent_.clear();
}

ClientConnection::News ClientConnection::break_off(Failure failure) {
  close();
  failure_ = std::move(failure);
  return News::kBroken;
}

bool ClientConnection::is_quiet() const {
  char byte = 0;
  return ::recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace stanchion::net
