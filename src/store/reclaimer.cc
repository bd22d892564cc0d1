#include "store/reclaimer.h"

#include <rocksdb/convenience.h>
#include <rocksdb/table_properties.h>

#include <algorithm>
#include <utility>

#include "store/rocks_setup.h"
#include "store/small_files.h"

namespace stanchion::store {
namespace {

constexpr std::size_t kRangesPerCommitMax = 256;
constexpr std::size_t kScatteredKeysMin = 1000;
constexpr std::size_t kRangesMax = 4096;

// When space is short, passes follow each other this many times faster.
constexpr int kHurry = 20;
// Failed passes are followed by pauses that double this many times, up to a whole interval.
constexpr int kDoublingsMax = 5;

// The deepest level that has files; -1 if none has.
int bottom_level(const std::vector<rocksdb::LiveFileMetaData>& files) {
  int level = -1;
  for (const auto& file : files) level = std::max(level, file.level);
  return level;
}

}  // namespace

Reclaimer::Reclaimer(rocksdb::DB& db, GuardedFileSystem& files, std::chrono::milliseconds interval)
    : db_(db), files_(files), interval_(interval), commits_(kCrowdMin), thread_([this] {
        work();
      }) {}

void Reclaimer::begin() {
  {
    const std::lock_guard lock(mutex_);
    begun_ = true;
  }
  wake_.notify_all();
}

Reclaimer::~Reclaimer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  canceled_ = true;
  // Otherwise drop_files() waits until everything is merged.
  rocksdb::CancelAllBackgroundWork(&db_, /*wait=*/false);
  wake_.notify_all();
  thread_.join();
}

Status Reclaimer::commit(std::span<const Change> changes, std::uint64_t bytes,
                         const std::function<Status()>& ingest) {
  const std::lock_guard lock(mutex_);
  if (failure_) return std::unexpected(*failure_);
  forget(erased_, changes);
  RETURN_IF_FAILED(ingest());
  scattered_.bytes_committed += bytes;
  ++commits_;
  if (note_erased(changes)) dying_ = true;
  wake_.notify_all();
  return {};
}

void Reclaimer::hurry() {
  {
    const std::lock_guard lock(mutex_);
    hurried_ = true;
  }
  wake_.notify_all();
}

bool Reclaimer::note_erased(std::span<const Change> changes) {
  const auto puts = [](const Change& change) { return change.puts(); };
  std::size_t keys = 0;
  std::size_t ranges = 0;
  for (const Change& change : changes) {
    keys += change.kind == Change::Kind::kErase;
    ranges += change.kind == Change::Kind::kEraseRange;
  }
  if (keys > kScatteredKeysMin || ranges > kRangesPerCommitMax || erased_.size() > kRangesMax) {
    const auto first = std::find_if_not(changes.begin(), changes.end(), puts);
    const auto last = std::find_if_not(changes.rbegin(), changes.rend(), puts);
    const std::string_view end = last->end.empty() ? last->key : last->end;
    if (scattered_.end.empty() || first->key < scattered_.begin) scattered_.begin = first->key;
    scattered_.end = std::max<std::string_view>(scattered_.end, end);
    scattered_.grew = true;
  }
  if (ranges > kRangesPerCommitMax || erased_.size() > kRangesMax) return false;
  for (const Change& change : changes) {
    if (change.kind != Change::Kind::kEraseRange) continue;
    add(erased_, change.key, change.end);
    add(to_merge_, change.key, change.end);
  }
  return ranges > 0;
}

void Reclaimer::take_scattered_if_due(Territory& territory, bool at_once) {
  if (scattered_.end.empty()) return;
  std::uint64_t live = 0;
  db_.GetIntProperty("rocksdb.live-sst-files-size", &live);
  const bool stopped = !std::exchange(scattered_.grew, false);
  const bool late = ++scattered_.intervals >= kScatteredIntervals;
  if (!at_once && !stopped && !late && scattered_.bytes_committed < live / 2) return;
  add(territory, scattered_.begin, scattered_.end);
  scattered_ = {};
}

