#include "store/rocks_store.h"

#include <fcntl.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/utilities/checkpoint.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "os/real_directory.h"
#include "store/guarded_file_system.h"
#include "store/identity.h"
#include "store/incoming_table.h"
#include "store/manifest_check.h"
#include "store/reclaimer.h"
#include "store/rocks_setup.h"

namespace stanchion::store {
namespace {

// Kept free when a commit writes to the manifest, which is the one place where a full disk does
// harm.
constexpr std::uint64_t kFreeSpaceMin = std::uint64_t{1} << 20;
// The same for files that may be opened.
constexpr std::size_t kFreeFilesMin = 16;

// With less free space than this, erased space is reclaimed soon rather than cheaply.
constexpr std::uint64_t kLowSpace = std::uint64_t{256} << 20;

// A scan is for a few hundred messages: this much compressed, or a few times as much.
constexpr std::size_t kScanReadahead = std::size_t{64} << 10;

// Up to this many erased ranges of a batch are looked up first: a range that covers nothing needs
// no tombstone. Each lookup costs a seek.
constexpr std::size_t kRangesLookedUp = 256;

// A store in use loses files while it is being opened; the next attempt sees a newer state.
constexpr int kReadOnlyAttempts = 5;

// Whether this process may open some more files.
bool may_open_files() {
  std::array<int, kFreeFilesMin> files{};
  std::size_t opened = 0;
  while (opened < files.size()) {
    files[opened] = ::open("/", O_PATH | O_CLOEXEC);
    if (files[opened] < 0) break;
    ++opened;
  }
  const bool enough = opened == files.size();
  while (opened > 0) ::close(files[--opened]);
  return enough;
}

Status make_incoming(os::Directory& store) {
  const std::string path = store.path() + std::string(kIncoming);
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return fail("cannot empty " + path + ": " + error.message(), error.value());
  RETURN_IF_FAILED(store.open_directory(kIncoming.substr(1)));
  return {};
}

// If CURRENT is missing, RocksDB creates a new store and then removes every table it does not know:
// that must not happen to a store that lost its CURRENT.
Status refuse_lost_current(os::Directory& directory) {
  auto names = directory.list();
  if (!names) return std::unexpected(std::move(names).error());
  bool tables = false;
  for (const std::string& name : *names) {
    if (name == "CURRENT") return {};
    tables |= name.ends_with(".sst");
  }
  if (!tables) return {};
  return fail("the store " + directory.path() + " is damaged: " + directory.path() +
              "/CURRENT is missing although there are tables; restore a backup");
}

Status claim(os::Directory& directory, const std::string& identity) {
  if (identity.empty()) return {};
  RETURN_IF_FAILED(check_identity(directory, identity));
  auto found = read_identity(directory);
  if (!found) return std::unexpected(std::move(found).error());
  return found->empty() ? write_identity(directory, identity) : Status();
}

// RocksDB copied files without comparing them: bytes that were read wrong are in the copy for good,
// and would be found on the day when the backup is needed. Hard links need no second look.
Status check_copy(const std::string& path) {
  const auto copy = RocksStore::open_read_only(path);
  if (!copy) return fail("the backup that was just made is damaged: " + copy.error().message);
  std::error_code error;
  bool copied = false;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator file(path, error); !error && !copied && file != end;) {
    const bool is_table = file->path().extension() == ".sst";
    copied = is_table && file->hard_link_count(error) == 1;
    if (!error) file.increment(error);
  }
  if (error) return fail("cannot read the backup " + path + ": " + error.message(), error.value());
  return copied ? (*copy)->check_tables() : Status();
}

void remove_files(const std::vector<IncomingTable>& tables, GuardedFileSystem& files) {
  std::error_code ignored;
  for (const IncomingTable& table : tables) {
    std::filesystem::remove(table.path, ignored);
    files.forget(table.path);
  }
}

}  // namespace

RocksStore::RocksStore(std::string path, RocksOptions options)
    : path_(std::move(path)), options_(options), listener_(std::make_shared<StoreListener>()) {}

RocksStore::~RocksStore() = default;

