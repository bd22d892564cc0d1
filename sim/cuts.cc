#include "sim/cuts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "sim/plan.h"

namespace stanchion::sim {
namespace {

struct Cut {
  const char* name;
  void (*apply)(Plan&);
};

void leave_out(Plan& plan, std::string_view name) {
  if (plan.queues.size() == 1) return;  // At least one queue must be left.
  std::erase_if(plan.queues, [&](const QueuePlan& queue) { return queue.name == name; });
  for (QueuePlan& queue : plan.queues) {
    if (queue.dead_letter_queue != name) continue;
    queue.attributes.erase("RedrivePolicy");
    queue.dead_letter_queue.clear();
  }
}

constexpr std::array kCuts{
    Cut{"no-orders", [](Plan& p) { leave_out(p, "orders"); }},
    Cut{"no-tenants", [](Plan& p) { leave_out(p, "tenants"); }},
    Cut{"no-lanes", [](Plan& p) { leave_out(p, "lanes.fifo"); }},
    Cut{"no-steps", [](Plan& p) { leave_out(p, "steps.fifo"); }},
    Cut{"no-dead", [](Plan& p) { leave_out(p, "dead"); }},
    Cut{"no-dead-fifo", [](Plan& p) { leave_out(p, "dead.fifo"); }},
    Cut{"no-crashes", [](Plan& p) { p.crash_every = 0; }},
    Cut{"no-kills", [](Plan& p) { p.kill_every = 0; }},
    Cut{"no-stops", [](Plan& p) { p.stop_every = 0; }},
    Cut{"no-failing-disk", [](Plan& p) { p.failing_disk_every = 0; }},
    Cut{"no-failing-store", [](Plan& p) { p.failing_store_every = 0; }},
    Cut{"no-full-disk", [](Plan& p) { p.full_disk_every = 0; }},
    Cut{"no-clock-jumps", [](Plan& p) { p.clock_jump_every = 0; }},
    Cut{"no-wall-jumps", [](Plan& p) { p.wall_jumps = p.server.wall_jumps = false; }},
    Cut{"no-long-jumps", [](Plan& p) { p.long_jumps = false; }},
    Cut{"no-damage", [](Plan& p) { p.damage = false; }},
    Cut{"one-client", [](Plan& p) { p.clients = 1; }},
    Cut{"one-shard", [](Plan& p) { p.server.shards = 1; }},
    Cut{"one-loop", [](Plan& p) { p.server.loops = 1; }},
    Cut{"no-wipes", [](Plan& p) { p.wipes = 0; }},
    Cut{"no-settings", [](Plan& p) { p.settings = 0; }},
    Cut{"no-moves", [](Plan& p) { p.moves = 0; }},
    Cut{"no-repeats", [](Plan& p) { p.repeats = 0; }},
    Cut{"no-attempts", [](Plan& p) { p.attempts = 0; }},
    Cut{"no-vanishing", [](Plan& p) { p.vanishing = 0; }},
    Cut{"no-long-polls", [](Plan& p) { p.long_polls = 0; }},
    Cut{"no-store", [](Plan& p) { p.server.has_store = false; }},
};

}  // namespace

void Cuts::apply(Plan& plan) const {
  if (requests) plan.requests = std::min(plan.requests, *requests);
  for (const Cut& cut : kCuts)
    if (names.contains(cut.name)) cut.apply(plan);
}

std::string Cuts::text() const {
  std::vector<std::string> words;
  if (salt != 0) words.push_back(fmt::format("salt={}", salt));
  if (requests) words.push_back(fmt::format("requests={}", *requests));
  words.insert(words.end(), names.begin(), names.end());
  return fmt::format("{}", fmt::join(words, ","));
}

std::optional<Cuts> Cuts::parse(std::string_view text) {
  Cuts cuts;
  const std::vector<std::string> known = all();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) {
      if (std::ranges::find(known, word) == known.end()) return std::nullopt;
      cuts.names.emplace(word);
      continue;
    }
    const auto number = parse_decimal(word.substr(equals + 1));
    if (!number) return std::nullopt;
    if (word.substr(0, equals) == "salt") {
      cuts.salt = *number;
    } else if (word.substr(0, equals) == "requests" && *number < 1'000'000) {
      cuts.requests = static_cast<int>(*number);
    } else {
      return std::nullopt;
    }
  }
  return cuts;
}

std::vector<std::string> Cuts::all() {
  std::vector<std::string> names;
  for (const Cut& cut : kCuts) names.emplace_back(cut.name);
  return names;
}

}  // namespace stanchion::sim
