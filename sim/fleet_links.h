// What connects the nodes of a simulated fleet: the control log, and connections between each two.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fleet/control_codec.h"
#include "fleet/control_log.h"
#include "fleet/transport.h"
#include "sim/shared_log.h"
#include "sim/world.h"

namespace stanchion::sim {

// The records that were appended to the control log, less those that were compacted.
class ControlRecords {
 public:
  void append(fleet::ControlRecord record) {
    last_[fleet::control_key(record)] = records_.size();
    records_.emplace_back(std::move(record));
    for (const auto& [who, arrived] : watchers_) arrived();
  }
  std::size_t size() const { return records_.size(); }
  bool has(const std::string& key) const { return last_.contains(key); }
  const fleet::ControlRecord& last(const std::string& key) const {
    return *records_[last_.at(key)];
  }
  // nullopt: it is gone.
  const std::optional<fleet::ControlRecord>& at(std::size_t i) const { return records_[i]; }
  // Of the first records, those go that have a later one with the same key.
  void compact(std::size_t first) {
    for (std::size_t i = 0; i < std::min(first, records_.size()); ++i)
      if (records_[i] && last_.at(fleet::control_key(*records_[i])) != i) records_[i].reset();
  }
  std::uint64_t watch(std::function<void()> arrived) {
    watchers_.emplace(++watches_, std::move(arrived));
    return watches_;
  }
  void ignore(std::uint64_t watch) { watchers_.erase(watch); }

 private:
  std::vector<std::optional<fleet::ControlRecord>> records_;
  std::map<std::string, std::size_t> last_;  // By key.
  std::uint64_t watches_ = 0;
  std::map<std::uint64_t, std::function<void()>> watchers_;
};

// One process's view of it.
class SimControlLog final : public fleet::ControlLog {
 public:
  // Trouble may end; `seed` is that of its own stream.
  SimControlLog(World& world, Owner owner, ControlRecords& records, const Uplink& uplink,
                const LogTrouble& trouble, std::uint64_t seed, const FleetRules& rules)
      : world_(world),
        owner_(owner),
        records_(records),
        uplink_(uplink),
        trouble_(trouble),
        random_(world.random().fork()),
        troubled_(seed),
        rules_(rules) {}
  ~SimControlLog() override {
    *alive_ = false;
    records_.ignore(watch_);
  }

  void follow(std::function<void()> arrived) override {
    arrived_ = std::move(arrived);
    caught_up_at_ = records_.size();
    watch_ = records_.watch([this] { arrive(way()); });
  }

  Status read(const std::function<void(const fleet::ControlRecord&)>& visit) override;
  bool has_caught_up() const override { return read_ >= caught_up_at_; }
  void append(fleet::ControlRecord record) override;

 private:
  Micros way() {
    return uplink_.departure(world_) - world_.now() + random_.between<Micros>(1, 3 * kMillisecond);
  }
  void arrive(Micros after) {
    world_.schedule(after, owner_, [this, alive = alive_] {
      if (*alive) arrived_();
    });
  }

  World& world_;
  const Owner owner_;
  ControlRecords& records_;
  const Uplink& uplink_;
  const LogTrouble& trouble_;
  Random random_;
  Random troubled_;  // A stream of its own.
  const FleetRules rules_;
  std::optional<fleet::ControlRecord> unread_;  // A beat that did not come by the log.
  std::function<void()> arrived_;
  std::uint64_t watch_ = 0;
  std::size_t read_ = 0;
  std::size_t caught_up_at_ = 0;
  Micros arrives_at_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// The connections between nodes. Of a cut each side learns after a while, by itself; what is under
// way then is lost, and nothing passes until both know. A side that knows has no connection.
class Network {
 public:
  struct End {
    Owner owner = kWorldOwner;  // The process that listens; kWorldOwner: none.
    std::function<void(const fleet::NodeName& from, fleet::Frame frame)> take;
    std::function<void(const fleet::NodeName& node)> broke;
    std::function<void()> made;
  };

  // Trouble may end; `seed` is that of its own stream.
  Network(World& world, const FleetRules& rules, const LogTrouble& trouble, std::uint64_t seed)
      : world_(world),
        rules_(rules),
        trouble_(trouble),
        random_(world.random().fork()),
        troubled_(seed) {}

  void listen(const fleet::NodeName& name, End end);
  // The process has died: the others notice at once.
  void hang_up(const fleet::NodeName& name);
  void cut(const fleet::NodeName& name, Micros time);
  // The same between two nodes only. The others hear nothing of it, nor when it is over.
  void cut(const fleet::NodeName& one, const fleet::NodeName& other, Micros time, Random& random);
  // Whether nothing passes between them.
  bool are_apart(const fleet::NodeName& one, const fleet::NodeName& other) const {
    return is_cut(one) || is_cut(other) || is_cut(one, other);
  }

  // False: there is no connection, and the sender knows it.
  bool send(const fleet::NodeName& from, const fleet::NodeName& to, const fleet::Frame& frame);
  // Whom it can send to, as far as it knows.
  std::set<fleet::NodeName> linked_with(const fleet::NodeName& name);

 private:
  // From one node to another; in the other direction there is another.
  struct Link {
    std::uint64_t connection = 0;  // Frames of an earlier one are lost.
    Micros arrives_at = 0;
    bool known_cut = false;  // To the sender, while there is a cut.
  };

  void pass(const fleet::NodeName& from, const fleet::NodeName& to, const End& end,
            const fleet::Frame& frame);
  void tell_broken(const fleet::NodeName& side, const fleet::NodeName& other, Micros after);
  bool is_cut(const fleet::NodeName& name) const;
  bool is_cut(const fleet::NodeName& one, const fleet::NodeName& other) const;
  void cut_link(const fleet::NodeName& from, const fleet::NodeName& to, Micros known_after);

  World& world_;
  const FleetRules rules_;
  const LogTrouble& trouble_;
  Random random_;
  Random troubled_;  // A stream of its own.
  std::map<fleet::NodeName, End> ends_;
  std::map<fleet::NodeName, Micros> cut_until_;
  std::map<std::pair<fleet::NodeName, fleet::NodeName>, Micros> pairs_cut_until_;  // In order.
  std::map<std::pair<fleet::NodeName, fleet::NodeName>, Link> links_;
};

class SimTransport final : public fleet::Transport {
 public:
  // The first programs say nothing of links.
  SimTransport(Network& network, fleet::NodeName name, bool tells_links)
      : network_(network), name_(std::move(name)), tells_links_(tells_links) {}
  bool send(const fleet::NodeName& to, fleet::Frame frame) override {
    return network_.send(name_, to, frame);
  }
  std::optional<fleet::Links> links() override {
    if (!tells_links_) return std::nullopt;
    return fleet::Links{network_.linked_with(name_), {}};
  }

 private:
  Network& network_;
  const fleet::NodeName name_;
  const bool tells_links_;
};

}  // namespace stanchion::sim
