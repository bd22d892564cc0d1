// The stores of a node's replicas. A replica may be closed and opened again while something still
// reads from its store, and closing a store takes time: so a store stays open until it is replaced
// by a copy of another node's.
//
//   SF1  A store is open at most once.
//   SF2  A store that is being replaced is either as it was, or absent, or the whole copy: a replica
//        without a store begins from the log, or with another copy.
//
// Any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "broker/data_directory.h"
#include "store/rocks_store.h"

namespace stanchion::fleet_node {

class ReplicaStores {
 public:
  // `data` must outlive the stores. Removes what an interrupted copy has left.
  explicit ReplicaStores(const broker::DataDirectory& data);
  ~ReplicaStores();

  // Waits while the store is being replaced.
  Result<std::shared_ptr<store::RocksStore>> open(ShardIndex shard);

  // Replaces the store by what `fetch` puts into a directory, which does not exist when it is called,
  // if that is a store of this shard. Fails if somebody has opened the store since `openings` was
  // taken: whoever asked for the copy has given up.
  using Fetch = std::function<Status(const std::string& path)>;
  Status replace(ShardIndex shard, std::uint64_t openings, const Fetch& fetch);
  // How many times the store was opened.
  std::uint64_t openings(ShardIndex shard);

  // Copies the store's last checkpoint into a directory that does not exist yet. Fails if the store is
  // not open.
  Status copy_to(ShardIndex shard, const std::string& path);
  // The same, beside the store; the copy is removed with the last pointer to its path.
  Result<std::shared_ptr<const std::string>> copy(ShardIndex shard);

 private:
  struct Place {
    std::shared_ptr<store::RocksStore> store;
    bool replacing = false;
    std::size_t open = 0;      // Stores of this shard that are not destroyed.
    std::uint64_t opened = 0;  // Calls of open().
  };

  Status close(ShardIndex shard);

  const broker::DataDirectory& data_;
  std::atomic<std::uint64_t> copies_{0};
  std::mutex mutex_;
  std::condition_variable closed_;
  std::vector<Place> places_;  // By shard. Guarded by mutex_.
};

}  // namespace stanchion::fleet_node
