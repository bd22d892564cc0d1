// A node of a real fleet: fleet::Node with its logs in Kafka, its links to the other nodes, and the
// stores of its replicas in a data directory.
//
//   Kafka: control topic ─▶ KafkaControlLog ─┐         ┌─▶ KafkaSharedJournal ─▶ Kafka: log topic
//   other nodes ◀─▶ TcpTransport ────────────┴─▶ Node ─┴─▶ ReplicaStores ─▶ the data directory
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "broker/background.h"
#include "broker/broker.h"
#include "broker/data_directory.h"
#include "fleet/node.h"
#include "fleet/stalls.h"
#include "fleet_node/kafka_control_log.h"
#include "fleet_node/replica_stores.h"
#include "kafka/connection.h"
#include "kafka/settings.h"
#include "link/tcp_transport.h"
#include "net/reactor.h"
#include "os/entropy.h"
#include "os/file.h"
#include "os/timekeeper.h"

namespace stanchion::fleet_node {

struct KafkaNodeOptions {
  std::string fleet;
  kafka::KafkaSettings kafka;
  bool one_copy = false;
  std::string node;
  std::string zone;
  std::string internal_host;
  std::uint16_t internal_port = 0;
  link::LinkSecurity security;
  std::string data;
  bool strict = false;
  broker::QueueLimits queues{};
  broker::KeeperOptions keeping{};  // For all shards together.
  engine::MemoryOptions memory{};
  std::size_t memory_in_all = 0;  // server.memory
  Duration write_timeout = fleet::kWriteTimeout;
};

class KafkaNode final : private fleet::Transport {
 public:
  struct Events {
    std::function<void(std::string_view)> info;
    std::function<void(std::string_view)> warning;
    std::function<void(const Failure&)> failed;  // The process must end. Any thread.
    broker::UnpackGuard unpack_guard;            // For requests of other nodes.
  };

  // Waits for the brokers, and fails if the fleet was not founded, or its topics could lose data.
  // Everything must outlive the node; the background must end before it.
  static Result<std::unique_ptr<KafkaNode>> open(KafkaNodeOptions options, os::Time& time,
                                                 os::Entropy& entropy,
                                                 broker::Background& background, Events events);
  ~KafkaNode() override;

  // When the reactors run; `loops` are theirs.
  Status start(net::ReactorPool& pool, std::vector<broker::Loop*> loops);

  // Any thread: gives the shards to other nodes, and returns when all are given away or the time is
  // over. The loops must run.
  void give_shards_away(std::chrono::milliseconds at_most);

  // On a thread that may wait for Kafka: copies what this node has of each shard into directories in
  // `into`, which does not exist yet; empty ones for shards that it does not have. `fleet rebuild`
  // takes such a copy with the fleet's stanchion.meta. One at a time; `done` is called on any thread.
  void back_up(const std::string& into, std::move_only_function<void(Status)> done);
  os::Directory& directory() { return *root_; }

  // Before the reactors stop.
  void stop();

  // Any thread: why this node should get no requests yet; empty: it should.
  std::string why_not_ready() const;
  // Shards that this node should follow or serve and cannot, with the reason; and those that nobody
  // serves, with the reason if it is known. Any thread.
  std::map<ShardIndex, std::string> given_up() const;
  std::map<ShardIndex, std::string> without_owner() const;
  // Shards whose owners are alive, but cannot write their logs.
  std::map<ShardIndex, fleet::StalledShard> stalled() const;

  broker::Broker& broker() { return node_->broker(); }
  std::uint32_t shard_count() const { return data_->shard_count(); }
  // See fleet::waiting_bytes().
  std::size_t waiting_bytes() const;

  // Any thread, as of a moment ago.
  struct Figures {
    bool in_touch = false;  // It reads in the control log what it has just written there.
    std::size_t nodes_alive = 0;
    std::size_t shards_without_owner = 0;
    std::size_t shards_stalled = 0;  // Of those that this node owns.
    fleet::Node::Outside::Replicas replicas;
  };
  Figures figures() const;
  const fleet::Router::Statistics& routed() const { return node_->router().statistics(); }
  const std::string& name() const { return options_.node; }

 private:
  // What the background and the readers of health need of the control log's state.
  struct FleetSnapshot {
    std::map<ShardIndex, std::vector<std::string>> stores;  // Addresses, the best store first.
    std::map<ShardIndex, std::set<std::uint64_t>> skipped;  // Offsets of logs.
    std::string not_ready;
    std::map<ShardIndex, std::string> given_up;  // By this node.
    std::map<ShardIndex, std::string> without_owner;
    std::map<ShardIndex, fleet::StalledShard> stalled;
    std::size_t served = 0;    // Shards that are served here.
    bool nobody_takes = true;  // No other node is alive that may take shards: all stop, too.
    Figures figures;
  };

  KafkaNode(KafkaNodeOptions options, os::Time& time, os::Entropy& entropy,
            broker::Background& background, Events events);

  bool send(const fleet::NodeName& to, fleet::Frame frame) override {
    return links_->send(to, std::move(frame));
  }
  std::optional<fleet::Links> links() override { return links_->links(); }

  Status open_logs();
  void make_node();
  Status verify_topics(std::uint32_t shards);
  Status open_directory(const fleet::FleetMetadata& metadata);
  Result<fleet::Replica::Storage> open_shard(ShardIndex shard);
  Status copy_store(ShardIndex shard);
  bool is_skipped(ShardIndex shard, journal::LogOffset offset) const;
  void look_at(const fleet::ControlState& state, const fleet::Node::Outside::Replicas& replicas);

  const KafkaNodeOptions options_;
  os::Time& time_;
  os::Entropy& entropy_;
  broker::Background& background_;
  const Events events_;
  std::uint64_t fleet_id_ = 0;
  std::unique_ptr<os::Directory> root_;
  std::unique_ptr<broker::DataDirectory> data_;
  std::unique_ptr<ReplicaStores> stores_;
  std::unique_ptr<kafka::KafkaConnection> connection_;          // Writes everything, reads shards.
  std::unique_ptr<kafka::KafkaConnection> control_connection_;  // Reads the control log.
  std::unique_ptr<KafkaControlLog> control_;
  std::unique_ptr<link::TcpTransport> links_;  // Once it has started.
  std::unique_ptr<fleet::Node> node_;
  broker::Loop* loop_ = nullptr;  // The first.
  mutable std::mutex mutex_;
  std::condition_variable looked_;
  FleetSnapshot snapshot_;  // Guarded by mutex_.
};

}  // namespace stanchion::fleet_node