Status Reclaimer::run(bool at_once) {
  const std::lock_guard running(running_);
  find_old_tombstones();
  RETURN_IF_FAILED(drop_files());
  Territory territory;
  {
    const std::lock_guard lock(mutex_);
    territory = std::exchange(to_merge_, {});
    take_scattered_if_due(territory, at_once);
  }
  const Status merged = merge(territory);
  {
    const std::lock_guard lock(mutex_);
    last_pass_ = std::chrono::steady_clock::now();
    failures_ = merged ? 0 : failures_ + 1;
    if (!merged) {
      for (const auto& [begin, end] : territory) add(to_merge_, begin, end);
      wake_.notify_all();
      return merged;
    }
  }
  // Files that RocksDB was merging when they could have been dropped.
  RETURN_IF_FAILED(drop_files());
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [begin, end] : territory) subtract(erased_, begin, end);
  }
  return at_once ? merge_crowds() : Status();
}

Reclaimer::Moment Reclaimer::next_pass(Moment regular) const {
  const auto soon = interval_ / kHurry;
  if (hurried_) return last_pass_ + soon;
  if (failures_ == 0) return regular;
  return last_pass_ + std::min(interval_, soon * (1 << std::min(failures_ - 1, kDoublingsMax)));
}

void Reclaimer::work() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [&] { return begun_ || stopping_; });
  if (stopping_) return;
  lock.unlock();
  {
    const std::lock_guard running(running_);
    find_old_tombstones();
  }
  lock.lock();
  last_pass_ = std::chrono::steady_clock::now();
  auto next_merge = last_pass_ + interval_;
  while (!stopping_) {
    if (dying_) {
      lock.unlock();
      {
        const std::lock_guard running(running_);
        static_cast<void>(drop_files());
      }
      lock.lock();
    } else if (commits_ >= kCrowdMin) {
      lock.unlock();
      {
        const std::lock_guard running(running_);
        // After a failure they are merged kCrowdMin commits later. Nobody misses them until then.
        static_cast<void>(merge_crowds());
      }
      lock.lock();
    } else if (to_merge_.empty() && scattered_.end.empty()) {
      wake_.wait(lock);
      next_merge = std::max(next_merge, std::chrono::steady_clock::now() + interval_ / 4);
    } else if (wake_.wait_until(lock, next_pass(next_merge)) == std::cv_status::timeout) {
      const bool at_once = std::exchange(hurried_, false);
      lock.unlock();
      // RocksDB keeps a failure, which makes the next commit fail; after a full disk the next pass
      // tries again.
      static_cast<void>(run(at_once));
      lock.lock();
      next_merge = std::chrono::steady_clock::now() + interval_;
    }
  }
}

void Reclaimer::find_old_tombstones() {
  if (std::exchange(searched_, true)) return;
  rocksdb::TablePropertiesCollection properties;
  if (!db_.GetPropertiesOfAllTables(&properties).ok()) return;
  std::vector<rocksdb::LiveFileMetaData> files;
  db_.GetLiveFilesMetaData(&files);
  const std::lock_guard lock(mutex_);
  for (const auto& file : files) {
    const auto found = properties.find(file.db_path + file.name);
    if (found == properties.end() || found->second->num_range_deletions == 0) continue;
    // It is not known which of the keys in between are erased, so nothing is dropped here.
    add(to_merge_, file.smallestkey, file.largestkey);
  }
}

Status Reclaimer::drop_files() {
  {
    const std::lock_guard lock(mutex_);
    dying_ = false;
    if (dead_files().empty()) return {};
  }
  // Waits for merges under way, so this runs without the lock that commits take.
  db_.PauseBackgroundWork();
  std::unique_lock lock(mutex_);
  for (const std::string& name : dead_files()) {
    const rocksdb::Status dropped = db_.DeleteFile(name);
    if (!dropped.ok()) {
      failure_ =
          rocks_failure("cannot give back the space of " + db_.GetName() + name, dropped).error();
      // The state of the manifest is unknown, so unlike a full disk this cannot be retried.
      failure_->os_error = 0;
      break;
    }
    ++files_dropped_;
  }
  const Status status = failure_ ? Status(std::unexpected(*failure_)) : Status();
  lock.unlock();
  db_.ContinueBackgroundWork();
  return status;
}

