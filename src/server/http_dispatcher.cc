#include "server/http_dispatcher.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>
#include <optional>

#include "base/text.h"

namespace stanchion::server {
namespace {

namespace json = boost::json;

constexpr std::string_view kClockPath = "/_stanchion/clock";
constexpr std::size_t kAdvanceBodyMax = 4 * 1024;
// Longer than any period of SQS; keeps instants far from overflow.
constexpr std::int64_t kAdvanceMillisMax = std::int64_t{366} * 24 * 3600 * 1000;

net::HttpResponse json_answer(int status, std::string body) {
  net::HttpResponse response(status, std::move(body));
  response.add_header("Content-Type", "application/json");
  response.add_header("Cache-Control", "no-store");
  return response;
}

net::HttpResponse json_error(int status, std::string_view message) {
  return json_answer(status, json::serialize(json::object{{"message", message}}) + "\n");
}

// A web page can send requests to this machine, but not with this header without a preflight, and
// not under its own name without an Origin header.
bool is_from_a_program(const net::HttpRequest& request) {
  return request.header("X-Stanchion-Control").has_value() && !request.header("Origin").has_value();
}

std::optional<Duration> parse_advance(std::string_view body) {
  if (body.size() > kAdvanceBodyMax) return std::nullopt;
  json::error_code error;
  const json::value value = json::parse(body, error);
  if (error || !value.is_object()) return std::nullopt;
  const json::value* millis = value.as_object().if_contains("advanceMillis");
  const json::value* seconds = value.as_object().if_contains("advanceSeconds");
  if ((millis == nullptr) == (seconds == nullptr)) return std::nullopt;
  const json::value& given = millis != nullptr ? *millis : *seconds;
  if (!given.is_int64() || given.as_int64() < 0) return std::nullopt;
  const std::int64_t unit = millis != nullptr ? 1 : 1000;
  if (given.as_int64() > kAdvanceMillisMax / unit) return std::nullopt;
  return Duration(given.as_int64() * unit);
}

// Queues that are set aside do not make the server unready: all the others are served.
std::string damaged_members(const std::vector<std::string>& damaged, bool named) {
  if (damaged.empty()) return "";
  const std::string count = fmt::format(",\"damagedQueueCount\":{}", damaged.size());
  if (!named) return count;
  json::array queues;
  for (const std::string& arn : damaged) queues.emplace_back(arn);
  return count + ",\"damagedQueues\":" + json::serialize(queues);
}

std::string stalled_members(const std::map<ShardIndex, HttpDispatcher::Readiness::Stall>& stalled) {
  if (stalled.empty()) return "";
  json::array shards;
  for (const auto& [shard, stall] : stalled)
    shards.push_back(json::object{{"shard", shard.value()},
                                  {"owner", stall.owner},
                                  {"sinceMillis", to_millis(stall.since)},
                                  {"reason", stall.why}});
  return ",\"shardsStalled\":" + json::serialize(shards);
}

}  // namespace

bool may_move_clock(const net::HttpRequest& request, bool open, const service::PageGuard& pages) {
  if (!is_from_a_program(request)) return false;
  // The Host header alone proves nothing: other machines can send any.
  return (open || request.peer.loopback) && pages.knows(request.header("Host").value_or(""));
}

bool may_see_queue_names(const net::HttpRequest& request, bool has_accounts,
                         const service::PageGuard& pages) {
  // "none" means that a person typed the URL into the address bar.
  return !has_accounts && pages.knows(request.header("Host").value_or("")) &&
         !request.header("Origin").has_value() &&
         request.header("Sec-Fetch-Site").value_or("none") == "none";
}

HttpDispatcher::HttpDispatcher(const Routes& routes, broker::Broker& broker, os::Timekeeper& time,
                               Movers movers, service::PageGuard pages,
                               std::vector<std::unique_ptr<service::ReactorLoop>>& loops,
                               Ready ready, HasAccounts has_accounts)
    : routes_(routes),
      broker_(broker),
      time_(time),
      movers_(movers),
      pages_(std::move(pages)),
      loops_(loops),
      ready_(std::move(ready)),
      has_accounts_(std::move(has_accounts)) {}

std::string HttpDispatcher::shard_members(const Readiness& readiness) {
  std::string members;
  if (!readiness.given_up.empty()) {
    json::array shards;
    for (const auto& [shard, why] : readiness.given_up)
      shards.push_back(json::object{{"shard", shard.value()}, {"reason", why}});
    members += ",\"shardsGivenUp\":" + json::serialize(shards);
  }
  json::array shards, held_back;
  for (const auto& [shard, why] : readiness.without_owner) {
    shards.emplace_back(shard.value());
    if (!why.empty()) held_back.push_back(json::object{{"shard", shard.value()}, {"reason", why}});
  }
  if (!shards.empty()) members += ",\"shardsWithoutOwner\":" + json::serialize(shards);
  if (!held_back.empty()) members += ",\"shardsHeldBack\":" + json::serialize(held_back);
  return members + stalled_members(readiness.stalled);
}

void HttpDispatcher::handle(net::Exchange exchange) {
  const std::string_view target = exchange.request().target;
  if (target.size() > 1) {
    const std::string_view path = target.substr(0, target.find('?'));
    if (path == "/health" || path.starts_with("/health/"))
      return answer_health(std::move(exchange), path);
    if (path == monitoring::kMetricsPath) return routes_.metrics.answer_public(std::move(exchange));
    if (path == console::kConsolePath || path.starts_with("/console/"))
      return routes_.console.handle(std::move(exchange), path);
    if (path == kClockPath && movers_ != Movers::kNobody) return move_clock(std::move(exchange));
  }
  if (const auto protocol = monitoring::CloudwatchEndpoint::detect(exchange.request()))
    return routes_.cloudwatch.handle(std::move(exchange), *protocol);
  routes_.sqs.handle(std::move(exchange));
}

void HttpDispatcher::answer_health(net::Exchange exchange, std::string_view path) {
  const auto answer = [&](int status, std::string_view word, std::string_view more = "") {
    const Duration ahead = time_.difference() + time_.advanced();
    exchange.answer(
        json_answer(status, fmt::format("{{\"status\":\"{}\",\"aheadOfWallClockMillis\":{}{}}}\n",
                                        word, ahead.count(), more)));
  };
  if (path == "/health/live" || path == "/health") return answer(200, "live");
  if (path != "/health/ready") return exchange.answer(json_error(404, "no such page"));
  if (draining_) return answer(503, "draining");
  const Readiness readiness = ready_();
  if (!readiness.why_not.empty())
    return answer(503, "starting",
                  ",\"reason\":" + json::serialize(json::value(readiness.why_not)));
  const bool named = may_see_queue_names(exchange.request(), has_accounts_(), pages_);
  answer(200, "ready", damaged_members(broker_.damaged_queues(), named) + shard_members(readiness));
}

void HttpDispatcher::move_clock(net::Exchange exchange) {
  const net::HttpRequest& request = exchange.request();
  if (!may_move_clock(request, movers_ == Movers::kAnyone, pages_))
    return exchange.answer(json_error(
        403,
        "send the header X-Stanchion-Control: 1, from a program on the server's machine, to "
        "localhost, 127.0.0.1 or a name in --allowed-hosts; from other machines only with "
        "--insecure"));
  if (request.method == "POST") {
    const auto by = parse_advance(request.body);
    if (!by)
      return exchange.answer(json_error(
          400, "send {\"advanceSeconds\": N} or {\"advanceMillis\": N}, N from 0 up to a year"));
    return advance(std::move(exchange), *by);
  }
  if (request.method != "GET")
    return exchange.answer(json_error(405, "GET returns the time, POST moves it"));
  broker::Loop& loop = *loops_[exchange.reactor().index()];
  tell_time(std::move(exchange), loop);
}

// The answer comes when the minutes that end by it are in the history, so that a test can look.
void HttpDispatcher::advance(net::Exchange exchange, Duration by) {
  broker::Loop& loop = *loops_[exchange.reactor().index()];
  routes_.history.before_move(loop, by,
                              [this, by, &loop, exchange = std::move(exchange)]() mutable {
                                time_.advance(by);
                                tell_time(std::move(exchange), loop);
                              });
}

void HttpDispatcher::tell_time(net::Exchange exchange, broker::Loop& loop) {
  broker_.time_was_moved(loop, [this, &loop, exchange = std::move(exchange)]() mutable {
    routes_.history.after_move(loop, [this, exchange = std::move(exchange)]() mutable {
      exchange.answer(
          json_answer(200, fmt::format("{{\"nowMillis\":{},\"aheadMillis\":{}}}\n",
                                       to_millis(time_.read().now), time_.advanced().count())));
    });
  });
}

}  // namespace stanchion::server
