#include "net/http_client.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "base/check.h"

namespace stanchion::net {
namespace {

constexpr std::size_t kScratchSize = 256 * 1024;
constexpr int kEventsMax = 256;
// The key of the timer among those of connections, which are numbers of connections.
constexpr std::uint64_t kTimerKey = ~std::uint64_t{0};

std::chrono::nanoseconds cpu_time_of_thread() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

enum class Phase { kClosed, kConnecting, kHandshake, kOpen };

}  // namespace

struct HttpClient::Connection {
  Fd fd;
  TlsSession session;
  Phase phase = Phase::kClosed;
  std::uint32_t life = 0;  // Tells events of this socket from those of one closed before.
  bool due = false;        // A response is.
  std::string unsent;
  ResponseReader reader;
};

HttpClient::HttpClient(ClientTarget target, Handler& handler)
    : target_(std::move(target)),
      handler_(handler),
      scratch_(std::make_unique_for_overwrite<char[]>(kScratchSize)) {}

HttpClient::~HttpClient() = default;

Result<std::unique_ptr<HttpClient>> HttpClient::open(ClientTarget target, std::size_t connections,
                                                     Handler& handler) {
  std::unique_ptr<HttpClient> client(new HttpClient(std::move(target), handler));
  RETURN_IF_FAILED(client->resolve());
  if (client->target_.tls) {
    auto context = make_client_context(client->target_.trust);
    if (!context) return std::unexpected(context.error());
    client->context_ = std::move(*context);
  }
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without a flag against it.
  client->epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  client->timer_ = Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!client->epoll_.valid() || !client->timer_.valid()) return fail("cannot set up epoll", errno);
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = kTimerKey}};
  if (::epoll_ctl(client->epoll_.get(), EPOLL_CTL_ADD, client->timer_.get(), &event) != 0)
    return fail("cannot set up epoll", errno);
  for (std::size_t i = 0; i < connections; ++i)
    client->connections_.push_back(std::make_unique<Connection>());
  return client;
}

