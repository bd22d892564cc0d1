#include "fleet_node/node_backup.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "broker/data_directory.h"

namespace stanchion::fleet_node {

namespace fs = std::filesystem;

// Told once. A replica that is closed forgets whoever waits for its copy, and then it is a failure;
// whoever still copies holds this, too, so that is told afterwards.
class NodeBackup::Outcome {
 public:
  Outcome(std::shared_ptr<NodeBackup> backup, ShardIndex shard)
      : backup_(std::move(backup)), shard_(shard) {}
  Outcome(Outcome&&) = delete;
  ~Outcome() { backup_->copied(shard_, status_); }
  void set(Status status) { status_ = std::move(status); }

 private:
  const std::shared_ptr<NodeBackup> backup_;
  const ShardIndex shard_;
  Status status_ = fail("the node has closed it meanwhile: try again in a moment");
};

void NodeBackup::begin(fleet::Node& node, ReplicaStores& stores,
                       const std::vector<journal::LogOffset>& ends, std::string into, Done done) {
  const std::shared_ptr<NodeBackup> backup(
      new NodeBackup(node, stores, ends.size(), std::move(into), std::move(done)));
  for (std::uint32_t i = 0; i < ends.size(); ++i)
    node.broker().loop_of(ShardIndex(i)).post([backup, i, end = ends[i]] {
      backup->copy(ShardIndex(i), end);
    });
}

std::string NodeBackup::path_of(ShardIndex shard) const {
  return fmt::format("{}/{}", into_, broker::shard_name(shard));
}

// On the shard's loop.
void NodeBackup::copy(ShardIndex shard, journal::LogOffset end) {
  auto outcome = std::make_shared<Outcome>(shared_from_this(), shard);
  std::error_code error;
  fs::create_directories(path_of(shard), error);
  if (error)
    return outcome->set(
        fail(fmt::format("cannot make {}: {}", path_of(shard), error.message()), error.value()));
  const fleet::Replica* replica = node_.replica(shard);
  if (replica == nullptr || replica->is_closed()) return outcome->set({});
  any_ = true;
  node_.back_up(shard, end,
                {.copy =
                     [outcome, self = shared_from_this(), shard](Position) {
                       return self->stores_.copy_to(shard, self->path_of(shard) + "/store");
                     },
                 .decided = [] {},
                 .done = [outcome](Status status) { outcome->set(std::move(status)); }});
}

// Any thread.
void NodeBackup::copied(ShardIndex shard, const Status& status) {
  if (!status) {
    const std::lock_guard lock(mutex_);
    if (outcome_)
      outcome_ = fail(fmt::format("shard {}: {}", shard.value(), status.error().message),
                      status.error().os_error);
  }
  if (uncopied_.fetch_sub(1) > 1) return;
  done_(any_ || !outcome_ ? std::move(outcome_) : fail("this node has no shards"));
}

}  // namespace stanchion::fleet_node
