// GET /metrics: who may see the figures, and how they are brought together.
//
//   request ─▶ may they? ─▶ every shard's loop, a few queues at a time ─▶ page, in the background
//           ─▶ answer, written part by part as the client takes it
//
//   MD1  One page is made at a time: all who ask meanwhile share the next one.
//   MD2  At most kPagesMax pages are being read. While there are so many, whoever asks shares the
//        newest; only the readers of a page that is older than kReadTimeMax are cut off for a new
//        one. So readers that do not read cost a part of a page each, and a page for all of them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/background.h"
#include "broker/broker.h"
#include "monitoring/discarder.h"
#include "monitoring/metrics_page.h"
#include "net/http_server.h"
#include "service/page_guard.h"
#include "service/reactor_loop.h"

namespace stanchion::monitoring {

inline constexpr std::string_view kMetricsPath = "/metrics";

struct MetricsOptions {
  // Which queues have figures of their own: "all", "active" (that hold messages, or were called in
  // the last six hours), "none", or names with stars, as "orders*,billing".
  std::string queues = "all";
  std::string token;  // Empty: nobody is asked for one.
  // More queues of an account have none: one account does not make the page too large for all.
  std::size_t queues_per_account = 10'000;
};

// The queues that the setting names; thread-safe.
broker::WantsQueue wanted_queues(std::string_view setting);

// The answer to a request that may not see the figures; none if it may. An empty `token` is not
// asked for; `needs_token`: without one the figures are for nobody.
std::optional<net::HttpResponse> refusal_of_metrics(const net::HttpRequest& request,
                                                    std::string_view token, bool needs_token,
                                                    const service::PageGuard& pages);

class MetricsHandler final : public net::HttpHandler {
 public:
  // Looks at everything but the shards; called on the thread that makes the page.
  using LookAtServer = std::function<ServerFigures()>;
  // Whether callers are asked who they are, so that the figures are not for everybody.
  using HasAccounts = std::function<bool()>;

  static constexpr std::size_t kPagesMax = 2;
  // Longer than any scraper waits.
  static constexpr std::chrono::seconds kReadTimeMax{30};

  // Everything must outlive the handler, except that stop() may come before the end of the
  // background; `loops` has one per reactor, by its index.
  MetricsHandler(MetricsOptions options, service::PageGuard pages, broker::Broker& broker,
                 broker::Background& background,
                 std::vector<std::unique_ptr<service::ReactorLoop>>& loops, LookAtServer look,
                 HasAccounts has_accounts);

  // The loops have ended. Their answers, and tasks that never ran, may outlive the background now.
  void stop() { discarder_.stop(); }

  // A call to the port that serves SQS.
  void answer_public(net::Exchange exchange);
  // A call to a port for the figures alone.
  void handle(net::Exchange exchange) override;

 private:
  enum class Reach { kPublic, kOwn };
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    net::Exchange exchange;
    service::ReactorLoop* loop;
  };
  // A page that is being read. Whoever reads it keeps it, until it is taken away from all of them.
  struct Edition {
    std::atomic<std::shared_ptr<const MetricsPage>> page;
    Clock::time_point made;
  };
  using EditionPointer = std::shared_ptr<Edition>;

  void answer(net::Exchange exchange, Reach reach);
  void make_page();  // On the loop of the first who waits.
  void finish(const EditionPointer& edition);
  EditionPointer publish(std::shared_ptr<const MetricsPage> page);
  EditionPointer find_to_share();
  static void send(net::Exchange exchange, const EditionPointer& edition);

  const MetricsOptions options_;
  const service::PageGuard pages_;
  const broker::WantsQueue wants_;
  broker::Broker& broker_;
  broker::Background& background_;
  Discarder discarder_;
  std::vector<std::unique_ptr<service::ReactorLoop>>& loops_;
  const LookAtServer look_;
  const HasAccounts has_accounts_;
  std::mutex mutex_;
  // Guarded by mutex_:
  std::vector<Waiting> waiting_;  // For the next page.
  std::vector<Waiting> served_;   // Those for whom one is being made; empty if none is.
  std::deque<std::weak_ptr<Edition>> editions_;  // The oldest first.
};

}  // namespace stanchion::monitoring
