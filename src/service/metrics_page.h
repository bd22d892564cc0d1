// The page that Prometheus scrapes: every figure of the server under its name. docs/metrics.md
// lists them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "broker/figures.h"
#include "net/http_server.h"
#include "service/call_figures.h"
#include "service/fleet_figures.h"
#include "service/process_figures.h"

namespace stanchion::service {

struct ServerFigures {
  std::string_view version;
  std::uint64_t memory_budget = 0;  // For messages.
  std::uint64_t held_budget = 0;    // For requests and answers.
  Duration ahead_of_wall_clock{};
  std::vector<std::string> damaged_queues;  // ARNs.
  net::HttpStats http;
  std::array<CallFigures::Row, CallFigures::kRows> calls{};
  ProcessFigures process;
  std::optional<FleetFigures> fleet = std::nullopt;  // Of a node.
};

std::string render_metrics(const std::vector<broker::ShardFigures>& shards,
                           const ServerFigures& server);

}  // namespace stanchion::service
