// Which of a reactor's sockets can be read or written: an epoll instance of its own, of which the
// event loop watches one descriptor.
//
// Reactor thread only. A socket is registered once, edge-triggered, for as long as it is open, so
// that no request costs a system call to re-arm it; and however many sockets are ready, the loop is
// notified once. Edge-triggered means that a socket is reported when it becomes ready, not while it
// is: the watcher must read until nothing is left, or remember that it did not.
#pragma once

#include <functional>
#include <memory>

#include "net/reactor.h"
#include "net/stream.h"

namespace stanchion::net {

class Poller : public std::enable_shared_from_this<Poller> {
 public:
  class Watcher {
   public:
    virtual ~Watcher() = default;
    // `ended`: the peer sends nothing more, or the connection broke. Nothing is reported after
    // that, so everything sent before must be read up to the end, now or later.
    virtual void on_ready(bool for_reading, bool ended) = 0;
  };

  // `after` is called after each round of reports.
  Poller(Reactor& reactor, std::function<void()> after);

  void start();
  void stop();

  // The watcher must outlive the socket, and the round of reports in which the socket is closed;
  // apart from that, closing a socket ends its reports. False if the kernel has no resources for
  // it.
  [[nodiscard]] bool add(int fd, Watcher& watcher);

 private:
  void arm();
  void report();

  Reactor& reactor_;
  Descriptor epoll_;
  std::function<void()> after_;
  bool stopped_ = false;
};

}  // namespace stanchion::net
