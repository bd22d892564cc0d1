#include "net/poller.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>

#include "base/check.h"

namespace stanchion::net {
namespace {

// Sockets reported before the loop turns to its other work.
constexpr int kReportsMax = 128;

int new_epoll() {
  const int fd = ::epoll_create1(EPOLL_CLOEXEC);
  CHECK(fd >= 0, "there is a descriptor left for epoll");
  return fd;
}

}  // namespace

Poller::Poller(Reactor& reactor, std::function<void()> after)
    : reactor_(reactor), epoll_(reactor.context(), new_epoll()), after_(std::move(after)) {}

void Poller::start() {
  arm();
}

void Poller::stop() {
  stopped_ = true;
  boost::system::error_code ignored;
  epoll_.close(ignored);
}

bool Poller::add(int fd, Watcher& watcher) {
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.ptr = &watcher}};
  return ::epoll_ctl(epoll_.native_handle(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Poller::arm() {
  epoll_.async_wait(Descriptor::wait_read,
                    [self = shared_from_this()](const boost::system::error_code& ec) {
                      if (!ec && !self->stopped_) self->report();
                    });
}

void Poller::report() {
  std::array<epoll_event, kReportsMax> events;
  const int count = ::epoll_wait(epoll_.native_handle(), events.data(), kReportsMax, 0);
  {
    const Reactor::Round round(reactor_);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      // Everything except writability is found out by reading.
      static_cast<Watcher*>(event.data.ptr)
          ->on_ready((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0,
                     (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0);
    }
  }
  after_();
  if (!stopped_) arm();
}

}  // namespace stanchion::net
