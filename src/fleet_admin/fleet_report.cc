#include "fleet_admin/fleet_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <set>

#include "base/date.h"
#include "fleet/coordinator.h"
#include "fleet/limits.h"
#include "fleet/linkage.h"

namespace stanchion::fleet_admin {
namespace {

namespace json = boost::json;

class Maker {
 public:
  Maker(const fleet::ControlState& state, const std::map<fleet::NodeName, Heard>& heard)
      : state_(state), heard_(heard) {}

  FleetReport make(const std::vector<std::optional<std::uint64_t>>& entries) {
    report_.metadata = *state_.metadata();
    report_.coordinator = state_.coordinator();
    for (const auto& [name, node] : state_.nodes()) add_node(name, node.beat);
    for (std::uint32_t i = 0; i < report_.metadata.shards; ++i)
      add_shard(ShardIndex(i), i < entries.size() ? entries[i] : std::nullopt);
    add_clock_offsets();
    add_links();
    warn_of_shards();
    warn_of_nodes();
    return std::move(report_);
  }

 private:
  bool is_alive(const fleet::NodeName& name) const {
    const auto found = heard_.find(name);
    return found != heard_.end() && found->second.alive;
  }

  void add_node(const fleet::NodeName& name, const fleet::Beat& beat) {
    NodeReport node{.name = name,
                    .zone = beat.zone,
                    .address = beat.address,
                    .version = beat.version,
                    .alive = is_alive(name),
                    .ready = beat.ready,
                    .draining = beat.draining,
                    .drained = state_.is_drained(name),
                    .heard = heard_.contains(name) ? heard_.at(name).at : Instant(),
                    .clock_offset = {}};
    for (std::uint32_t i = 0; i < report_.metadata.shards; ++i) {
      const auto& assignment = state_.shard(ShardIndex(i)).assignment;
      if (!assignment || !assignment->includes(name)) continue;
      ++(assignment->owner == name ? node.owned : node.followed);
    }
    report_.nodes.push_back(std::move(node));
  }

  const fleet::Beat::Reached* reached(const fleet::NodeName& name, ShardIndex shard) const {
    const fleet::ControlState::Node* node = state_.find(name);
    if (node == nullptr || !is_alive(name)) return nullptr;
    const auto found = node->beat.reached.find(shard);
    return found == node->beat.reached.end() ? nullptr : &found->second;
  }

  std::optional<fleet::Beat::Stall> stall(const fleet::NodeName& owner, ShardIndex shard) const {
    const fleet::ControlState::Node* node = state_.find(owner);
    if (node == nullptr || !is_alive(owner)) return std::nullopt;
    const auto found = node->beat.stalled.find(shard);
    return found == node->beat.stalled.end() ? std::nullopt : std::optional(found->second);
  }

  void add_shard(ShardIndex index, std::optional<std::uint64_t> entries) {
    ShardReport shard{.index = index.value(), .owner = {}, .standbys = {}, .entries = entries};
    const fleet::ControlState::Shard& known = state_.shard(index);
    if (known.has_open_move()) shard.moving_to = known.requested_move->to;
    if (known.assignment) {
      shard.owner = known.assignment->owner;
      const auto* at_owner = reached(shard.owner, index);
      shard.served = at_owner != nullptr && at_owner->service != 0;
      shard.stall = stall(shard.owner, index);
      for (const fleet::NodeName& name : known.assignment->standbys) {
        ShardReport::Standby standby{name, is_alive(name), {}};
        const auto* there = reached(name, index);
        if (there != nullptr && shard.served)
          standby.lag = at_owner->applied.value() -
                        std::min(at_owner->applied.value(), there->applied.value());
        shard.standbys.push_back(std::move(standby));
      }
    }
    report_.shards.push_back(std::move(shard));
  }

  // A node's clock, as it was when its beat was appended, beside the brokers'.
  Duration offset_of(const NodeReport& node) const {
    return state_.find(node.name)->beat.clock - node.heard;
  }

  void add_clock_offsets() {
    std::vector<Duration> offsets;
    for (const NodeReport& node : report_.nodes)
      if (node.alive) offsets.push_back(offset_of(node));
    if (offsets.empty()) return;
    const auto middle = offsets.begin() + static_cast<std::ptrdiff_t>(offsets.size() / 2);
    std::ranges::nth_element(offsets, middle);
    for (NodeReport& node : report_.nodes)
      if (node.alive) node.clock_offset = offset_of(node) - *middle;
  }

  void add_links() {
    std::set<fleet::NodeName> owners;
    for (const NodeReport& node : report_.nodes) {
      if (node.alive) alive_.insert(node.name);
      if (node.alive && !node.draining && !node.drained) owners.insert(node.name);
    }
    const auto linked = fleet::well_linked(
        state_, alive_, owners, [&](const fleet::NodeName& one, const fleet::NodeName& other) {
          return fleet::are_apart(state_, one, other);
        });
    for (NodeReport& node : report_.nodes) node.linked = !node.alive || linked.contains(node.name);
  }

  void warn(std::string text) { report_.warnings.push_back(std::move(text)); }

