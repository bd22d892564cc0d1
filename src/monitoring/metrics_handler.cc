#include "monitoring/metrics_handler.h"

#include <fnmatch.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <boost/algorithm/string/split.hpp>
#include <set>
#include <utility>

#include "monitoring/history_keeper.h"

namespace stanchion::monitoring {
namespace {

constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kBearer = "Bearer ";

// More at once are refused: each holds a connection.
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

// The names of which the setting allows figures.
std::function<bool(const std::string&)> wanted_names(std::string_view setting) {
  if (setting == "none") return [](const std::string&) { return false; };
  if (setting == "all" || setting == "active") return [](const std::string&) { return true; };
  std::vector<std::string> patterns;
  boost::algorithm::split(patterns, setting, [](char c) { return c == ',' || c == ' '; });
  return [patterns](const std::string& name) {
    return std::ranges::any_of(patterns, [&](const std::string& pattern) {
      return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    });
  };
}

// The ARNs that redrive policies name, of all queues: one that sends its dead letters to a queue of
// the page need not be on the page itself. Any thread.
class DeadLetterTargets {
 public:
  void note(const engine::Queue& queue) {
    const auto& redrive = queue.attributes().redrive;
    if (!redrive) return;
    const std::lock_guard lock(mutex_);
    arns_.insert(redrive->target_arn);
  }

  std::vector<QueueRef> queues(std::string_view setting) {
    const auto wants = wanted_names(setting);
    const std::lock_guard lock(mutex_);
    std::vector<QueueRef> queues;
    for (const std::string& arn : arns_)
      if (auto queue = parse_queue_arn(arn); queue && wants(queue->name))
        queues.push_back(std::move(*queue));
    return queues;
  }

 private:
  std::mutex mutex_;
  std::set<std::string> arns_;  // Guarded by mutex_.
};

}  // namespace

broker::WantsQueue wanted_queues(std::string_view setting) {
  if (setting == "active")
    return [](const engine::Queue& queue, Instant now) {
      return is_active(queue.counts(), queue.used, now);
    };
  return [wants = wanted_names(setting)](const engine::Queue& queue, Instant) {
    return wants(queue.ref.name);
  };
}

std::optional<net::HttpResponse> refusal_of_metrics(const net::HttpRequest& request,
                                                    std::string_view token, bool needs_token,
                                                    const service::PageGuard& pages) {
  if (request.method != "GET" && request.method != "HEAD") {
    net::HttpResponse response = plain(405, "use GET to read metrics");
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
                 "this server has accounts: set metrics.token and send it as Authorization: "
                 "Bearer TOKEN, or set metrics.listen for a separate port");
  // Otherwise a page could be made to look under a name of its own, and see the answer.
  if (!pages.knows(request.header("Host").value_or("")))
    return plain(403, "call the server by localhost, 127.0.0.1 or a name in server.allowed_hosts");
  return std::nullopt;
}

MetricsHandler::MetricsHandler(MetricsOptions options, service::PageGuard pages,
                               broker::Broker& broker, broker::Background& background,
                               std::vector<std::unique_ptr<service::ReactorLoop>>& loops,
                               LookAtServer look, HasAccounts has_accounts)
    : options_(std::move(options)),
      pages_(std::move(pages)),
      wants_(wanted_queues(options_.queues)),
      broker_(broker),
      background_(background),
      discarder_(background),
      loops_(loops),
      look_(std::move(look)),
      has_accounts_(std::move(has_accounts)) {}

void MetricsHandler::answer_public(net::Exchange exchange) {
  answer(std::move(exchange), Reach::kPublic);
}

void MetricsHandler::handle(net::Exchange exchange) {
  const std::string_view target = exchange.request().target;
  if (target.substr(0, target.find('?')) != kMetricsPath)
    return exchange.answer(plain(404, "there is only /metrics here"));
  answer(std::move(exchange), Reach::kOwn);
}

void MetricsHandler::answer(net::Exchange exchange, Reach reach) {
  const bool needs_token = reach == Reach::kPublic && has_accounts_();
  if (auto no = refusal_of_metrics(exchange.request(), options_.token, needs_token, pages_))
    return exchange.answer(std::move(*no));
  service::ReactorLoop& loop = *loops_[exchange.reactor().index()];
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() == kWaitingMax)
      return exchange.answer(plain(503, "too many requests for metrics at the same time"));
    waiting_.push_back({std::move(exchange), &loop});
    if (!served_.empty()) return;
    served_.swap(waiting_);
  }
  make_page();
}

