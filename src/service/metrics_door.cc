#include "service/metrics_door.h"

#include <fnmatch.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <boost/algorithm/string/split.hpp>
#include <utility>

#include "service/history_keeper.h"

namespace stanchion::service {
namespace {

constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kBearer = "Bearer ";

// More at once are refused: each holds a connection and gets a copy of the page.
constexpr std::size_t kWaitingMax = 64;

net::HttpResponse plain(int status, std::string_view text) {
  net::HttpResponse response(status, std::string(text) + "\n");
  response.add_header("Content-Type", "text/plain; charset=utf-8");
  response.add_header("Cache-Control", "no-store");
  return response;
}

// How long it takes tells nothing about how much of the token was right.
bool has_token(const net::HttpRequest& request, std::string_view token) {
  std::string_view given = request.header("Authorization").value_or("");
  if (!given.starts_with(kBearer)) return false;
  given.remove_prefix(kBearer.size());
  return given.size() == token.size() &&
         CRYPTO_memcmp(given.data(), token.data(), token.size()) == 0;
}

}  // namespace

broker::WantsQueue wanted_queues(std::string_view setting) {
  if (setting == "none") return [](const engine::Queue&, Instant) { return false; };
  if (setting == "all") return [](const engine::Queue&, Instant) { return true; };
  if (setting == "active")
    return [](const engine::Queue& queue, Instant now) {
      return is_active(queue.counts(), queue.used, now);
    };
  std::vector<std::string> patterns;
  boost::algorithm::split(patterns, setting, [](char c) { return c == ',' || c == ' '; });
  return [patterns](const engine::Queue& queue, Instant) {
    return std::ranges::any_of(patterns, [&](const std::string& pattern) {
      return ::fnmatch(pattern.c_str(), queue.ref.name.c_str(), 0) == 0;
    });
  };
}

std::optional<net::HttpResponse> refusal_of_metrics(const net::HttpRequest& request,
                                                    std::string_view token, bool needs_token,
                                                    const PageGuard& pages) {
  if (request.method != "GET" && request.method != "HEAD") {
    net::HttpResponse response = plain(405, "metrics are read by GET");
    response.add_header("Allow", "GET, HEAD");
    return response;
  }
  if (!token.empty()) {
    if (has_token(request, token)) return std::nullopt;
    net::HttpResponse response =
        plain(401, "send the header Authorization: Bearer TOKEN with the token of metrics.token");
    response.add_header("WWW-Authenticate", "Bearer realm=\"metrics\"");
    return response;
  }
  if (needs_token)
    return plain(403,
                 "this server asks callers who they are: set metrics.token and send it as "
                 "Authorization: Bearer TOKEN, or set metrics.listen for a port of its own");
  // Otherwise a page could be made to look under a name of its own, and see the answer.
  if (!pages.knows(request.header("Host").value_or("")))
    return plain(403, "call the server by localhost, 127.0.0.1 or a name in server.allowed_hosts");
  return std::nullopt;
}

MetricsDoor::MetricsDoor(MetricsOptions options, PageGuard pages, broker::Broker& broker,
                         broker::Background& background,
                         std::vector<std::unique_ptr<ReactorLoop>>& loops, LookAtServer look,
                         HasAccounts has_accounts)
    : options_(std::move(options)),
      pages_(std::move(pages)),
      wants_(wanted_queues(options_.queues)),
      broker_(broker),
      background_(background),
      loops_(loops),
      look_(std::move(look)),
      has_accounts_(std::move(has_accounts)) {}

void MetricsDoor::answer_public(net::Exchange exchange) {
  answer(std::move(exchange), Reach::kPublic);
}

void MetricsDoor::handle(net::Exchange exchange) {
  const std::string_view target = exchange.request().target;
  if (target.substr(0, target.find('?')) != kMetricsPath)
    return exchange.answer(plain(404, "there is only /metrics here"));
  answer(std::move(exchange), Reach::kOwn);
}

void MetricsDoor::answer(net::Exchange exchange, Reach reach) {
  const bool needs_token = reach == Reach::kPublic && has_accounts_();
  if (auto no = refusal_of_metrics(exchange.request(), options_.token, needs_token, pages_))
    return exchange.answer(std::move(*no));
  ReactorLoop& loop = *loops_[exchange.reactor().index()];
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() == kWaitingMax)
      return exchange.answer(plain(503, "too many ask for metrics at the same time"));
    waiting_.push_back({std::move(exchange), &loop});
    if (!served_.empty()) return;
    served_.swap(waiting_);
  }
  make_page();
}

void MetricsDoor::make_page() {
  ReactorLoop* loop = nullptr;
  {
    const std::lock_guard lock(mutex_);
    loop = served_.front().loop;
  }
  broker_.collect(*loop, wants_, [this](std::vector<broker::ShardFigures> shards) {
    // In a fleet each node is asked, and each tells of the shards that it serves.
    std::erase_if(shards, [](const broker::ShardFigures& shard) { return !shard.served; });
    background_.run(broker::Work::kReport, [this, shards = std::move(shards)] {
      finish(render_metrics(shards, look_()));
    });
  });
}

void MetricsDoor::finish(std::string page) {
  std::vector<Waiting> served;
  {
    const std::lock_guard lock(mutex_);
    served.swap(served_);
    served_.swap(waiting_);
    if (!served_.empty()) served_.front().loop->post([this] { make_page(); });
  }
  // Copied here: many megabytes would keep the loops from their work.
  for (Waiting& one : served) {
    const bool last = &one == &served.back();
    net::HttpResponse response(200, last ? std::exchange(page, {}) : page);
    response.add_header("Content-Type", kContentType);
    response.add_header("Cache-Control", "no-store");
    one.loop->post([exchange = std::move(one.exchange), response = std::move(response)]() mutable {
      exchange.answer(std::move(response));
    });
  }
}

}  // namespace stanchion::service