  void warn_of_shards() {
    // As many as there can be: a fleet of two nodes has two.
    const std::size_t wanted = std::min(fleet::kReplicas, report_.nodes.size());
    std::set<std::string> zones;
    for (const NodeReport& node : report_.nodes) zones.insert(node.zone);
    for (const ShardReport& shard : report_.shards) {
      if (shard.owner.empty())
        warn(fmt::format("shard {} has no owner: it was never assigned", shard.index));
      else if (!shard.served)
        warn(fmt::format("shard {} has no owner: {} does not serve it{}", shard.index, shard.owner,
                         why_not_another(ShardIndex(shard.index))));
      if (shard.stall)
        warn(fmt::format("shard {} is stalled: Kafka has taken no writes from {} since {}: {}",
                         shard.index, shard.owner, date(shard.stall->since), shard.stall->why));
      std::size_t copies = shard.served ? 1 : 0;
      for (const ShardReport::Standby& standby : shard.standbys) copies += standby.lag.has_value();
      if (shard.served && copies < wanted)
        warn(fmt::format(
            "shard {} is under-replicated: {} of {} replicas are up to date or following",
            shard.index, copies, wanted));
      warn_of_zones(shard, zones.size());
      if (!shard.entries)
        warn(fmt::format("Kafka does not respond for the log of shard {}", shard.index));
    }
  }

  std::string why_not_another(ShardIndex shard) const {
    std::vector<fleet::NodeName> names;
    for (const auto& [name, node] : state_.nodes())
      if (is_alive(name) && node.beat.other_past.contains(shard)) names.push_back(name);
    return names.empty()
               ? ""
               : ", and it is assigned to no node, because " + fleet::why_held_back(names);
  }

  void warn_of_zones(const ShardReport& shard, std::size_t zones) {
    std::map<std::string, fleet::NodeName> by_zone;
    const auto look_at = [&](const fleet::NodeName& name) {
      const fleet::ControlState::Node* node = state_.find(name);
      if (node == nullptr) return;
      const auto [other, is_new] = by_zone.emplace(node->beat.zone, name);
      // With fewer zones than replicas, some must share one.
      if (!is_new && zones >= shard.standbys.size() + 1)
        warn(fmt::format("shard {}: {} and {} are both in zone {}", shard.index, other->second,
                         name, node->beat.zone));
    };
    if (!shard.owner.empty()) look_at(shard.owner);
    for (const ShardReport::Standby& standby : shard.standbys) look_at(standby.name);
  }

  // Of each node that is to own nothing, and of links that others lack.
  void warn_of_links() {
    for (auto node = report_.nodes.begin(); node != report_.nodes.end(); ++node) {
      if (!node->linked)
        warn(fmt::format("node {} is not linked with most other nodes and will own nothing: {}",
                         node->name, fleet::why_apart(state_, node->name, alive_)));
      for (auto other = node + 1; other != report_.nodes.end(); ++other)
        if (node->alive && node->linked && other->alive && other->linked &&
            fleet::are_apart(state_, node->name, other->name))
          warn(fmt::format(
              "nodes {} and {} have no link, so requests that one accepts for shards of the "
              "other fail: {}",
              node->name, other->name, fleet::why_apart(state_, node->name, other->name)));
    }
  }

  void warn_of_nodes() {
    warn_of_links();
    std::set<std::string> versions;
    for (const NodeReport& node : report_.nodes) {
      if (!node.alive) {
        warn(fmt::format("node {} is down; if it will not come back, run stanchion fleet forget {}",
                         node.name, node.name));
        continue;
      }
      versions.insert(node.version);
      const auto& given_up = state_.find(node.name)->beat.given_up;
      for (const auto& [shard, why] : given_up)
        warn(fmt::format("node {} has given up shard {}: {}", node.name, shard.value(), why));
      if (!node.ready && given_up.empty()) warn(fmt::format("node {} is not ready", node.name));
      const auto off = node.clock_offset.value_or(Duration(0));
      const auto alive = std::ranges::count_if(report_.nodes, &NodeReport::alive);
      if (off > fleet::kClockOffMax || off < -fleet::kClockOffMax)
        warn(fmt::format("the clock of node {} is {} ms off{}", node.name, off.count(),
                         alive <= 2 ? "; with two clocks, nobody can tell which one is right"
                                    : fmt::format("; it owns nothing until it is within {} ms",
                                                  fleet::kClockOffMax.count())));
    }
    if (versions.size() > 1)
      warn(fmt::format("nodes have different versions: {}", fmt::join(versions, ", ")));
    if (report_.nodes.empty()) warn("no node has ever run: start some with stanchion serve");
  }

