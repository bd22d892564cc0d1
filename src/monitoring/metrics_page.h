// The page that Prometheus scrapes: every figure of the server under its name. docs/metrics.md
// lists them.
//
// With many queues the page has many megabytes, because each of its families names every queue. So
// it is never in memory as a whole: it keeps the figures, and each reader has it written part by
// part. Immutable, any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/prometheus_text.h"
#include "base/time.h"
#include "broker/figures.h"
#include "monitoring/fleet_figures.h"
#include "monitoring/process_figures.h"
#include "net/http_server.h"
#include "service/call_figures.h"

namespace stanchion::monitoring {

struct ServerFigures {
  std::string_view version;
  std::uint64_t memory_budget = 0;  // For messages.
  std::uint64_t held_budget = 0;    // For requests and answers.
  Duration ahead_of_wall_clock{};
  std::vector<std::string> damaged_queues;  // ARNs.
  // Those that redrive policies of queues on this server name; they may be on another node.
  std::vector<QueueRef> dead_letter_queues = {};
  std::map<std::string, std::uint64_t> dead_letter_queues_left_out = {};  // By account.
  net::HttpStats http;
  std::array<service::CallFigures::Row, service::CallFigures::kRows> calls{};
  ProcessFigures process;
  std::optional<FleetFigures> fleet = std::nullopt;  // Of a node.
};

// Leaves each account its first queues by region and name, of all shards together, and counts the
// others as left out. REQUIRES: queues of a shard are in the order of their names, as collected.
void keep_first_queues(std::vector<broker::ShardFigures>& shards, std::size_t per_account_max);

// The same for dead-letter queues; returns how many of each account were left out.
std::map<std::string, std::uint64_t> keep_first_dead_letter_queues(std::vector<QueueRef>& queues,
                                                                   std::size_t per_account_max);

class MetricsPage {
 public:
  // A part ends with the first line by which it has this size, or with the page.
  static constexpr std::size_t kPartBytes = 64 * 1024;

  MetricsPage(std::vector<broker::ShardFigures> shards, const ServerFigures& server);

  // How far a reader is.
  struct Place {
    std::size_t family = 0;  // Of those of queues; behind them comes the rest.
    std::size_t shard = 0;
    std::size_t queue = 0;
    std::size_t in_rest = 0;
  };
  // Appends the next part and moves the place behind it; false if that was the last.
  bool append_part(Place& place, std::string& out) const;

 private:
  class Writer;
  // A family with one sample for each queue.
  struct OfQueues {
    std::string_view name;
    PrometheusText::Type type;
    std::string_view help;
    std::function<void(PrometheusText&, const broker::QueueFigures&)> write;
  };

  void append_queues(Place& place, PrometheusText& text) const;

  std::vector<broker::ShardFigures> shards_;
  std::vector<OfQueues> of_queues_;
  std::string rest_;  // All other families.
};

}  // namespace stanchion::monitoring