Result<std::unique_ptr<RocksStore>> RocksStore::open(const std::string& path,
                                                     const RocksOptions& options) {
  auto directory = os::open_real_directory(path);
  if (!directory) return std::unexpected(std::move(directory).error());
  RETURN_IF_FAILED(refuse_lost_current(**directory));
  RETURN_IF_FAILED(claim(**directory, options.identity));
  RETURN_IF_FAILED(check_manifest(**directory));

  std::unique_ptr<RocksStore> store(new RocksStore(path, options));
  rocksdb::Options setup = make_options(options);
  store->files_ = std::make_shared<GuardedFileSystem>(setup.env->GetFileSystem());
  store->env_ = rocksdb::NewCompositeEnv(store->files_);
  setup.env = store->env_.get();
  setup.create_if_missing = true;
  setup.listeners.push_back(store->listener_);
  store->merging_ = options.merges_before_commit;
  setup.disable_auto_compactions = !store->merging_;
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(setup, path, &opened);
  if (!status.ok())
    return rocks_failure("cannot open the store " + path + unreadable_tables(path), status);
  store->db_.reset(opened);
  store->directory_ = std::move(*directory);
  // Only now that this process has the store: another process's files are not ours to remove.
  RETURN_IF_FAILED(make_incoming(*store->directory_));
  // Not supported everywhere, and only a courtesy to other threads.
  static_cast<void>(
      setup.env->LowerThreadPoolCPUPriority(rocksdb::Env::LOW, rocksdb::CpuPriority::kLow));
  store->reclaimer_ =
      std::make_unique<Reclaimer>(*store->db_, *store->files_, options.reclaim_interval);
  if (store->merging_) store->reclaimer_->begin();
  return store;
}

Result<std::unique_ptr<const RocksStore>> RocksStore::open_to_read(const std::string& path,
                                                                   std::string_view identity,
                                                                   Strictness strictness,
                                                                   rocksdb::Env* env) {
  auto directory = os::open_existing_directory(path);
  if (!directory) return std::unexpected(std::move(directory).error());
  if (!identity.empty()) RETURN_IF_FAILED(check_identity(**directory, identity));
  RETURN_IF_FAILED(check_manifest(**directory));
  std::unique_ptr<RocksStore> store(new RocksStore(path, {.env = env}));
  rocksdb::Options setup = make_options(store->options_);
  // With this option VerifyChecksum() defers work to a thread that a read-only store does not have.
  setup.avoid_unnecessary_blocking_io = false;
  if (strictness == Strictness::kWhole)
    setup.max_open_files = -1;
  else
    setup.paranoid_checks = false;
  // Failed reads are reported, as in a store that is written to.
  store->files_ = std::make_shared<GuardedFileSystem>(setup.env->GetFileSystem());
  store->env_ = rocksdb::NewCompositeEnv(store->files_);
  setup.env = store->env_.get();
  rocksdb::Status status;
  for (int attempt = 0; attempt < kReadOnlyAttempts; ++attempt) {
    rocksdb::DB* opened = nullptr;
    status = rocksdb::DB::OpenForReadOnly(setup, path, &opened);
    if (status.ok()) {
      store->db_.reset(opened);
      return store;
    }
  }
  return rocks_failure("cannot read the store " + path + unreadable_tables(path), status);
}

Result<std::unique_ptr<const RocksStore>> RocksStore::open_read_only(const std::string& path,
                                                                     std::string_view identity,
                                                                     rocksdb::Env* env) {
  return open_to_read(path, identity, Strictness::kWhole, env);
}

Result<std::unique_ptr<const RocksStore>> RocksStore::open_damaged(const std::string& path,
                                                                   std::string_view identity) {
  return open_to_read(path, identity, Strictness::kWhatIsThere, nullptr);
}

Status RocksStore::commit(const Batch& batch) {
  RETURN_IF_FAILED(ready_to_commit());
  const BatchPlan plan = plan_batch(batch, [&](std::string_view begin, std::string_view end) {
    return batch.erased_ranges.size() > kRangesLookedUp || holds_something(begin, end);
  });
  if (plan.files.empty()) return {};

  std::vector<IncomingTable> tables;
  const std::uint64_t before = committed_;
  Status status = write_files(plan, tables);
  if (status) {
    status = reclaimer_->commit(plan.changes, committed_ - before, [&] { return ingest(tables); });
  }
  // After a success their names are already gone.
  if (!status) remove_files(tables, *files_);
  // Most of all after a commit for which there was no space.
  if (free_space() < kLowSpace) reclaimer_->hurry();
  return status ? note_committed() : status;
}

Status RocksStore::note_committed() {
  std::vector<std::string> files;
  std::uint64_t size = 0;
  const rocksdb::Status status = db_->GetLiveFiles(files, &size, /*flush_memtable=*/false);
  if (!status.ok()) return rocks_failure("cannot commit to the store " + path_, status);
  for (const std::string& file : files) {
    if (!file.starts_with("/MANIFEST")) continue;
    Status noted = note_manifest(*directory_, file.substr(1), size);
    // The commit itself succeeded, so unlike on a full disk it must not be retried.
    if (!noted) noted.error().os_error = 0;
    return noted;
  }
  return fail("cannot commit to the store " + path_ + ": it has no manifest");
}

