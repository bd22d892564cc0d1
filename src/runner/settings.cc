#include "runner/settings.h"

#include <fmt/format.h>

#include <algorithm>

namespace stanchion::runner {
namespace {

// Of a worker; each message in flight has at most 1 MiB.
constexpr std::size_t kInFlightMax = 10'000;
constexpr std::size_t kFilterMax = 10;
constexpr std::size_t kBatchWithoutWindowMax = 10;
constexpr int kExitStatusMax = 255;

bool is_fifo(const std::string& url) {
  return url.ends_with(".fifo");
}

std::string mistake_of_lambda(const WorkSettings& s) {
  const bool fifo = std::ranges::any_of(s.queue_urls, is_fifo);
  if (fifo && s.batch_window > 0) return "--batch-window is not for FIFO queues";
  if (fifo && s.batch_size > kBatchWithoutWindowMax)
    return "a FIFO queue has a --batch-size of 10 at most";
  if (s.batch_size > kBatchWithoutWindowMax && s.batch_window < 1)
    return "a --batch-size above 10 needs a --batch-window of a second or more";
  if (s.batch_size * s.concurrency > kInFlightMax)
    return fmt::format("--batch-size times --concurrency is {}, and {} messages can be in flight",
                       s.batch_size * s.concurrency, kInFlightMax);
  if (s.filters.size() > kFilterMax)
    return fmt::format("there are more than {} --filter", kFilterMax);
  return {};
}

std::string mistake_of_http(const WorkSettings& s) {
  if (s.cron.empty() != s.cron_queue_url.empty())
    return "--cron and --cron-queue-url need each other";
  if (s.cron.empty() && !s.cron_key.empty()) return "--cron-key is for --cron";
  if (!s.cron_queue_url.empty() && !is_fifo(s.cron_queue_url))
    return "--cron-queue-url must be a FIFO queue, which keeps one message of each task and time";
  if (std::ranges::count(s.queue_urls, s.cron_queue_url) > 0)
    return "--cron-queue-url must be another queue than those of --queue-url";
  return {};
}

}  // namespace

std::string mistake_in(const WorkSettings& s) {
  const auto ways = {&s.exec, &s.lines, &s.http, &s.lambda};
  if (std::ranges::count_if(ways, [](const std::string* way) { return !way->empty(); }) != 1)
    return "exactly one of --exec, --lines, --http and --lambda says how messages are handled";
  if (s.reject_code != 0 && s.reject_to.empty()) return "--reject-code needs --reject-to";
  if (s.reject_code != 0 && s.exec.empty() && s.http.empty())
    return "--reject-code is for --exec and --http";
  if (!s.exec.empty() && s.reject_code > kExitStatusMax)
    return "--reject-code is an exit status, from 1 to 255";
  if (s.reject_code == 0 && !s.reject_to.empty() && s.lines.empty())
    return "--reject-to needs --reject-code";
  if ((s.max_age == 0) != s.expired_to.empty()) return "--max-age and --expired-to need each other";
  if (!s.log.empty() && s.log != "json" && s.log != "text" && s.log != "view")
    return "--log is json, text or view";
  if (s.http.empty() && (!s.cron.empty() || !s.cron_queue_url.empty() || !s.cron_key.empty()))
    return "--cron is for --http";
  if (s.lambda.empty() && !s.filters.empty()) return "--filter is for --lambda";
  return s.lambda.empty() ? mistake_of_http(s) : mistake_of_lambda(s);
}

}  // namespace stanchion::runner
