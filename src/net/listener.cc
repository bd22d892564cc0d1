#include "net/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <ctime>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "net/listen_socket.h"

namespace stanchion::net {
namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;

namespace {

// Connections accepted from one socket before the loop looks at others.
constexpr int kAcceptsPerTurn = 64;
// Connections over the limit that get an answer; further ones are closed without one.
constexpr std::size_t kRefusalsMax = 64;

// How far a listener's figure may differ from its part of the shared sum, so that a request need
// not touch what all threads share.
constexpr std::ptrdiff_t kUntoldMax = 64 * 1024;
// Of the limit of held bytes, what silent connections may keep when other things fill it.
constexpr std::size_t kSilentShare = 16;

// A deadline is late by at most one tick, so a tick is a small part of the shortest timeout.
milliseconds tick_length(const HttpLimits& limits) {
  const milliseconds shortest =
      std::min({limits.header_timeout, limits.body_timeout, limits.idle_timeout,
                limits.write_timeout, limits.linger_timeout});
  return std::clamp(shortest / 4, milliseconds(5), milliseconds(1000));
}

Peer describe(const sockaddr_storage& address) {
  Peer peer;
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    peer.port = ntohs(v4.sin_port);
    peer.loopback = (ntohl(v4.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    peer.port = ntohs(v6.sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
      peer.loopback = v6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET;
    } else {
      inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
      peer.loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
    }
  } else {
    peer.address = "unix";
    peer.loopback = true;
    return peer;
  }
  peer.address = text;
  return peer;
}

Network network_of(const sockaddr_storage& address) {
  // No IPv6 network begins like this.
  constexpr Network kIpv4 = Network{0xFFFF} << 32;
  const auto number = [](const std::uint8_t* bytes, std::size_t size) {
    Network value = 0;
    for (std::size_t i = 0; i < size; ++i) value = value << 8 | bytes[i];
    return value;
  };
  if (address.ss_family == AF_INET)
    return kIpv4 | ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr);
  if (address.ss_family != AF_INET6) return 0;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return kIpv4 | number(&v6.s6_addr[12], 4);
  return std::max<Network>(number(v6.s6_addr, 8), 1);  // The key of ::1 is 0.
}

}  // namespace

Listener::Listener(std::shared_ptr<ServerShared> shared, Reactor& reactor)
    : shared_(std::move(shared)),
      reactor_(reactor),
      poller_(std::make_shared<Poller>(reactor, [this] { closed_.clear(); })),
      scratch_(std::make_unique_for_overwrite<char[]>(kScratchSize)),
      sweep_timer_(reactor.context()),
      tick_length_(tick_length(shared_->options.limits)) {}

Listener::~Listener() {
  CHECK(connections_.empty(), "a listener is stopped before it is destroyed");
}

void Listener::add_socket(int fd) {
  sockets_.push_back(std::make_unique<Descriptor>(reactor_.context(), fd));
}

void Listener::start() {
  poller_->start();
  for (const auto& socket : sockets_) arm_accept(*socket);
}

void Listener::drain() {
  if (stopped_ || draining_) return;
  // Closing a listening socket resets the connections that wait in it, whose clients may have sent
  // a request already. So these are accepted first.
  for (const auto& socket : sockets_) accept_up_to(kBacklog + 1, *socket);
  draining_ = true;
  close_sockets();
  const auto connections = connections_;  // A connection that closes removes itself from the list.
  for (const auto& connection : connections) connection->drain();
  report_drained();
}

void Listener::stop() {
  if (stopped_) return;
  stopped_ = true;
  close_sockets();
  while (!connections_.empty()) connections_.back()->close();
  poller_->stop();
  unsettled_.clear();
  closed_.clear();
  tell_held();
  sweep_timer_.cancel();
}

// Destroyed here, because the last owner of the listener may be another thread.
void Listener::close_sockets() {
  resting_.clear();
  sockets_.clear();
}

void Listener::report_drained() {
  if (!draining_ || drained_ || !connections_.empty()) return;
  drained_ = true;
  if (shared_->draining.fetch_sub(1) == 1) reactor_.post(std::move(shared_->on_drained));
}

// Accepting.

void Listener::arm_accept(Descriptor& socket) {
  socket.async_wait(Descriptor::wait_read,
                    [self = shared_from_this(), &socket](const error_code& ec) {
                      // The socket is gone if the listener closed it while this event was queued.
                      if (!ec && !self->sockets_.empty()) self->accept_some(socket);
                    });
}

void Listener::accept_some(Descriptor& socket) {
  // A connection that may have to give way to the next one gets a turn to be heard first.
  if (accept_up_to(limits().silent_give_way ? 1 : kAcceptsPerTurn, socket))
    return arm_accept(socket);
  // The system lacks something that closing connections will free: retrying at once would spin.
  resting_.push_back(&socket);
  arm_sweep();
}

// False if the system has no resources for another connection.
bool Listener::accept_up_to(int most, Descriptor& socket) {
  for (int i = 0; i < most; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    const int fd = ::accept4(socket.native_handle(), reinterpret_cast<sockaddr*>(&address), &size,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      take(fd, describe(address), network_of(address));
      continue;
    }
    if (errno == EAGAIN) return true;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) return false;
    // Any other error concerns only the one connection that failed.
  }
  return true;
}