Status RocksStore::ready_to_commit() {
  if (auto fatal = listener_->fatal())
    return fail("cannot commit to the store " + path_ + ": " + fatal->message, fatal->os_error);
  if (!std::exchange(merging_, true)) {
    static_cast<void>(db_->EnableAutoCompaction({db_->DefaultColumnFamily()}));
    reclaimer_->begin();
  }
  // Otherwise RocksDB would try the same merge again and again. The next start tries once more.
  if (listener_->take_merge_met_damage())
    static_cast<void>(db_->SetOptions({{"disable_auto_compactions", "true"}}));
  // Merging stopped because the disk was full. If it still is, the merge will report that again.
  if (listener_->take_out_of_space()) static_cast<void>(db_->Resume());
  return {};
}

bool RocksStore::holds_something(std::string_view begin, std::string_view end) const {
  const rocksdb::Slice upper = slice(end);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &upper;
  options.max_skippable_internal_keys = 1000;
  const ReadWatch reads;
  const std::unique_ptr<rocksdb::Iterator> entry = read(options);
  const std::uint64_t skips = rocksdb::get_perf_context()->internal_range_del_reseek_count;
  entry->Seek(slice(begin));
  // If that cannot be found out, the range is assumed to hold something. See reread() about skips.
  return entry->Valid() || !reads.judge(entry->status()).ok() ||
         rocksdb::get_perf_context()->internal_range_del_reseek_count != skips;
}

// Each table is read back at once, while the disk may still have it cached.
Status RocksStore::write_files(const BatchPlan& plan, std::vector<IncomingTable>& tables) {
  for (const std::span<const Change> changes : plan.files) {
    // Never reuse a name: RocksDB does not report that it could not remove the old file, which is
    // then a table of the store under a second name.
    const std::string path =
        path_ + std::string(kIncoming) + "/" + std::to_string(++tables_written_) + ".sst";
    tables.push_back({.path = path});
    auto written = write_table(*db_, changes, path);
    if (!written) return std::unexpected(std::move(written).error());
    tables.back() = std::move(*written);
    const auto began = std::chrono::steady_clock::now();
    RETURN_IF_FAILED(files_->verify(path, tables.back().size));
    RETURN_IF_FAILED(rehearse_ingestion(*db_, tables.back()));
    verifying_ += (std::chrono::steady_clock::now() - began).count();
    committed_ += tables.back().size;
  }
  return {};
}

Status RocksStore::ingest(const std::vector<IncomingTable>& tables) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(path_, error);
  if (!error && space.available < kFreeSpaceMin)
    return fail("cannot commit to the store " + path_ + ": no space left on the disk", ENOSPC);
  if (!may_open_files())
    return fail("cannot commit to the store " + path_ + ": too many files are open", ENOSPC);

  rocksdb::IngestExternalFileOptions options;
  options.move_files = true;
  options.write_global_seqno = false;
  std::vector<std::string> paths;
  for (const IncomingTable& table : tables) paths.push_back(table.path);
  static_cast<void>(listener_->take_ingested());
  const rocksdb::Status status = [&] {
    const std::unique_lock alone(ingesting_);
    return db_->IngestExternalFile(paths, options);
  }();
  if (status.ok()) {
    const auto began = std::chrono::steady_clock::now();
    Status checked = check_ingested(*db_, tables, listener_->take_ingested());
    verifying_ += (std::chrono::steady_clock::now() - began).count();
    return checked;
  }
  auto failed = rocks_failure("cannot commit to the store " + path_, status);
  // Only a table that could not be written is sure to have changed nothing. With a manifest whose
  // end is unknown, nobody can say whether the batch is in the store.
  if (failed.error().message.find(".sst") == std::string::npos) failed.error().os_error = 0;
  return failed;
}

std::unique_ptr<rocksdb::Iterator> RocksStore::read(const rocksdb::ReadOptions& options) const {
  const std::shared_lock beginning(ingesting_);
  return std::unique_ptr<rocksdb::Iterator>(db_->NewIterator(options));
}