std::vector<std::string> Reclaimer::dead_files() {
  std::vector<std::string> dead;
  if (erased_.empty()) return dead;
  std::vector<rocksdb::LiveFileMetaData> files;
  db_.GetLiveFilesMetaData(&files);
  const int bottom = bottom_level(files);
  for (const auto& file : files) {
    if (file.level != bottom || bottom == 0 || file.being_compacted) continue;
    if (covers(erased_, file.smallestkey, file.largestkey)) dead.push_back(file.name);
  }
  return dead;
}

Status Reclaimer::merge(const Territory& territory) {
  rocksdb::CompactRangeOptions options;
  options.exclusive_manual_compaction = false;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kSkip;
  options.canceled = &canceled_;
  const GuardedFileSystem::GivingBack plenty(files_);
  for (const auto& [begin, end] : territory) {
    const rocksdb::Slice first = slice(begin);
    const rocksdb::Slice last = slice(end);
    const rocksdb::Status status = db_.CompactRange(options, &first, &last);
    if (!status.ok() && !canceled_) return rocks_failure("cannot merge erased ranges", status);
  }
  return {};
}

Status Reclaimer::merge_crowds() {
  {
    const std::lock_guard lock(mutex_);
    commits_ = 0;
  }
  std::vector<rocksdb::LiveFileMetaData> files;
  db_.GetLiveFilesMetaData(&files);
  rocksdb::CompactRangeOptions options;
  options.exclusive_manual_compaction = false;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  options.canceled = &canceled_;
  for (const Crowd& crowd : find_crowds(std::move(files))) {
    const rocksdb::Slice first = slice(crowd.first);
    const rocksdb::Slice last = slice(crowd.last);
    const rocksdb::Status status = db_.CompactRange(options, &first, &last);
    if (!status.ok() && !canceled_) return rocks_failure("cannot merge small files", status);
  }
  return {};
}

void Reclaimer::add(Territory& territory, std::string_view begin, std::string_view end) {
  std::string from(begin);
  std::string to(end);
  auto next = territory.upper_bound(begin);
  if (next != territory.begin() && std::prev(next)->second >= begin) --next;
  while (next != territory.end() && next->first <= to) {
    from = std::min(from, next->first);
    to = std::max(to, next->second);
    next = territory.erase(next);
  }
  territory.emplace(std::move(from), std::move(to));
}

void Reclaimer::subtract(Territory& territory, std::string_view begin, std::string_view end) {
  auto range = territory.upper_bound(begin);
  if (range != territory.begin()) --range;
  while (range != territory.end() && range->first < end) {
    const auto [first, last] = *range;
    if (last <= begin) {
      ++range;
      continue;
    }
    range = territory.erase(range);
    if (first < begin) territory.emplace(first, begin);
    if (last > end) territory.emplace(end, last);
  }
}

void Reclaimer::forget(Territory& territory, std::span<const Change> changes) {
  for (auto range = territory.begin(); range != territory.end();) {
    auto change =
        std::lower_bound(changes.begin(), changes.end(), range->first,
                         [](const Change& c, const std::string& key) { return c.key < key; });
    // A series may reach into the range from before it.
    bool put = change != changes.begin() && std::prev(change)->puts() &&
               std::prev(change)->end > range->first;
    for (; change != changes.end() && change->key < range->second && !put; ++change)
      put = change->puts();
    range = put ? territory.erase(range) : std::next(range);
  }
}

bool Reclaimer::covers(const Territory& territory, std::string_view first, std::string_view last) {
  const auto after = territory.upper_bound(first);
  return after != territory.begin() && last < std::prev(after)->second;
}

}  // namespace stanchion::store
