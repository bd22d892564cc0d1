#include "load/connections.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>

namespace stanchion::load {
namespace {

constexpr std::size_t kScratchSize = 256 * 1024;
constexpr int kEventsMax = 256;
// The epoll key of the timer, among the keys of connections, which are their numbers.
constexpr std::uint64_t kTimerKey = ~std::uint64_t{0};

std::chrono::nanoseconds cpu_time_of_thread() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

struct Connections::Connection {
  net::ClientConnection link;
  std::uint32_t life = 0;  // Distinguishes events of this socket from those of a closed one.
  bool counted = false;    // Index among the open connections.
};

Connections::Connections(Target target, Handler& handler)
    : target_(std::move(target)),
      handler_(handler),
      scratch_(std::make_unique_for_overwrite<char[]>(kScratchSize)) {}

Connections::~Connections() = default;

Result<std::unique_ptr<Connections>> Connections::open(Target target, std::size_t connections,
                                                       Handler& handler) {
  std::unique_ptr<Connections> client(new Connections(std::move(target), handler));
  RETURN_IF_FAILED(client->find_address());
  if (client->target_.tls) {
    auto context = net::make_client_context(client->target_.trust);
    if (!context) return std::unexpected(context.error());
    client->context_ = std::move(*context);
  }
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL.
  client->epoll_ = os::Fd(::epoll_create1(EPOLL_CLOEXEC));
  client->timer_ = os::Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!client->epoll_.valid() || !client->timer_.valid()) return fail("cannot set up epoll", errno);
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = kTimerKey}};
  if (::epoll_ctl(client->epoll_.get(), EPOLL_CTL_ADD, client->timer_.get(), &event) != 0)
    return fail("cannot set up epoll", errno);
  for (std::size_t i = 0; i < connections; ++i)
    client->connections_.push_back(std::make_unique<Connection>());
  return client;
}

Status Connections::find_address() {
  if (target_.port.empty()) {
    auto address = net::unix_address(target_.host);
    if (!address) return std::unexpected(address.error());
    address_ = *address;
    return {};
  }
  const auto addresses = net::resolve(target_.host, target_.port);
  if (!addresses) return std::unexpected(addresses.error());
  // Uses the first address on which a server listens; "localhost" has two, and few servers listen
  // on both.
  for (const net::ClientAddress& address : *addresses) {
    address_ = address;
    if (&address == &addresses->back()) break;
    const os::Fd probe(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (probe.valid() && ::connect(probe.get(), address.get(), address.size) == 0) break;
  }
  return {};
}

void Connections::connect_all() {
  for (std::size_t i = 0; i < connections_.size(); ++i)
    if (connections_[i]->link.is_closed()) connect(i);
}

// False if the send failed at once; the handler has been told.
bool Connections::connect(std::size_t index) {
  Connection& c = *connections_[index];
  ++c.life;
  Status begun = c.link.connect(address_, context_.get(), target_.host);
  if (begun) {
    epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                      .data = {.u64 = std::uint64_t{c.life} << 32 | index}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, c.link.fd(), &event) != 0) {
      begun = fail("cannot watch a socket", errno);
      c.link.close();
    }
  }
  if (!begun) handler_.on_broken(index, begun.error());
  return begun.has_value();
}

void Connections::send(std::size_t index, std::string_view request) {
  Connection& c = *connections_[index];
  if (c.link.is_closed() && !connect(index)) return;
  c.link.send(request);
}

int Connections::sleep_until(Time until, std::span<epoll_event> events) {
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

int Connections::spin_until(Time until, std::span<epoll_event> events) {
  const auto poll = [&] {
    return ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  };
  int count = poll();
  if (count != 0) return count;
  // Processor time, not elapsed time: on a busy machine other processes run meanwhile.
  const auto began = cpu_time_of_thread();
  while ((count = poll()) == 0 && std::chrono::steady_clock::now() < until) {
  }
  spun_ += cpu_time_of_thread() - began;
  return count;
}

std::size_t Connections::wait(Time until) {
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
    if (connections_[index]->life != key >> 32 || connections_[index]->link.is_closed()) continue;
    ++handled;
    on_event(index);
  }
  return handled;
}

void Connections::on_event(std::size_t index) {
  using News = net::ClientConnection::News;
  Connection& c = *connections_[index];
  const std::uint32_t life = c.life;
  do {
    const News news = c.link.advance({scratch_.get(), kScratchSize});
    count_open(c);
    if (news == News::kBroken) handler_.on_broken(index, Failure(c.link.failure()));
    const bool more = c.link.may_have_more();
    if (news == News::kResponse) handler_.on_response(index, c.link.response());
    if (!more) return;
  } while (c.life == life && !c.link.is_closed());
}

void Connections::count_open(Connection& c) {
  if (c.counted == c.link.is_open()) return;
  c.counted = !c.counted;
  if (c.counted) {
    ++open_count_;
  } else {
    --open_count_;
  }
}

void Connections::close(std::size_t index) {
  connections_[index]->link.close();
  count_open(*connections_[index]);
}

}  // namespace stanchion::load
