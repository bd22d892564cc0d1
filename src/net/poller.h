// Which of a reactor's sockets can be read or written: an epoll instance of their own, of which the
// event loop watches one descriptor.
//
// Reactor thread only. A socket is registered once, edge-triggered, for as long as it is open, so
// that a request costs no call to say that the next one is awaited; and however many sockets are
// ready, the loop is told once. Edge-triggered means that a socket is reported when something
// becomes possible, not while it is: whoever is told reads until nothing is left, or remembers that
// it did not.
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
    // that, so what was sent before has to be read up to the end now or later.
    virtual void on_ready(bool for_reading, bool ended) = 0;
  };

  // `after` is called behind each round of reports.
  Poller(Reactor& reactor, std::function<void()> after);

  void start();
  void stop();

  // The watcher outlives the socket, and the round of reports in which that is closed; closing a
  // socket ends its reports otherwise. False if the kernel has no room for it.
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
