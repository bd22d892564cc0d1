// Backups of a running server, one at a time, on a thread of their own.
//
//   every shard ─ checkpoint ─▶ DATA/backup.tmp: hard links, made between two checkpoints
//                                   └─▶ copied to where the backup goes, while the server goes on
//
// So a slow disk at the destination delays only the backup. How the shards are saved depends on what
// the server is: by itself, see save_all(), or a node of a fleet.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backup/data_copy.h"
#include "base/result.h"
#include "broker/broker.h"
#include "os/file.h"
#include "store/rocks_store.h"

namespace stanchion::backup {

class OnlineBackup {
 public:
  // Makes a directory for each shard in `scratch`, which does not exist yet, and calls the other, on
  // any thread, when nothing is written there any more.
  using Saved = std::move_only_function<void(Status)>;
  using Save = std::function<void(const std::string& scratch, Saved saved)>;

  // `data` must outlive this object. Removes what an interrupted backup of an earlier process left
  // there.
  OnlineBackup(os::Directory& data, Save save);
  ~OnlineBackup() { stop(); }

  using Done = std::move_only_function<void(const Status&)>;
  // Any thread. `done` is called here if a backup is already under way, else on another thread.
  void begin(std::string to, Done done);

  // Makes the backup under way fail, and refuses new ones. Must be called while the loops still
  // run.
  void stop();

 private:
  // Shared with whoever saves, who may hold it longer than a stopped backup lasts.
  struct Saving {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Status> outcome;
    bool stopping = false;
  };

  Status run(const std::string& to);
  Status copy_shards(DataCopy& copy);
  Status save_shards();
  Status may_go_on() const;

  os::Directory& data_;
  const Save save_;
  const std::string scratch_;  // DATA/backup.tmp
  const std::shared_ptr<Saving> saving_ = std::make_shared<Saving>();

  std::mutex mutex_;
  std::thread thread_;  // Guarded by mutex_.
  bool busy_ = false;   // Guarded by mutex_.
  std::atomic<bool> stopping_{false};
};

using Stores = std::vector<std::shared_ptr<store::RocksStore>>;  // One for each shard.

// All shards of a server by itself, as of one moment. The broker must be started, and it and `data`
// outlive every backup.
OnlineBackup::Save save_all(os::Directory& data, broker::Broker& broker, Stores stores);

}  // namespace stanchion::backup