  const fleet::ControlState& state_;
  const std::map<fleet::NodeName, Heard>& heard_;
  std::set<fleet::NodeName> alive_;
  FleetReport report_;
};

// "3 s ago", "2 h ago".
std::string ago(Duration time) {
  const std::int64_t seconds = std::max<std::int64_t>(0, time.count() / 1000);
  if (seconds < 120) return fmt::format("{} s ago", seconds);
  if (seconds < 7200) return fmt::format("{} min ago", seconds / 60);
  if (seconds < 172'800) return fmt::format("{} h ago", seconds / 3600);
  return fmt::format("{} days ago", seconds / 86'400);
}

std::string state_of(const NodeReport& node, Instant now) {
  if (!node.alive) return "heard " + ago(now - node.heard);
  std::string text = !node.ready ? "starting" : node.linked ? "ready" : "not linked";
  if (node.draining) text = "ending";
  return node.drained ? text + ", drained" : text;
}

using Row = std::vector<std::string>;

// Columns as wide as their widest cell.
std::string table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
    out += "  " + line + "\n";
  }
  return out;
}

json::object to_object(const NodeReport& node) {
  json::object out{{"node", node.name},       {"zone", node.zone},
                   {"address", node.address}, {"version", node.version},
                   {"alive", node.alive},     {"ready", node.ready},
                   {"ending", node.draining}, {"drained", node.drained},
                   {"linked", node.linked},   {"heard_millis", to_millis(node.heard)},
                   {"owned", node.owned},     {"followed", node.followed}};
  if (node.clock_offset) out["clock_offset_millis"] = node.clock_offset->count();
  return out;
}

json::object to_object(const ShardReport& shard) {
  json::array standbys;
  for (const ShardReport::Standby& standby : shard.standbys) {
    json::object one{{"node", standby.name}, {"alive", standby.alive}};
    if (standby.lag) one["lag"] = *standby.lag;
    standbys.push_back(std::move(one));
  }
  json::object out{{"shard", shard.index},
                   {"owner", shard.owner},
                   {"served", shard.served},
                   {"standbys", std::move(standbys)}};
  if (shard.entries) out["log_entries"] = *shard.entries;
  if (!shard.moving_to.empty()) out["moving_to"] = shard.moving_to;
  if (shard.stall) {
    out["stalled_since_millis"] = to_millis(shard.stall->since);
    out["stalled_reason"] = shard.stall->why;
  }
  return out;
}

}  // namespace

bool FleetReport::has_shard_without_owner() const {
  return std::ranges::any_of(shards, [](const ShardReport& shard) { return !shard.served; });
}

FleetReport make_report(const fleet::ControlState& state,
                        const std::map<fleet::NodeName, Heard>& heard,
                        const std::vector<std::optional<std::uint64_t>>& entries) {
  return Maker(state, heard).make(entries);
}

std::string to_text(const FleetReport& report, Instant now) {
  std::string out = fmt::format(
      "Fleet {}: {} shards, {} nodes{}\n", report.metadata.name, report.metadata.shards,
      report.nodes.size(), report.coordinator.empty() ? "" : ", coordinator " + report.coordinator);
  if (!report.nodes.empty()) {
    std::vector<Row> rows{
        {"node", "zone", "address", "version", "state", "clock", "owns", "follows"}};
    for (const NodeReport& node : report.nodes)
      rows.push_back({node.name, node.zone, node.address, node.version, state_of(node, now),
                      node.clock_offset ? fmt::format("{:+} ms", node.clock_offset->count()) : "-",
                      fmt::to_string(node.owned), fmt::to_string(node.followed)});
    out += "\n" + table(rows);
  }
  std::vector<Row> rows{{"shard", "owner", "standbys (records behind)", "log entries"}};
  for (const ShardReport& shard : report.shards) {
    std::vector<std::string> standbys;
    for (const ShardReport::Standby& standby : shard.standbys)
      standbys.push_back(fmt::format("{} ({})", standby.name,
                                     standby.lag     ? fmt::to_string(*standby.lag)
                                     : standby.alive ? "not following"
                                                     : "down"));
    std::string owner = shard.owner.empty() ? "-" : shard.owner;
    if (!shard.owner.empty() && !shard.served) owner += " (not serving)";
    if (!shard.moving_to.empty()) owner += ", to " + shard.moving_to;
    rows.push_back({fmt::to_string(shard.index), owner,
                    standbys.empty() ? "-" : fmt::format("{}", fmt::join(standbys, ", ")),
                    shard.entries ? fmt::to_string(*shard.entries) : "-"});
  }
  out += "\n" + table(rows);
  if (!report.warnings.empty()) out += "\n";
  for (const std::string& warning : report.warnings) out += "warning: " + warning + "\n";
  return out;
}

std::string to_json(const FleetReport& report) {
  json::array nodes, shards, warnings;
  for (const NodeReport& node : report.nodes) nodes.push_back(to_object(node));
  for (const ShardReport& shard : report.shards) shards.push_back(to_object(shard));
  for (const std::string& warning : report.warnings) warnings.push_back(json::string(warning));
  return json::serialize(json::object{{"fleet", report.metadata.name},
                                      {"id", fmt::format("{:016x}", report.metadata.id)},
                                      {"created_millis", to_millis(report.metadata.created)},
                                      {"format", report.metadata.format},
                                      {"coordinator", report.coordinator},
                                      {"nodes", std::move(nodes)},
                                      {"shards", std::move(shards)},
                                      {"warnings", std::move(warnings)}}) +
         "\n";
}

}  // namespace stanchion::fleet_admin