// Whether the new connection is one too many, if there are `open` others.
bool Listener::is_full(std::size_t open) {
  if (!limits().silent_give_way) return open >= limits().connections_max;
  // Each listener can close only its own connections, so each has its own share of them.
  const std::size_t share = limits().connections_max / shared_->listeners;
  return connections_.size() >= share && !close_a_silent_one();
}

// False if all connections have a request under way.
bool Listener::close_a_silent_one() {
  Connection* silent = nullptr;
  for (const auto& connection : connections_)
    if (connection->can_give_way() &&
        (silent == nullptr || connection->silent_since() < silent->silent_since()))
      silent = connection.get();
  if (silent == nullptr) return false;
  counters_.shed.add();
  silent->close();
  return true;
}

// If not, room is being made, as far as there are connections that can be closed.
bool Listener::has_memory_for_tls() {
  return shared_->options.tls == nullptr || count_held(0);
}

void Listener::take(int fd, Peer peer, Network network) {
  const std::size_t per_address_max = limits().per_address_max;
  if (per_address_max == 0 || (peer.loopback && !limits().per_address_here_too)) network = 0;
  counters_.accepted.add();
  const std::size_t open = shared_->open.fetch_add(1, std::memory_order_relaxed);
  const std::size_t siblings = shared_->addresses.add(network);
  const bool crowd = siblings > per_address_max;
  const bool full = crowd || is_full(open) || !has_memory_for_tls();
  ssl_st* tls = nullptr;
  bool cut = full && (open >= limits().connections_max + kRefusalsMax ||
                      siblings > per_address_max + kRefusalsMax);
  if (shared_->options.tls != nullptr && !cut) {
    tls = full ? nullptr : shared_->options.tls->new_session();
    cut = tls == nullptr;
  }
  if (full) counters_.refused.add();
  if (cut) {
    shared_->addresses.remove(network);
    shared_->open.fetch_sub(1, std::memory_order_relaxed);
    ::close(fd);
    return;
  }
  peer.tls = tls != nullptr;
  const auto connection = std::make_shared<Connection>(*this, fd, tls, std::move(peer));
  connection->index = connections_.size();
  connection->network = network;
  connections_.push_back(connection);
  arm_sweep();
  if (full) {
    connection->refuse(503,
                       crowd ? "Too many connections from this address." : "Too many connections.");
  } else {
    connection->start();
  }
}

void Listener::remove(Connection& connection) {
  const std::size_t index = connection.index;
  CHECK(index < connections_.size() && connections_[index].get() == &connection,
        "a connection is in the list until it closes");
  connections_[index].swap(connections_.back());
  connections_[index]->index = index;
  closed_.push_back(std::move(connections_.back()));
  connections_.pop_back();
  shared_->addresses.remove(connection.network);
  shared_->open.fetch_sub(1, std::memory_order_relaxed);
  report_drained();
}

// Time.

std::uint32_t Listener::deadline_in(milliseconds timeout) const {
  // One tick more than the timeout, because the current tick has already begun.
  return tick_ + static_cast<std::uint32_t>(timeout / tick_length_) + 2;
}

void Listener::arm_sweep() {
  if (sweeping_ || stopped_) return;
  sweeping_ = true;
  sweep_timer_.expires_after(tick_length_);
  sweep_timer_.async_wait([self = shared_from_this()](const error_code& ec) {
    self->sweeping_ = false;
    if (!ec) self->sweep();
  });
}

// Checks every connection once per tick: with ten thousand of them this takes a fraction of a
// millisecond per second, and requests need no timer. Without connections the reactor is left to
// sleep.
void Listener::sweep() {
  ++tick_;
  count_held(0);  // Another listener may need room that these connections take.
  for (Descriptor* socket : std::exchange(resting_, {})) accept_some(*socket);
  for (std::size_t i = connections_.size(); i-- > 0;) {
    if (i >= connections_.size()) continue;
    const auto connection = connections_[i];
    connection->on_tick();
  }
  closed_.clear();
  if (!connections_.empty() || !resting_.empty()) arm_sweep();
}