Status HttpClient::resolve() {
  if (target_.port.empty()) {
    auto& address = reinterpret_cast<sockaddr_un&>(address_);
    address.sun_family = AF_UNIX;
    if (target_.host.size() >= sizeof address.sun_path)
      return fail(fmt::format("{}: the path of a Unix socket is too long", target_.host));
    std::memcpy(address.sun_path, target_.host.data(), target_.host.size());
    address_size_ = sizeof address;
    return {};
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(target_.host.c_str(), target_.port.c_str(), &hints, &list))
    return fail(fmt::format("{}: {}", target_.host, ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  // The first address that somebody listens on; "localhost" has two, and few servers serve both.
  const addrinfo* chosen = list;
  for (const addrinfo* a = list; a != nullptr && a->ai_next != nullptr; a = a->ai_next) {
    const Fd probe(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    chosen = a;
    if (probe.valid() && ::connect(probe.get(), a->ai_addr, a->ai_addrlen) == 0) break;
    chosen = a->ai_next;
  }
  std::memcpy(&address_, chosen->ai_addr, chosen->ai_addrlen);
  address_size_ = chosen->ai_addrlen;
  return {};
}

// Connecting.

void HttpClient::connect_all() {
  for (std::size_t i = 0; i < connections_.size(); ++i)
    if (connections_[i]->phase == Phase::kClosed) connect(i);
}

void HttpClient::connect(std::size_t index) {
  Connection& c = *connections_[index];
  c.fd = Fd(::socket(address_.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!c.fd.valid()) return break_off(index, {"cannot make a socket", errno});
  if (address_.ss_family != AF_UNIX) {
    const int on = 1;
    ::setsockopt(c.fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ++c.life;
  c.reader.reset();
  c.phase = Phase::kConnecting;
  const int connected =
      ::connect(c.fd.get(), reinterpret_cast<const sockaddr*>(&address_), address_size_);
  if (connected != 0 && errno != EINPROGRESS)
    return break_off(index, {fmt::format("cannot connect: {}", std::strerror(errno)), errno});
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                    .data = {.u64 = std::uint64_t{c.life} << 32 | index}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, c.fd.get(), &event) != 0)
    break_off(index, {"cannot watch a socket", errno});
}

// True once requests can be written.
bool HttpClient::finish_connect(std::size_t index) {
  Connection& c = *connections_[index];
  if (c.phase == Phase::kConnecting) {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(c.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      break_off(index, {fmt::format("cannot connect: {}", std::strerror(error)), error});
      return false;
    }
    sockaddr_storage peer{};
    size = sizeof peer;
    if (::getpeername(c.fd.get(), reinterpret_cast<sockaddr*>(&peer), &size) != 0) return false;
    c.phase = target_.tls ? Phase::kHandshake : Phase::kOpen;
    if (target_.tls && !start_session(c)) {
      break_off(index, {"cannot set up TLS: " + take_tls_reason(nullptr)});
      return false;
    }
    if (!target_.tls) ++open_count_;
  }
  if (c.phase == Phase::kHandshake) {
    ERR_clear_error();
    const int done = SSL_do_handshake(c.session.get());
    if (done != 1) {
      const int why = SSL_get_error(c.session.get(), done);
      if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
        break_off(index, {"TLS: " + take_tls_reason(c.session.get())});
      return false;
    }
    c.phase = Phase::kOpen;
    ++open_count_;
  }
  return true;
}

bool HttpClient::start_session(Connection& c) {
  c.session = make_client_session(context_.get(), target_.host, c.fd.get());
  return c.session != nullptr;
}

// Exchanges.

void HttpClient::send(std::size_t index, std::string_view request) {
  Connection& c = *connections_[index];
  CHECK(!c.due, "one request at a time");
  c.due = true;
  if (c.phase == Phase::kOpen && !c.session) {
    const ssize_t sent = ::send(c.fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(request.size())) return;
    if (sent > 0) request.remove_prefix(static_cast<std::size_t>(sent));
  }
  c.unsent.assign(request);
  if (c.phase == Phase::kClosed) return connect(index);
  if (c.phase == Phase::kOpen) flush(index);
}

void HttpClient::flush(std::size_t index) {
  Connection& c = *connections_[index];
  std::size_t sent = 0;
  while (sent < c.unsent.size()) {
    const std::string_view rest = std::string_view(c.unsent).substr(sent);
    if (c.session) ERR_clear_error();
    const ssize_t n = c.session
                          ? SSL_write(c.session.get(), rest.data(),
                                      static_cast<int>(std::min<std::size_t>(rest.size(), 1 << 20)))
                          : ::send(c.fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
      continue;
    }
    const int why = c.session ? SSL_get_error(c.session.get(), static_cast<int>(n)) : 0;
    if (c.session ? (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
                  : (errno == EAGAIN || errno == EWOULDBLOCK))
      break;
    // The answer may say why the server takes no more: read() finds the answer or the break.
    sent = c.unsent.size();
  }
  c.unsent.erase(0, sent);
}

int HttpClient::sleep_until(Time until, std::span<epoll_event> events) {
  const auto left = until - std::chrono::steady_clock::now();
  int timeout = 0;
  if (left > std::chrono::nanoseconds::zero()) {
    timeout = -1;
    if (until != timer_at_) {
      const auto ns =
          std::chrono::duration_cast<std::chrono::nanoseconds>(until.time_since_epoch());
      const itimerspec spec{{}, {ns.count() / 1'000'000'000, ns.count() % 1'000'000'000}};
      ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
      timer_at_ = until;
    }
  }
  return ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
}

int HttpClient::spin_until(Time until, std::span<epoll_event> events) {
  const auto poll = [&] {
    return ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  };
  int count = poll();
  if (count != 0) return count;
  // Time of the processor, not of the clock: on a busy machine others run meanwhile.
  const auto began = cpu_time_of_thread();
  while ((count = poll()) == 0 && std::chrono::steady_clock::now() < until) {
  }
  spun_ += cpu_time_of_thread() - began;
  return count;
}

std::size_t HttpClient::wait(Time until) {
  std::array<epoll_event, kEventsMax> events;
  const int count = target_.busy_poll ? spin_until(until, events) : sleep_until(until, events);
  std::size_t handled = 0;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t key = events[static_cast<std::size_t>(i)].data.u64;
    if (key == kTimerKey) {
      timer_at_ = {};
      continue;
    }
    const std::size_t index = key & 0xFFFF'FFFF;
    if (connections_[index]->life != key >> 32 || !connections_[index]->fd.valid()) continue;
    ++handled;
    on_event(index);
  }
  return handled;
}

void HttpClient::on_event(std::size_t index) {
  Connection& c = *connections_[index];
  if (c.phase != Phase::kOpen && !finish_connect(index)) return;
  if (!c.unsent.empty()) flush(index);
  read(index);
}

void HttpClient::read(std::size_t index) {
  Connection& c = *connections_[index];
  const std::uint32_t life = c.life;
  while (c.life == life && c.fd.valid()) {
    if (c.session) ERR_clear_error();
    const ssize_t n =
        c.session ? SSL_read(c.session.get(), scratch_.get(), static_cast<int>(kScratchSize))
                  : ::recv(c.fd.get(), scratch_.get(), kScratchSize, 0);
    if (n > 0) {
      take(index, {scratch_.get(), static_cast<std::size_t>(n)});
      // A short read leaves the socket empty, and what comes later is another event.
      if (!c.session && static_cast<std::size_t>(n) < kScratchSize) return;
      continue;
    }
    if (n < 0 && !c.session && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (c.session) {
      const int why = SSL_get_error(c.session.get(), static_cast<int>(n));
      if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return;
    }
    return end_of_stream(index);
  }
}

void HttpClient::take(std::size_t index, std::string_view bytes) {
  Connection& c = *connections_[index];
  if (!c.due) return break_off(index, {"the server sent what nobody asked for"});
  switch (c.reader.feed(bytes)) {
    case ResponseReader::State::kMore:
      return;
    case ResponseReader::State::kFailed:
      return break_off(index, {"the answer is not HTTP, or too large"});
    case ResponseReader::State::kDone:
      break;
  }
  hand_out(index);
}

void HttpClient::hand_out(std::size_t index) {
  Connection& c = *connections_[index];
  c.due = false;
  if (!c.reader.keep_alive()) close(index);
  handler_.on_response(index, c.reader);
  c.reader.reset();
}

void HttpClient::end_of_stream(std::size_t index) {
  Connection& c = *connections_[index];
  if (!c.due) return close(index);
  if (c.reader.end() != ResponseReader::State::kDone)
    return break_off(index, {"the server closed the connection without an answer"});
  hand_out(index);
}

void HttpClient::close(std::size_t index) {
  Connection& c = *connections_[index];
  if (c.phase == Phase::kOpen) --open_count_;
  c.session.reset();
  c.fd = Fd();
  c.phase = Phase::kClosed;
  c.due = false;
  c.unsent.clear();
}

void HttpClient::break_off(std::size_t index, Failure failure) {
  close(index);
  handler_.on_broken(index, failure);
}

}  // namespace stanchion::net
