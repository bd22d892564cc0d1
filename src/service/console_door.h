// The console: GET /console and what is below it.
//
//   GET  /console, /console/*.js …  the page and its modules, the same for everybody
//   POST /console/sign-in           a key, for a session                  (with accounts only)
//   POST /console/api               a call of SQS, as the session's key says
//   GET  /console/events            the caller's queues, again and again: server-sent events
//
// Who may: without accounts, a browser that calls the server by a name of this machine, so that no
// page of another name can; with accounts, whoever has a session. Calls that may change something
// must also come from a page of this very origin, and carry a header that no other page can send.
//
// An event is a whole answer, after which the browser connects again: a server-sent stream that
// holds no connection open. Figures are collected at most once a second for all who watch.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/broker.h"
#include "net/http_server.h"
#include "os/entropy.h"
#include "service/authenticator.h"
#include "service/console_sessions.h"
#include "service/reactor_loop.h"
#include "service/sqs_endpoint.h"

namespace stanchion::service {

inline constexpr std::string_view kConsolePath = "/console";

// Whether the origin of the page that sends a request is the one that it calls.
bool comes_from_own_page(const net::HttpRequest& request);

class ConsoleDoor {
 public:
  // All arguments must outlive the door.
  ConsoleDoor(SqsEndpoint& endpoint, Authenticator& authenticator, broker::Broker& broker,
              os::Entropy& entropy, std::vector<std::unique_ptr<ReactorLoop>>& loops);

  void handle(net::Exchange exchange, std::string_view path);

 private:
  using Clock = std::chrono::steady_clock;
  using Figures = std::shared_ptr<const std::vector<broker::ShardFigures>>;
  struct Watcher {
    net::Exchange exchange;
    ReactorLoop* loop;
    QueueRef of;  // The caller's account and region; the name is what the browser filters by.
    std::string sort;
  };

  void answer_asset(net::Exchange exchange, std::string_view path);
  void answer_call(net::Exchange exchange);
  void sign_in(net::Exchange exchange);
  void sign_out(net::Exchange exchange);
  void watch(net::Exchange exchange);
  void collect(ReactorLoop& loop);
  void show(Watcher watcher, const Figures& figures);
  std::optional<Caller> caller_of(const net::HttpRequest& request);

  SqsEndpoint& endpoint_;
  Authenticator& authenticator_;
  broker::Broker& broker_;
  std::vector<std::unique_ptr<ReactorLoop>>& loops_;
  ConsoleSessions sessions_;
  std::mutex mutex_;
  // Guarded by mutex_:
  Figures figures_;
  Clock::time_point collected_{};
  bool collecting_ = false;
  std::vector<Watcher> watchers_;  // Who wait for the next figures.
};

}  // namespace stanchion::service
