// The console: GET /console and what is below it.
//
//   GET  /console, /console/*.js …  the page and its modules, the same for everybody
//   POST /console/sign-in           a key, for a session                  (with accounts only)
//   POST /console/api               a call of SQS or CloudWatch, as the session's key
//   GET  /console/events            the caller's queues, live: a stream of server-sent events
//
// Who may: without accounts, a browser that calls the server by a name of this machine, so that no
// page of another name can; with accounts, whoever has a session. Calls that may change something
// must also come from a page of this very origin, and carry a header that no other page can send.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "net/http_server.h"
#include "os/entropy.h"
#include "service/authenticator.h"
#include "service/cloudwatch_endpoint.h"
#include "service/console_sessions.h"
#include "service/queue_events.h"
#include "service/sqs_endpoint.h"

namespace stanchion::service {

inline constexpr std::string_view kConsolePath = "/console";

// Whether the origin of the page that sends a request is the one that it calls.
bool comes_from_own_page(const net::HttpRequest& request);

class ConsoleDoor {
 public:
  // All arguments must outlive the door.
  ConsoleDoor(SqsEndpoint& sqs, CloudwatchEndpoint& cloudwatch, Authenticator& authenticator,
              os::Entropy& entropy, QueueEvents& events);

  void handle(net::Exchange exchange, std::string_view path);

 private:
  using Clock = std::chrono::steady_clock;

  void answer_asset(net::Exchange exchange, std::string_view path);
  void answer_call(net::Exchange exchange);
  void sign_in(net::Exchange exchange);
  void sign_out(net::Exchange exchange);
  void watch(net::Exchange exchange);
  std::optional<Caller> caller_of(const net::HttpRequest& request);

  SqsEndpoint& sqs_;
  CloudwatchEndpoint& cloudwatch_;
  Authenticator& authenticator_;
  QueueEvents& events_;
  ConsoleSessions sessions_;
};

}  // namespace stanchion::service
