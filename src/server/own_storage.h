// The data directory of a server by itself, with everything in it that is open.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backup/online_backup.h"
#include "base/result.h"
#include "broker/broker.h"
#include "broker/data_directory.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "os/file.h"
#include "settings/settings.h"

namespace stanchion::server {

class OwnStorage {
 public:
  using Warn = std::function<void(const std::string&)>;

  // Everything must outlive the storage, which must outlive its shards' journals and stores.
  OwnStorage(const settings::ServerSettings& settings, os::Entropy& entropy, os::Clock& clock,
             Warn warn)
      : settings_(settings), entropy_(entropy), clock_(clock), warn_(std::move(warn)) {}

  // Takes the data directory, or makes a new one; none if everything is in memory. Returns the
  // number of shards, for each of which open() may be called.
  Result<std::uint32_t> open_directory(std::uint32_t shards_if_new);
  Result<broker::Broker::Storage> open(ShardIndex shard);

  // How much of the disk is left to others.
  std::uint64_t left_free() const;

  // For a broker that has started, and is destroyed later than what this returns.
  std::unique_ptr<backup::OnlineBackup> make_backup(broker::Broker& broker) {
    return std::make_unique<backup::OnlineBackup>(*root_,
                                                  backup::save_all(*root_, broker, stores_));
  }

 private:
  const settings::ServerSettings& settings_;
  os::Entropy& entropy_;
  os::Clock& clock_;
  const Warn warn_;
  std::uint32_t count_ = 0;
  // In the order in which they must be destroyed, last first.
  std::unique_ptr<os::Directory> root_;
  std::unique_ptr<broker::DataDirectory> data_;
  std::vector<std::unique_ptr<os::Directory>> shards_;
  backup::Stores stores_;
};

}  // namespace stanchion::server