void MetricsHandler::make_page() {
  service::ReactorLoop* loop = nullptr;
  {
    const std::lock_guard lock(mutex_);
    loop = served_.front().loop;
  }
  if (const EditionPointer shared = find_to_share()) return finish(shared);
  const auto targets = std::make_shared<DeadLetterTargets>();
  const auto wants = [this, targets](const engine::Queue& queue, Instant now) {
    targets->note(queue);
    return wants_(queue, now);
  };
  broker_.collect(
      *loop,
      {.queues = wants,
       .purpose = broker::Purpose::kMetrics,
       .per_account_max = options_.queues_per_account},
      [this, targets](broker::Figures figures) {
        // In a fleet each node is asked, and each tells of the shards that it serves.
        std::erase_if(figures.shards, [](const broker::ShardFigures& s) { return !s.served; });
        background_.run(broker::Work::kReport, [this, targets,
                                                figures = std::move(figures)]() mutable {
          keep_first_queues(figures.shards, options_.queues_per_account);
          ServerFigures server = look_();
          server.dead_letter_queues = targets->queues(options_.queues);
          server.dead_letter_queues_left_out =
              keep_first_dead_letter_queues(server.dead_letter_queues, options_.queues_per_account);
          finish(publish(
              std::make_shared<const MetricsPage>(std::move(figures.shards), std::move(server))));
        });
      });
}

MetricsHandler::EditionPointer MetricsHandler::publish(std::shared_ptr<const MetricsPage> page) {
  // The figures of many queues take a loop milliseconds to free.
  const EditionPointer edition =
      discarder_.share(std::unique_ptr<Edition>(new Edition{std::move(page), Clock::now()}));
  const std::lock_guard lock(mutex_);
  editions_.push_back(edition);
  return edition;
}

// Null if there may be another page.
MetricsHandler::EditionPointer MetricsHandler::find_to_share() {
  const std::lock_guard lock(mutex_);
  std::erase_if(editions_, [](const auto& edition) { return edition.expired(); });
  if (editions_.size() < kPagesMax) return nullptr;
  const EditionPointer oldest = editions_.front().lock();
  if (oldest && Clock::now() - oldest->made < kReadTimeMax) return editions_.back().lock();
  if (oldest) background_.run(broker::Work::kReport, [page = oldest->page.exchange(nullptr)] {});
  editions_.pop_front();
  return nullptr;
}

void MetricsHandler::finish(const EditionPointer& edition) {
  std::vector<Waiting> served;
  {
    const std::lock_guard lock(mutex_);
    served.swap(served_);
    served_.swap(waiting_);
    if (!served_.empty()) served_.front().loop->post([this] { make_page(); });
  }
  for (Waiting& one : served)
    one.loop->post([exchange = std::move(one.exchange), edition]() mutable {
      send(std::move(exchange), edition);
    });
}

// On the loop of the exchange.
void MetricsHandler::send(net::Exchange exchange, const EditionPointer& edition) {
  auto source = [edition, place = MetricsPage::Place()](std::string& into) mutable {
    const auto page = edition->page.load();
    if (!page) return net::BodyPart::kCut;
    return page->append_part(place, into) ? net::BodyPart::kMore : net::BodyPart::kLast;
  };
  net::HttpResponse response(200);
  response.add_header("Content-Type", kContentType);
  response.add_header("Cache-Control", "no-store");
  const net::BodyPart part = source(response.body);
  if (part == net::BodyPart::kCut)
    return exchange.answer(plain(503, "too many slow readers of metrics; try again"));
  if (part == net::BodyPart::kLast) return exchange.answer(std::move(response));
  exchange.answer(std::move(response), std::move(source));
}

}  // namespace stanchion::monitoring
