#include "backup/online_backup.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "broker/data_directory.h"
#include "journal/segment_log.h"
#include "os/entropy.h"
#include "os/real_directory.h"
#include "store/identity.h"

namespace stanchion::backup {
namespace {

namespace fs = std::filesystem;

std::string shard_path(const std::string& root, ShardIndex shard) {
  return fmt::format("{}/{}", root, broker::shard_name(shard));
}

// The ids that a shard's journal and store carry.
struct ShardIdentity {
  journal::ShardOf journal;
  std::string store;
};

// A shard as it is at `position`: its store, and a journal that continues after that position.
Status copy_shard(const store::RocksStore& store, const ShardIdentity& identity, Position position,
                  const std::string& path) {
  RETURN_IF_FAILED(store.backup_to(path + "/store"));
  auto copy = os::open_existing_directory(path + "/store");
  if (!copy) return std::unexpected(std::move(copy).error());
  RETURN_IF_FAILED(store::write_identity(**copy, identity.store));
  auto directory = os::open_existing_directory(path);
  if (!directory) return std::unexpected(std::move(directory).error());
  os::SystemEntropy entropy;
  return journal::SegmentLog::found(**directory, identity.journal, position.next(), entropy);
}

}  // namespace

OnlineBackup::OnlineBackup(os::Directory& data, Save save)
    : data_(data),
      save_(std::move(save)),
      scratch_(fmt::format("{}/{}", data.path(), broker::kBackupScratchName)) {
  std::error_code ignored;  // A failure here shows when a backup is made, which checks again.
  fs::remove_all(scratch_, ignored);
}

void OnlineBackup::begin(std::string to, Done done) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return done(fail("the server is stopping"));
  if (busy_) return done(fail("a backup is under way already"));
  busy_ = true;
  if (thread_.joinable()) thread_.join();  // It has nothing left to do.
  thread_ = std::thread([this, to = std::move(to), done = std::move(done)]() mutable {
    const Status status = run(to);
    {
      const std::lock_guard over(mutex_);
      busy_ = false;
    }
    done(status);
  });
}

void OnlineBackup::stop() {
  std::thread thread;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    thread = std::move(thread_);
  }
  {
    const std::lock_guard lock(saving_->mutex);
    saving_->stopping = true;
  }
  saving_->changed.notify_all();
  if (thread.joinable()) thread.join();
}

Status OnlineBackup::may_go_on() const {
  if (stopping_) return fail("the server is stopping");
  return {};
}

Status OnlineBackup::run(const std::string& to) {
  auto copy = DataCopy::create(data_.path(), to, [this] { return may_go_on(); });
  if (!copy) return std::unexpected(std::move(copy).error());
  Status status = save_shards();
  if (status) status = copy_shards(*copy);
  if (status) status = copy->finish(data_);
  if (!status) copy->discard();
  // If shards are still being saved, the next start removes the files that they leave.
  std::error_code ignored;
  if (!stopping_) fs::remove_all(scratch_, ignored);
  return status;
}

Status OnlineBackup::save_shards() {
  std::error_code error;
  fs::remove_all(scratch_, error);
  if (error)
    return fail(fmt::format("cannot empty {}: {}", scratch_, error.message()), error.value());
  {
    const std::lock_guard lock(saving_->mutex);
    saving_->outcome.reset();
  }
  save_(scratch_, [saving = saving_](Status status) {
    {
      const std::lock_guard lock(saving->mutex);
      saving->outcome = std::move(status);
    }
    saving->changed.notify_all();
  });
  std::unique_lock lock(saving_->mutex);
  saving_->changed.wait(lock, [this] { return saving_->outcome || saving_->stopping; });
  return saving_->outcome ? *saving_->outcome : may_go_on();
}

Status OnlineBackup::copy_shards(DataCopy& copy) {
  const auto data = broker::DataDirectory::look_at(data_);
  if (!data) return std::unexpected(data.error());
  for (std::uint32_t i = 0; i < data->shard_count(); ++i)
    RETURN_IF_FAILED(copy.add_shard(ShardIndex(i), shard_path(scratch_, ShardIndex(i))));
  return {};
}

OnlineBackup::Save save_all(os::Directory& root, broker::Broker& broker, Stores stores) {
  return [&root, &broker, stores = std::move(stores)](const std::string& scratch,
                                                      OnlineBackup::Saved saved) {
    const auto data = broker::DataDirectory::look_at(root);
    if (!data) return saved(std::unexpected(data.error()));
    std::vector<ShardIdentity> identities;
    for (std::uint32_t i = 0; i < stores.size(); ++i)
      identities.push_back({data->shard_of(ShardIndex(i)), data->store_identity(ShardIndex(i))});
    broker.back_up(
        [stores, scratch, identities](ShardIndex shard, Position position) {
          return copy_shard(*stores[shard.value()], identities[shard.value()], position,
                            shard_path(scratch, shard));
        },
        std::move(saved));
  };
}

}  // namespace stanchion::backup