// Memory.

bool Listener::count_held(std::size_t more) {
  const std::size_t now = held_.load(std::memory_order_relaxed) + more;
  held_.store(now, std::memory_order_relaxed);
  const auto untold = static_cast<std::ptrdiff_t>(now - told_);
  if (untold >= kUntoldMax || untold <= -kUntoldMax) tell_held();
  const std::size_t all = shared_->held.load(std::memory_order_relaxed);
  // Early enough that the next request need not be refused.
  if (all > crowded_at() && !making_room_ && no_room_tick_ != tick_) {
    making_room_ = true;
    asio::post(reactor_.context(), [self = shared_from_this()] {
      self->making_room_ = false;
      if (!self->stopped_) self->make_room();
    });
  }
  return all <= limits().held_bytes_max;
}

void Listener::tell_held() {
  const std::size_t now = held_.load(std::memory_order_relaxed);
  shared_->held.fetch_add(now - std::exchange(told_, now), std::memory_order_relaxed);
}

// When too much memory is held, incomplete requests and unread answers are dropped, beginning with
// those that have been slow for longest: a client that sends and reads without delay keeps being
// served, however many others hold partial requests. Calls that are being executed are left alone.
void Listener::make_room() {
  tell_held();
  std::vector<std::shared_ptr<Connection>> slow;
  std::ranges::copy_if(connections_, std::back_inserter(slow),
                       [](const auto& connection) { return connection->can_be_shed(); });
  std::ranges::sort(slow, {}, [](const auto& connection) { return connection->slow_since(); });
  for (const auto& connection : slow) {
    if (shared_->held.load(std::memory_order_relaxed) <= goal()) return;
    connection->shed();
    tell_held();
  }
  close_silent();
  // Looking again at once would find nothing else.
  if (!may_wait()) no_room_tick_ = tick_;
}

// TLS takes memory also while nobody says anything. First go those that have sent a part of a hello,
// for which it takes most, then handshakes that do not end, if they take much, then those that have
// been silent for longest: a client that finds its connection closed opens another one. A part stays
// in any case: where other things fill memory, closing everybody at each tick would free little.
void Listener::close_silent() {
  std::vector<std::shared_ptr<Connection>> silent;
  std::ranges::copy_if(connections_, std::back_inserter(silent), [](const auto& connection) {
    return connection->held() > 0 && connection->can_give_way();
  });
  // Whoever lingers has yet to read why it was refused, and leaves by itself.
  std::ranges::sort(silent, {}, [](const auto& connection) {
    return std::pair(connection->is_lingering(), connection->silent_since());
  });
  std::size_t all = 0;
  std::size_t handshakes = 0;
  for (const auto& connection : silent) {
    all += connection->held();
    if (connection->is_shaking_hands()) handshakes += connection->held();
  }
  const auto close_while = [&](const std::size_t& sum, std::size_t beyond, auto is_one) {
    for (const auto& connection : silent) {
      if (sum <= beyond || shared_->held.load(std::memory_order_relaxed) <= goal()) return;
      const std::size_t held = connection->held();
      if (held == 0 || !is_one(*connection)) continue;  // 0: it is closed.
      all -= held;
      if (connection->is_shaking_hands()) handshakes -= held;
      counters_.shed.add();
      connection->close();
      tell_held();
    }
  };
  const std::size_t share = limits().held_bytes_max / kSilentShare / shared_->listeners;
  close_while(all, 0, [](const Connection& one) { return one.has_part_of_hello(); });
  close_while(handshakes, share, [](const Connection& one) { return one.is_shaking_hands(); });
  close_while(all, share, [](const Connection&) { return true; });
}

std::string_view Listener::date_line() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (now.tv_sec != date_second_) {
    date_second_ = now.tv_sec;
    tm parts{};
    gmtime_r(&now.tv_sec, &parts);
    date_size_ =
        std::strftime(date_line_, sizeof date_line_, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
  }
  return {date_line_, date_size_};
}

void Listener::settle_later(std::shared_ptr<Connection> connection) {
  if (unsettled_.empty()) {
    asio::post(reactor_.context(), [self = shared_from_this()] { self->settle_all(); });
  }
  unsettled_.push_back(std::move(connection));
}

void Listener::settle_all() {
  for (const auto& connection : std::exchange(unsettled_, {})) connection->settle();
}

}  // namespace stanchion::net
