#include "fleet_node/kafka_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "fleet/coordinator.h"
#include "fleet/limits.h"
#include "fleet/linkage.h"
#include "fleet_admin/fleet_admin.h"
#include "fleet_admin/past_note.h"
#include "fleet_admin/topics.h"
#include "fleet_node/node_backup.h"
#include "journal/log_entry.h"
#include "kafka/admin.h"
#include "kafka/kafka_shared_journal.h"
#include "os/real_directory.h"

namespace stanchion::fleet_node {
namespace {

// Own beats that have not come back for so long mean that Kafka cannot be reached.
constexpr Duration kCutOffAfter = std::chrono::seconds(3);
// How long a backup waits until Kafka says where a log ends.
constexpr std::chrono::seconds kAskForEnd(10);

}  // namespace

KafkaNode::KafkaNode(KafkaNodeOptions options, os::Time& time, os::Entropy& entropy,
                     broker::Background& background, Events events)
    : options_(std::move(options)),
      time_(time),
      entropy_(entropy),
      background_(background),
      events_(std::move(events)) {
  snapshot_.not_ready = "it has not read the fleet's decisions yet";
}

KafkaNode::~KafkaNode() = default;

Result<std::unique_ptr<KafkaNode>> KafkaNode::open(KafkaNodeOptions options, os::Time& time,
                                                   os::Entropy& entropy,
                                                   broker::Background& background, Events events) {
  options.kafka.warn = events.warning;
  std::unique_ptr<KafkaNode> node(
      new KafkaNode(std::move(options), time, entropy, background, std::move(events)));
  RETURN_IF_FAILED(node->open_logs());
  return node;
}

Status KafkaNode::open_logs() {
  auto admin = fleet_admin::FleetAdmin::open(options_.kafka, options_.fleet);
  if (!admin) return std::unexpected(std::move(admin).error());
  RETURN_IF_FAILED((*admin)->read());
  const fleet::FleetMetadata metadata = (*admin)->metadata();
  kafka::KafkaSettings kafka = options_.kafka;
  kafka.read_ahead_max = fleet::read_ahead_bytes(options_.memory_in_all / metadata.shards);
  kafka.verifies_batches = false;
  auto connection = kafka::KafkaConnection::open(kafka);
  if (!connection) return std::unexpected(std::move(connection).error());
  connection_ = std::move(*connection);
  kafka.verifies_batches = true;
  auto control_connection = kafka::KafkaConnection::open(kafka);
  if (!control_connection) return std::unexpected(std::move(control_connection).error());
  control_connection_ = std::move(*control_connection);
  RETURN_IF_FAILED(verify_topics(metadata.shards));
  fleet_id_ = metadata.id;
  RETURN_IF_FAILED(open_directory(metadata));
  control_ = std::make_unique<KafkaControlLog>(*connection_, *control_connection_, options_.fleet);
  make_node();
  return {};
}

Status KafkaNode::verify_topics(std::uint32_t shards) {
  kafka::KafkaAdmin admin(*connection_);
  const std::tuple<std::string, int, kafka::TopicUse> topics[] = {
      {fleet_admin::log_topic(options_.fleet), static_cast<int>(shards), kafka::TopicUse::kLogs},
      {fleet_admin::control_topic(options_.fleet), 1, kafka::TopicUse::kControl}};
  for (const auto& [topic, partitions, use] : topics) {
    const auto slow = admin.verify_topic(topic, partitions, options_.one_copy, use);
    if (!slow) return std::unexpected(slow.error());
    for (const std::string& warning : *slow) events_.warning(warning);
  }
  return {};
}

Status KafkaNode::open_directory(const fleet::FleetMetadata& metadata) {
  auto root = os::open_real_directory(options_.data);
  if (!root) return std::unexpected(std::move(root).error());
  root_ = std::move(*root);
  auto data = broker::DataDirectory::open_for_fleet(*root_, options_.fleet, metadata.shards,
                                                    fleet_admin::directory_id(metadata.id));
  if (!data) return std::unexpected(std::move(data).error());
  data_ = std::make_unique<broker::DataDirectory>(std::move(*data));
  stores_ = std::make_unique<ReplicaStores>(*data_);
  return {};
}

Status KafkaNode::start(net::ReactorPool& pool, std::vector<broker::Loop*> loops) {
  loop_ = loops.front();
  const std::uint64_t process = entropy_.u64();
  auto links = link::TcpTransport::listen(pool, {.fleet = options_.fleet,
                                                 .shards = shard_count(),
                                                 .node = options_.node,
                                                 .process = process,
                                                 .host = options_.internal_host,
                                                 .port = options_.internal_port,
                                                 .security = options_.security});
  if (!links) return fail(fmt::format("fleet.internal: {}", links.error().message));
  links_ = std::move(*links);
  links_->start({.take = [this](const fleet::NodeName& from,
                                fleet::Frame frame) { node_->take(from, std::move(frame)); },
                 .broke = [this](const fleet::NodeName& node) { node_->connection_broke(node); },
                 .made =
                     [this](const fleet::NodeName& node) {
                       events_.info(fmt::format("connected with the node {}", node));
                       node_->connection_made();
                     },
                 .serve_copy = [this](ShardIndex shard, const link::SendDirectory& send) -> Status {
                   const auto copy = stores_->copy(shard);
                   if (!copy) return std::unexpected(copy.error());
                   return send(**copy);
                 },
                 .log = [this](const std::string& line) { events_.warning(line); }});
  node_->start(std::move(loops));
  return {};
}

void KafkaNode::make_node() {
  broker::KeeperOptions keeping = options_.keeping;
  keeping.memory /= shard_count();
  keeping.disk_shared_by = shard_count();
  const engine::MemoryOptions memory = broker::divide(options_.memory, keeping.memory);
  node_ = std::make_unique<fleet::Node>(
      fleet::NodeOptions{
          .name = options_.node,
          .zone = options_.zone,
          .address = fmt::format("{}:{}", options_.internal_host, options_.internal_port),
          .version = STANCHION_VERSION,
          .format = journal::kLogEntryVersion,
          .shards = shard_count(),
          .strict = options_.strict,
          .queues = options_.queues,
          .keeping = keeping,
          .memory = memory,
          .write_timeout = options_.write_timeout,
          .waiting_bytes = waiting_bytes()},
      *control_, static_cast<fleet::Transport&>(*this), time_, entropy_, background_,
      fleet::Node::Outside{
          .open = [this](ShardIndex shard) { return open_shard(shard); },
          .copy_store = [this](ShardIndex shard) { return copy_store(shard); },
          .not_copied =
              [this](ShardIndex shard, const Failure& why) {
                events_.warning(
                    fmt::format("the store of shard {} cannot be copied from another node yet: {}",
                                shard.value(), why.message));
              },
          .note_past =
              [this](ShardIndex shard, bool is_other) {
                return is_other ? fleet_admin::write_past_note(*data_, shard)
                                : fleet_admin::remove_past_note(*data_, shard);
              },
          .gave_up =
              [this](ShardIndex shard, const Failure& why) {
                events_.warning(fmt::format("shard {} is given up here, and tried again later: {}",
                                            shard.value(), why.message));
              },
          .said =
              [this](ShardIndex shard, const std::string& what) {
                events_.info(fmt::format("shard {} {}", shard.value(), what));
              },
          .stalled =
              [this](ShardIndex shard, const fleet::Stalls::Change& change,
                     const fleet::Beat::Stall* stall) {
                const std::string line = fleet::line_about(shard, change, stall);
                change.news == fleet::Stalls::News::kBegan ? events_.warning(line)
                                                           : events_.info(line);
              },
          .looked_around =
              [this](const fleet::ControlState& state,
                     const fleet::Node::Outside::Replicas& replicas) { look_at(state, replicas); },
          .failed = events_.failed,
          .unpack_guard = events_.unpack_guard});
}

std::size_t KafkaNode::waiting_bytes() const {
  return fleet::waiting_bytes(options_.memory_in_all / shard_count());
}

// In the background.
Result<fleet::Replica::Storage> KafkaNode::open_shard(ShardIndex shard) {
  const auto other_past = fleet_admin::has_past_note(*data_, shard);
  if (!other_past) return std::unexpected(other_past.error());
  auto store = stores_->open(shard);
  if (!store) return std::unexpected(std::move(store).error());
  const kafka::ShardLog log{
      .partition = fleet_admin::log_partition(options_.fleet, shard),
      .fleet = fleet_id_,
      .shard = shard,
      .node = fleet_admin::node_number(options_.node),
      .is_skipped = [this, shard](journal::LogOffset offset) { return is_skipped(shard, offset); }};
  return fleet::Replica::Storage{
      std::make_unique<kafka::KafkaSharedJournal>(
          *connection_, log, entropy_,
          kafka::KafkaJournalOptions{.unwritten_size_max = waiting_bytes(),
                                     .stalled_after = fleet::kStalledAfter}),
      std::move(*store), *other_past};
}

// Any thread.
bool KafkaNode::is_skipped(ShardIndex shard, journal::LogOffset offset) const {
  const std::lock_guard lock(mutex_);
  const auto found = snapshot_.skipped.find(shard);
  return found != snapshot_.skipped.end() && found->second.contains(offset.value());
}

// In the background.
Status KafkaNode::copy_store(ShardIndex shard) {
  std::vector<std::string> addresses;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = snapshot_.stores.find(shard); found != snapshot_.stores.end())
      addresses = found->second;
  }
  if (addresses.empty()) return fail("no other live node has a store of it");
  Status last;
  const std::uint64_t openings = stores_->openings(shard);
  for (const std::string& address : addresses) {
    last = stores_->replace(shard, openings, [&](const std::string& path) {
      return links_->copy_store(address, shard, path);
    });
    if (last) {
      events_.info(fmt::format("copied the store of shard {} from {}", shard.value(), address));
      return {};
    }
  }
  return last;
}

