// Routes a request to the part of the server that answers it: health, metrics, the console, control
// of virtual time, CloudWatch, and SQS for everything else.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "broker/broker.h"
#include "console/console_handler.h"
#include "monitoring/cloudwatch_endpoint.h"
#include "monitoring/history_keeper.h"
#include "monitoring/metrics_handler.h"
#include "net/http_server.h"
#include "os/timekeeper.h"
#include "service/page_guard.h"
#include "service/reactor_loop.h"

namespace stanchion::server {

// Whether a call may move the clock: it does not come from a web page, uses one of the server's
// names, and comes from this machine, or anyone may (`open`). No key is required.
bool may_move_clock(const net::HttpRequest& request, bool open, const service::PageGuard& pages);

// Whether /health/ready may name queues to the caller: where there are accounts, to nobody, because
// nobody is asked who they are; else to whoever is not a web page, as with any other call.
bool may_see_queue_names(const net::HttpRequest& request, bool has_accounts,
                         const service::PageGuard& pages);

class HttpDispatcher final : public net::HttpHandler {
 public:
  // Who may move the time.
  enum class Movers { kNobody, kThisMachine, kAnyone };

  // What answers which paths.
  struct Routes {
    net::HttpHandler& sqs;
    monitoring::CloudwatchEndpoint& cloudwatch;
    monitoring::MetricsHandler& metrics;
    console::ConsoleHandler& console;
    monitoring::HistoryKeeper& history;
  };

  struct Readiness {
    std::string why_not;  // No work should be sent here for now; empty: it may be.
    // Of a fleet: shards that this node should have and cannot, with the reason, and those that
    // nobody serves, with the reason if it is known. The others are served.
    std::map<ShardIndex, std::string> given_up{};
    std::map<ShardIndex, std::string> without_owner{};
    // Those whose owner cannot write their logs.
    struct Stall {
      std::string owner;
      Instant since;
      std::string why;
    };
    std::map<ShardIndex, Stall> stalled{};
  };
  // What /health/ready says of a fleet's shards, to be added to a JSON object: these do not make
  // the node unready, because all others are served.
  static std::string shard_members(const Readiness& readiness);

  // Any thread.
  using Ready = std::function<Readiness()>;
  // Whether callers are asked who they are. Any thread.
  using HasAccounts = std::function<bool()>;

  // All arguments and routes must outlive the handler.
  HttpDispatcher(const Routes& routes, broker::Broker& broker, os::Timekeeper& time, Movers movers,
                 service::PageGuard pages,
                 std::vector<std::unique_ptr<service::ReactorLoop>>& loops, Ready ready,
                 HasAccounts has_accounts);

  void handle(net::Exchange exchange) override;
  net::HttpResponse refuse(const net::HttpRequest& request, int status,
                           std::string_view reason) override {
    return routes_.sqs.refuse(request, status, reason);
  }

  // Any thread: from now on /health/ready answers 503, so that no new work is sent here.
  void set_draining() { draining_ = true; }

 private:
  void answer_health(net::Exchange exchange, std::string_view path);
  void move_clock(net::Exchange exchange);
  void advance(net::Exchange exchange, Duration by);
  void tell_time(net::Exchange exchange, broker::Loop& loop);

  const Routes routes_;
  broker::Broker& broker_;
  os::Timekeeper& time_;
  const Movers movers_;
  service::PageGuard pages_;
  std::vector<std::unique_ptr<service::ReactorLoop>>& loops_;
  const Ready ready_;
  const HasAccounts has_accounts_;
  std::atomic<bool> draining_{false};
};

}  // namespace stanchion::server