Status RocksStore::scan(const KeyRange& range, const EntryVisitor& visit) const {
  if (range.begin >= range.end) return {};
  const rocksdb::Slice upper = slice(range.end);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &upper;
  // A read-only store has no thread for that.
  options.background_purge_on_iterator_cleanup = reclaimer_ != nullptr;
  options.readahead_size = kScanReadahead;
  const ReadWatch reads;
  const std::unique_ptr<rocksdb::Iterator> entry = read(options);
  const std::uint64_t skips = rocksdb::get_perf_context()->internal_range_del_reseek_count;
  for (entry->Seek(slice(range.begin)); entry->Valid(); entry->Next()) {
    if (!visit(view(entry->key()), view(entry->value()))) break;
  }
  rocksdb::Status status = reads.judge(entry->status());
  if (status.ok() && rocksdb::get_perf_context()->internal_range_del_reseek_count != skips) {
    const std::string last = entry->Valid() ? entry->key().ToString() : range.end;
    status = reads.judge(reread(range.begin, last));
  }
  if (!status.ok()) return rocks_failure("cannot read the store " + path_, status);
  return {};
}

// RocksDB 7.8 forgets that a table was unreadable when it skips an erased range afterwards, and
// goes on as if the table were empty. Reading the same keys without skipping reveals that.
rocksdb::Status RocksStore::reread(std::string_view begin, std::string_view end) const {
  const rocksdb::Slice upper = slice(end);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &upper;
  options.ignore_range_deletions = true;
  options.fill_cache = false;
  options.readahead_size = kScanReadahead;
  const std::unique_ptr<rocksdb::Iterator> entry = read(options);
  for (entry->Seek(slice(begin)); entry->Valid(); entry->Next()) {
  }
  return entry->status();
}

Result<std::optional<std::string>> RocksStore::get(std::string_view key) const {
  std::string value;
  const ReadWatch reads;
  rocksdb::Status status = [&] {
    const std::shared_lock beginning(ingesting_);
    return db_->Get(rocksdb::ReadOptions(), slice(key), &value);
  }();
  if (status.ok() || status.IsNotFound()) {
    const rocksdb::Status judged = reads.judge(rocksdb::Status::OK());
    if (!judged.ok()) status = judged;
  }
  if (status.IsNotFound()) return std::optional<std::string>();
  if (!status.ok()) return rocks_failure("cannot read the store " + path_, status);
  return std::optional<std::string>(std::move(value));
}

std::uint64_t RocksStore::size_on_disk() const {
  std::uint64_t size = 0;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(path_, error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(error)) {
    // Files may disappear meanwhile.
    std::error_code gone;
    const std::uint64_t bytes = entry->is_regular_file(gone) ? entry->file_size(gone) : 0;
    if (!gone) size += bytes;
  }
  return size;
}

std::uint64_t RocksStore::free_space() const {
  const auto free = directory_->free_space();
  // A read that needs the table will report why it is unavailable.
  return free ? *free : UINT64_MAX;
}

Status RocksStore::backup_to(const std::string& path) const {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error).lexically_normal();
  if (error) return fail("cannot find " + path + ": " + error.message(), error.value());
  const std::filesystem::path above = whole.parent_path();
  auto parent = os::open_real_directory(above.string());
  if (!parent) return std::unexpected(std::move(parent).error());
  rocksdb::Checkpoint* created = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(db_.get(), &created);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(created);
  if (status.ok()) status = checkpoint->CreateCheckpoint(path);
  if (!status.ok())
    return rocks_failure("cannot back up the store " + path_ + " to " + path, status);
  RETURN_IF_FAILED(check_copy(path));
  return (*parent)->sync();
}

Status RocksStore::check_tables() const {
  const rocksdb::Status status = db_->VerifyChecksum();
  if (!status.ok()) return rocks_failure("the store " + path_ + " is damaged", status);
  return {};
}

Status RocksStore::reclaim() {
  return reclaimer_->run();
}

RocksFigures RocksStore::figures() const {
  RocksFigures figures;
  std::vector<rocksdb::LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  figures.files = files.size();
  for (const auto& file : files) figures.live_size += file.size;
  figures.committed = committed_.load();
  figures.verifying = std::chrono::nanoseconds(verifying_.load());
  figures.merged = listener_->merged();
  if (files_ != nullptr) figures.incoming = files_->incoming();
  if (reclaimer_ != nullptr) figures.files_dropped = reclaimer_->files_dropped();
  for (const char* property : {"rocksdb.block-cache-usage", "rocksdb.estimate-table-readers-mem",
                               "rocksdb.cur-size-all-mem-tables"}) {
    std::uint64_t bytes = 0;
    if (db_->GetIntProperty(property, &bytes)) figures.memory += bytes;
  }
  return figures;
}

}  // namespace stanchion::store