// On the first loop.
void KafkaNode::look_at(const fleet::ControlState& state,
                        const fleet::Node::Outside::Replicas& replicas) {
  const SteadyInstant now = time_.read().steady;
  std::map<fleet::NodeName, std::string> peers;
  FleetSnapshot snapshot;
  std::map<ShardIndex, std::vector<std::pair<Position, std::string>>> stores;
  for (const auto& [name, node] : state.nodes()) {
    if (name == options_.node) {
      for (const auto& [shard, reached] : node.beat.reached)
        snapshot.served += reached.service != 0;
      continue;
    }
    peers[name] = node.beat.address;
    if (!state.is_alive(name, now)) continue;
    if (!node.beat.draining && !state.is_drained(name)) snapshot.nobody_takes = false;
    for (const auto& [shard, reached] : node.beat.reached)
      if (reached.saved > Position()) stores[shard].emplace_back(reached.saved, node.beat.address);
  }
  for (auto& [shard, found] : stores) {
    std::ranges::sort(found, std::greater());
    for (auto& [saved, address] : found) snapshot.stores[shard].push_back(std::move(address));
  }
  const fleet::ControlState::Node* self = state.find(options_.node);
  if (!control_->has_caught_up()) {
    snapshot.not_ready = "it has not read the fleet's decisions yet";
  } else if (self == nullptr || now - self->heard > kCutOffAfter) {
    snapshot.not_ready = "it has no connection to Kafka";
  } else {
    for (std::uint32_t i = 0; i < state.shard_count(); ++i)
      if (!state.shard(ShardIndex(i)).assignment) snapshot.not_ready = "shards have no owners yet";
    if (!fleet::well_linked(state, now).contains(options_.node) &&
        state.is_alive(options_.node, now))
      snapshot.not_ready = "it is not linked with most other nodes: " +
                           fleet::why_apart(state, options_.node, fleet::alive_nodes(state, now));
  }
  snapshot.figures.replicas = replicas;
  snapshot.figures.in_touch = control_->has_caught_up() && state.is_alive(options_.node, now);
  for (const auto& [name, node] : state.nodes())
    snapshot.figures.nodes_alive += state.is_alive(name, now);
  for (std::uint32_t i = 0; i < state.shard_count(); ++i) {
    const auto& skipped = state.shard(ShardIndex(i)).skipped;
    if (!skipped.empty()) snapshot.skipped.emplace(ShardIndex(i), skipped);
  }
  snapshot.without_owner = fleet::unserved_shards(state, now);
  snapshot.figures.shards_without_owner = snapshot.without_owner.size();
  snapshot.stalled = fleet::stalled_shards(state, now);
  snapshot.figures.shards_stalled = node_->stalls().all().size();
  if (self != nullptr) snapshot.given_up = self->beat.given_up;
  links_->set_peers(peers);
  const std::lock_guard lock(mutex_);
  snapshot_ = std::move(snapshot);
  looked_.notify_all();
}

