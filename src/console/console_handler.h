// The console: GET /console and what is below it.
//
//   GET  /console, /console/*.js …  the page and its modules, the same for everybody
//   POST /console/sign-in           a key, for a session                  (with accounts only)
//   POST /console/sign-out          the end of a session                  (with accounts only)
//   POST /console/api               a call of SQS or CloudWatch, as the session's key
//   GET  /console/here              which server, account and key this is, for the head of the page
//   GET  /console/server            what is known of the server itself
//   GET  /console/events            the caller's queues, live: a stream of server-sent events
//
// Who may: without accounts, a browser that calls the server by a name of this machine, so that no
// page of another name can; with accounts, whoever has a session. Calls that may change something
// must also come from a page of this very origin, and carry a header that no other page can send.
//
// A session is whoever signed in, with the key as it was then. That is looked at again with each
// call, and with each event of a stream: a second apart, or four times as long as one takes to be
// made. A session whose key has changed is forgotten.
//
// Answers of /console/api and /console/here tell the server's time, by which a page computes ages:
// the clock of a browser may be wrong, and a server's may be moved.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "console/queue_events.h"
#include "console/server_page.h"
#include "console/sessions.h"
#include "console/sign_in.h"
#include "monitoring/cloudwatch_endpoint.h"
#include "net/http_server.h"
#include "os/entropy.h"
#include "os/timekeeper.h"
#include "service/authenticator.h"
#include "service/sqs_endpoint.h"

namespace stanchion::console {

inline constexpr std::string_view kConsolePath = "/console";

// Whether the origin of the page that sends a request is the one that it calls.
bool comes_from_own_page(const net::HttpRequest& request);

class ConsoleHandler {
 public:
  // What answers which paths.
  struct Routes {
    service::SqsEndpoint& sqs;
    monitoring::CloudwatchEndpoint& cloudwatch;
    QueueEvents& events;
    ServerPage& server;
  };

  // All arguments and routes must outlive the handler. `machine` is the name of this one.
  ConsoleHandler(const Routes& routes, SignIn& sign_ins, service::Authenticator& authenticator,
                 os::Entropy& entropy, os::Time& time, std::string machine);

  void handle(net::Exchange exchange, std::string_view path);

 private:
  using Clock = std::chrono::steady_clock;

  void answer_asset(net::Exchange exchange, std::string_view path);
  void answer_call(net::Exchange exchange);
  void sign_in(net::Exchange exchange);
  void sign_out(net::Exchange exchange);
  void watch(net::Exchange exchange);
  void tell_where(net::Exchange exchange);
  void tell_of_server(net::Exchange exchange);
  void add_time(net::HttpResponse& response);
  std::optional<service::Caller> caller_of(const net::HttpRequest& request);
  bool holds(std::string_view token);

  const Routes routes_;
  SignIn& sign_ins_;
  service::Authenticator& authenticator_;
  os::Time& time_;
  const std::string machine_;
  ConsoleSessions sessions_;
};

}  // namespace stanchion::console