void KafkaNode::give_shards_away(std::chrono::milliseconds at_most) {
  loop_->post([this] { node_->drain(); });
  std::unique_lock lock(mutex_);
  looked_.wait_for(lock, at_most,
                   [this] { return snapshot_.served == 0 || snapshot_.nobody_takes; });
}

KafkaNode::Figures KafkaNode::figures() const {
  const std::lock_guard lock(mutex_);
  return snapshot_.figures;
}

std::string KafkaNode::why_not_ready() const {
  const std::lock_guard lock(mutex_);
  return snapshot_.not_ready;
}

std::map<ShardIndex, std::string> KafkaNode::given_up() const {
  const std::lock_guard lock(mutex_);
  return snapshot_.given_up;
}

std::map<ShardIndex, std::string> KafkaNode::without_owner() const {
  const std::lock_guard lock(mutex_);
  return snapshot_.without_owner;
}

std::map<ShardIndex, fleet::StalledShard> KafkaNode::stalled() const {
  const std::lock_guard lock(mutex_);
  return snapshot_.stalled;
}

void KafkaNode::back_up(const std::string& into, std::move_only_function<void(Status)> done) {
  std::vector<journal::LogOffset> ends;
  for (std::uint32_t i = 0; i < shard_count(); ++i) {
    const auto end =
        connection_->end_of(fleet_admin::log_partition(options_.fleet, ShardIndex(i)), kAskForEnd);
    if (!end)
      return done(fail(end.error().message +
                       ". Try again when it does, or stop the node and back up its directory."));
    ends.push_back(*end);
  }
  NodeBackup::begin(*node_, *stores_, ends, into, std::move(done));
}

void KafkaNode::stop() {
  if (links_) links_->stop();
}

}  // namespace stanchion::fleet_node
