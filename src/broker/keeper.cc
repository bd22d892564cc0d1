#include "broker/keeper.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace stanchion::broker {
namespace {

// While the disk is too full for a checkpoint, how often to try again.
constexpr Duration kRetryInterval = std::chrono::seconds(1);

// How many messages a checkpoint looks at before requests get their turn.
constexpr std::size_t kMessagesAtATime = 1024;

// A checkpoint that is only made to free memory must write at least this part of the budget.
constexpr std::size_t kMemoryShare = 8;
constexpr std::size_t kCrowdedShare = 64;

// A checkpoint is made at the latest when the journal has grown by this part of the disk's free
// space, which is checked this many times until then; but never for less than this.
constexpr std::uint64_t kSpaceShare = 8;
constexpr std::uint64_t kLooks = 8;
constexpr std::uint64_t kCheckpointBytesMin = 2 << 20;

// With no more free space than this beyond what must be left free, a checkpoint is made every
// second if anything changed.
constexpr std::uint64_t kShortOfSpace = std::uint64_t{64} << 20;

// With less than this in memory nothing is refused, however small the budget.
constexpr std::size_t kRefusedFrom = 1 << 20;

// A queue that holds less than this part of the budget is not one of those that fill memory.
constexpr std::size_t kSmallShare = 16;

// Less than this part of the budget that is to be freed stops nobody.
constexpr std::size_t kToFreeShare = 4;

// Of the budget: what may be on its way to other queues, and what a new delay of a FIFO queue may
// have to read.
constexpr std::size_t kInTransitShare = 8;
constexpr std::size_t kDelayedAgainShare = 4;
constexpr std::size_t kDelayedAgainMin = 1 << 20;

// Reads under way, of a chunk each, beside which more may be asked for out of turn.
constexpr std::size_t kReadsApartMax = 32;

// How often a read is tried before its queue is considered damaged, because some errors are
// temporary.
constexpr int kReadTries = 3;

std::size_t worth_freeing(std::size_t budget) {
  return std::max(budget / kMemoryShare, kRefusedFrom);
}

Status disk_is_too_full() {
  return fail("the disk that holds the data is full", ENOSPC);
}

}  // namespace

engine::MemoryOptions divide(engine::MemoryOptions options, std::size_t memory) {
  options.delayed_again = std::max(kDelayedAgainMin, memory / kDelayedAgainShare);
  options.in_transit = memory / kInTransitShare;
  return options;
}

Keeper::Keeper(engine::Engine& engine, journal::Journal& journal,
               std::shared_ptr<store::Store> store, const KeeperOptions& options)
    : engine_(engine),
      journal_(journal),
      store_(std::move(store)),
      options_(options),
      accounts_(engine, options.memory, options.account_share),
      checkpoint_at_(options.checkpoint_bytes) {}

Keeper::~Keeper() {
  *alive_ = false;
}

engine::Engine::ScanStore Keeper::scan() const {
  return [store = store_](const KeyRange& range, const auto& visit) {
    return store->scan(range, visit);
  };
}

Result<Position> Keeper::load(Instant& now) {
  if (!store_) return Position();
  Instant at;
  auto position = engine_.load(scan(), at);
  if (!position) return position;
  loaded_ = saved_ = *position;
  now = std::max(now, at);
  return position;
}

std::optional<journal::LogDigest> Keeper::loaded_digest() const {
  const auto digest = engine_.loaded_digest();
  return digest ? std::optional(journal::LogDigest(*digest)) : std::nullopt;
}

Status Keeper::prepare(const std::vector<Fact>& facts, Instant now) {
  if (!store_) return {};
  if (engine_.exceeds(options_.memory)) engine_.evict_some(options_.memory);
  return engine_.prepare_for(facts, scan(), now);
}

Status Keeper::save_in_replay(Position position, Instant now) {
  static_cast<void>(engine_.take_discarded());
  if (!store_ || (!engine_.exceeds(options_.memory) && !has_much_to_erase())) return {};
  while (engine_.evict_some(options_.memory)) continue;
  // What could not be read is not as its records say, and the next start may be able to read it.
  if (engine_.has_unreadable()) return {};
  if (is_writing() || !is_worth_saving(kMemoryShare)) return {};
  if (options_.left_free > 0 &&
      engine_.memory().to_unpack > store_->free_space() / options_.disk_shared_by)
    return {};
  engine_.begin_checkpoint(position, now);
  while (!engine_.save_some(kMessagesAtATime)) continue;
  batch_ = std::make_shared<const Batch>(engine_.take_checkpoint());
  batch_position_ = position;
  writing_bytes_ = std::exchange(unsaved_bytes_, 0);
  const Status status = store_->commit(*batch_);
  // Without space on disk the replay goes on, so that the disk can be drained; start() tries again.
  if (!status && status.error().os_error == ENOSPC) return {};
  RETURN_IF_FAILED(status);
  batch_ = nullptr;
  writing_bytes_ = 0;
  saved_ = position;
  engine_.checkpoint_is_durable();
  while (engine_.evict_some(options_.memory)) continue;
  return {};
}

void Keeper::start(Loop& loop, Background& background, Callbacks callbacks, Instant now) {
  last_checkpoint_ = now;
  structure_at_start_ = engine_.structure_bytes();
  owner_.start(loop);
  loop_ = &loop;
  background_ = &background;
  callbacks_ = std::move(callbacks);
  discards_.start(loop, background, [this] {
    callbacks_.now();
    callbacks_.relieved();
  });
  // Not by the clock, which may be set back.
  space_alarm_ = loop.make_alarm([this] { ask_for_space(); });
  files_alarm_ = loop.make_alarm([this] { retry_reads(); });
  waits_for_space_ = batch_ != nullptr;
  if (waits_for_space_) space_alarm_->set(kRetryInterval);
}

void Keeper::work(Position position, Instant now, bool may_begin_checkpoint) {
  owner_.check();
  if (auto discarded = engine_.take_discarded(); !discarded.empty()) {
    std::size_t bytes = 0;
    for (const auto& gone : discarded) bytes += gone.bytes;
    discards_.free(std::move(discarded), bytes);
  }
  if (!store_) return;
  structure_at_start_ = std::min(structure_at_start_, engine_.structure_bytes());
  start_reads();
  if (unsaved_bytes_ >= next_look_) look_at_space();
  if (may_begin_checkpoint && wants_checkpoint(now)) {
    free_ = store_->free_space();
    if (!must_postpone()) begin_checkpoint(position, now);
  }
  if (must_postpone()) postpone();
  if (engine_.exceeds(options_.memory) && engine_.may_evict()) evict_soon();
}

bool Keeper::wants_checkpoint(Instant now) const {
  if (!store_ || is_writing()) return false;
  if (must_postpone()) return false;
  if (backup_ && backup_->decided) return true;
  if (unsaved_bytes_ == 0) return false;
  if (unsaved_bytes_ >= checkpoint_at_) return true;
  if (now >= last_checkpoint_ + interval()) return true;
  return is_worth_saving(is_crowded() ? kCrowdedShare : kMemoryShare);
}

// Whether a checkpoint would free memory that is needed. Small messages take much more space in memory
// than in the journal, and those that leave for another queue take next to none there. Nor do those
// that are received from among others, which stay in memory with them.
bool Keeper::is_worth_saving(std::size_t share) const {
  if (has_much_to_erase()) return true;
  return engine_.exceeds(options_.memory) &&
         (unsaved_bytes_ >= options_.memory / share || engine_.must_save_departures() ||
          (messages_fill(5) && engine_.memory().brought_in >= worth_freeing(options_.memory)));
}

// A message that is deleted takes none of the budget any more, but until a checkpoint has erased its
// entry in the store, that is remembered.
bool Keeper::has_much_to_erase() const {
  return engine_.memory().bytes_to_erase() >= worth_freeing(options_.memory);
}

// Messages that were received and are not deleted are written once more. A checkpoint for which there
// is no space would hold up all that follow, also those that free some; the journal can wait until some
// of them are deleted. Without space left for itself it tries whatever may fit.
bool Keeper::must_postpone() const {
  const std::uint64_t share = free_ / options_.disk_shared_by;
  const std::size_t bytes = engine_.memory().to_unpack;
  if (options_.left_free == 0 || bytes <= share / 4 * 3) return false;
  return bytes > share || journal_.room() != journal::Room::kNone;
}

// The batch of a checkpoint is no larger than what was written to the journal, except for changes
// in memory since: with less than an eighth of the free space in it, even twice as much fits.
void Keeper::look_at_space() {
  free_ = store_->free_space();
  checkpoint_at_ = std::clamp(free_ / options_.disk_shared_by / kSpaceShare,
                              std::min(kCheckpointBytesMin, options_.checkpoint_bytes),
                              options_.checkpoint_bytes);
  next_look_ = unsaved_bytes_ + checkpoint_at_ / kLooks;
  short_of_space_ = options_.left_free > 0 && free_ < options_.left_free + kShortOfSpace;
  const std::uint64_t wanted = options_.left_free + unsaved_bytes_ + writing_bytes_;
  const bool was_full = std::exchange(disk_is_full_, options_.left_free > 0 && free_ < wanted);
  if (disk_is_full_ && !was_full) space_alarm_->set(kRetryInterval);
}

// A second after the disk was found to be full: the waiting commit is tried again, and the space
// for sends is checked.
void Keeper::ask_for_space() {
  owner_.check();
  if (std::exchange(waits_for_space_, false)) commit();
  const bool postponed = std::exchange(postponed_, false);
  if (!std::exchange(disk_is_full_, false) && !postponed) return;
  look_at_space();
  if (!postponed) return;
  callbacks_.now();
  callbacks_.relieved();
}

Duration Keeper::interval() const {
  return short_of_space_ ? std::min(kRetryInterval, options_.checkpoint_interval)
                         : options_.checkpoint_interval;
}

Instant Keeper::next_deadline() const {
  if (!store_ || is_writing() || unsaved_bytes_ == 0 || must_postpone()) return kNever;
  return last_checkpoint_ + interval();
}

void Keeper::postpone() {
  if (backup_ && backup_->decided && !is_writing()) backed_up(disk_is_too_full());
  if (!std::exchange(postponed_, true)) space_alarm_->set(kRetryInterval);
}

bool Keeper::holds_little(const QueueRef& ref) const {
  const engine::Queue* queue = engine_.find(ref);
  return queue == nullptr || queue->bytes() <= options_.memory / kSmallShare;
}

bool Keeper::messages_fill(std::size_t quarters) const {
  return engine_.message_bytes() > engine_.left_for_messages(options_.memory) * quarters / 4;
}

bool Keeper::structure_fills(std::size_t eighths) const {
  return engine_.structure_bytes() > options_.memory * eighths / 8;
}

// Structures loaded at the start, perhaps from a time with a larger budget, do not count against
// queues that hold little.
bool Keeper::structure_fills_for_all(std::size_t eighths) const {
  return engine_.structure_bytes() >
         std::max(options_.memory * eighths / 8,
                  structure_at_start_ + options_.memory * (eighths - 8) / 8);
}

// What was purged, or was removed while a checkpoint holds it, is counted no more, and takes memory
// until another thread has freed it.
bool Keeper::has_much_to_free() const {
  const std::size_t left = discards_.bytes() + engine_.discarded_bytes() + held_by_checkpoint();
  return left > std::max(options_.memory / kToFreeShare, kRefusedFrom) &&
         engine_.message_bytes() + engine_.structure_bytes() + left > 2 * options_.memory;
}

Keeper::Admission Keeper::admission(const QueueRef& queue) const {
  owner_.check();
  const Admission admission = admission_by_budget(queue);
  return admission == Admission::kNow && must_wait_to_free() ? Admission::kSoon : admission;
}

bool Keeper::must_wait_to_free() const {
  if (!has_much_to_free()) return false;
  discards_.ask_to_be_told();
  return has_much_to_free();  // It may just have been freed.
}

Keeper::Admission Keeper::admission_by_budget(const QueueRef& queue) const {
  if (disk_is_full_) return Admission::kWithSpaceOnDisk;
  if (!is_beyond_budget()) return Admission::kNow;
  // The backlog of one queue does not stop the others, until all of them together take too much.
  // Nor do many queues of one account stop other accounts: the remaining room is for those.
  const bool shared = exceeds_share(queue.account);
  const bool too_much =
      shared ? messages_fill(7) || structure_fills_for_all(kStructureOfMany) || is_left_behind(5)
             : messages_fill(8) || structure_fills_for_all(kStructureOfAll) || is_left_behind(6);
  const bool modest = !shared && accounts_.are_several();
  if (!too_much && (modest || holds_little(queue))) return Admission::kNow;
  if (waits_for_space_) return Admission::kWithSpaceOnDisk;
  if (structure_fills(kStructure)) return Admission::kWhenDrained;
  if (is_writing() || evicting_) return Admission::kSoon;
  const bool stays = messages_fill(8) && engine_.message_bytes() > kRefusedFrom;
  return stays ? Admission::kWhenDrained : Admission::kNow;
}

bool Keeper::may_read_apart() const {
  owner_.check();
  return reading_ < kReadsApartMax &&
         (!messages_fill(6) || engine_.message_bytes() <= kRefusedFrom);
}

bool Keeper::may_remember(const QueueRef& queue) const {
  owner_.check();
  if (!structure_fills(kStructure)) return true;
  const bool shared = exceeds_share(queue.account);
  const bool modest = !shared && accounts_.are_several();
  return !structure_fills_for_all(shared ? kStructureOfMany : kStructureOfAll) &&
         (modest || holds_little(queue));
}

void Keeper::begin_checkpoint(Position position, Instant now) {
  CHECK(position >= loaded_ && position >= batch_position_, "checkpoints go forward");
  const auto digest = journal_.digest();
  CHECK(!digest || position.next() == journal_.next_position(), "it is the digest at the position");
  engine_.begin_checkpoint(position, now, digest ? std::optional(digest->value()) : std::nullopt);
  collecting_ = true;
  batch_position_ = position;
  writing_bytes_ = std::exchange(unsaved_bytes_, 0);
  look_at_space();
  last_checkpoint_ = now;
  if (backup_ && backup_->decided) {
    copy_batch_ = backup_->copy;
    std::exchange(backup_->decided, nullptr)();
  }
  collect();
}

void Keeper::collect() {
  owner_.check();
  if (!engine_.save_some(kMessagesAtATime)) {
    return loop_->defer([this, alive = alive_] {
      if (*alive) collect();
    });
  }
  collecting_ = false;
  batch_ = std::make_shared<const Batch>(engine_.take_checkpoint());
  // Most often the position is already durable; later records need not be.
  if (journal_.durable() >= batch_position_) return commit();
  callbacks_.when_durable([this] { commit(); });
}

void Keeper::back_up(Backup backup) {
  owner_.check();
  CHECK(!backup_, "one backup at a time");
  backup_ = std::move(backup);
  if (!store_) return backed_up(fail("there is no store to copy"));
  if (waits_for_space_ || must_postpone()) backed_up(disk_is_too_full());
}

void Keeper::give_up_backup(const Failure& why) {
  owner_.check();
  const bool is_copying = backup_ && !backup_->decided && !copy_batch_;
  if (!backup_ || is_copying) return;
  copy_batch_ = nullptr;
  backed_up(std::unexpected(why));
}

void Keeper::backed_up(const Status& status) {
  owner_.check();
  Backup backup = std::move(*backup_);
  backup_.reset();
  if (backup.decided) backup.decided();
  backup.done(status);
}

void Keeper::commit() {
  owner_.check();
  CHECK(batch_ != nullptr && journal_.durable() >= batch_position_, "M1");
  background_->run(Work::kCheckpoint,
                   [store = store_, batch = batch_, position = batch_position_, loop = loop_, this,
                    alive = alive_, copy = std::exchange(copy_batch_, nullptr)]() mutable {
                     auto status = std::make_shared<Status>(store->commit(*batch));
                     batch = nullptr;  // The keeper has it, and has it freed elsewhere.
                     loop->post([this, alive, status] {
                       if (*alive) committed(*status);
                     });
                     if (!*status || !copy) return;
                     // The next commit waits behind this task, so the store does not change
                     // meanwhile.
                     auto outcome = std::make_shared<Status>(copy(position));
                     loop->post([this, alive, outcome] {
                       if (*alive) backed_up(*outcome);
                     });
                   });
}

void Keeper::committed(const Status& status) {
  owner_.check();
  if (!status && status.error().os_error == ENOSPC) {
    // The journal keeps everything meanwhile.
    waits_for_space_ = true;
    if (backup_) backed_up(status);
    space_alarm_->set(kRetryInterval);
    callbacks_.now();
    return callbacks_.relieved();
  }
  if (!status) return callbacks_.failed(status.error());
  ++checkpoints_;
  // Much of it is in memory, too, but not for long if there is more than the budget.
  const std::size_t messages = engine_.message_bytes();
  const std::size_t evicted_soon =
      messages - std::min(messages, engine_.left_for_messages(options_.memory));
  discards_.free(std::exchange(batch_, nullptr),
                 std::min<std::size_t>(engine_.memory().outlived + evicted_soon, writing_bytes_));
  writing_bytes_ = 0;
  look_at_space();
  engine_.checkpoint_is_durable();
  saved_ = batch_position_;
  journal_.trim_before(saved_.next());
  evict_soon();
  callbacks_.now();
  callbacks_.relieved();
}

void Keeper::start_reads() {
  std::vector<engine::ColdRead> reads = engine_.take_reads();
  for (auto begin = reads.begin(); begin != reads.end();) {
    // Neighbours are read together.
    auto end = begin + 1;
    while (end != reads.end() && (end - 1)->precedes(*end)) ++end;
    start(std::vector(std::make_move_iterator(begin), std::make_move_iterator(end)));
    begin = end;
  }
}

void Keeper::start(std::vector<engine::ColdRead> neighbours) {
  reading_ += neighbours.size();
  background_->run(Work::kRead, [run = std::move(neighbours), scan = scan(), loop = loop_, this,
                                 alive = alive_]() mutable {
    auto found = std::make_shared<Found>(read(run, scan));
    loop->post([this, alive, found, run = std::move(run)] {
      if (*alive) installed(run, std::move(*found));
    });
  });
}

void Keeper::retry_reads() {
  owner_.check();
  for (engine::ColdRead& one : std::exchange(without_files_, {})) start({std::move(one)});
}

// All reads by one scan; if something cannot be read, each read by itself, so that only the
// unreadable one fails.
Keeper::Found Keeper::read(const std::vector<engine::ColdRead>& reads,
                           const engine::Engine::ScanStore& scan) {
  Found found;
  if (auto all = engine::Engine::read(reads, scan)) {
    for (auto& messages : *all) found.emplace_back(std::move(messages));
    return found;
  }
  for (const engine::ColdRead& one : reads) {
    auto messages = engine::Engine::read(one, scan);
    for (int tries = 1; !messages && tries < kReadTries; ++tries)
      messages = engine::Engine::read(one, scan);
    found.push_back(std::move(messages));
  }
  return found;
}

void Keeper::installed(const std::vector<engine::ColdRead>& reads, Found found) {
  owner_.check();
  CHECK(found.size() == reads.size(), "M2");
  reads_ += reads.size();
  reading_ -= reads.size();
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (!found[i] && found[i].error().os_error == ENOSPC) {
      // No file could be opened. Calls that wait for the read are refused in time, and nothing is
      // damaged.
      if (without_files_.empty()) files_alarm_->set(kRetryInterval);
      without_files_.push_back(reads[i]);
      continue;
    }
    Status status = found[i] ? engine_.install(reads[i], std::move(*found[i]), callbacks_.now())
                             : std::unexpected(found[i].error());
    if (status) continue;
    engine_.give_up(reads[i]);
    callbacks_.damaged(reads[i].stock.queue, status.error());
  }
  callbacks_.installed(reads.front().stock.queue);
}

// A little at a time, so that no request waits for it.
void Keeper::evict_soon() {
  if (evicting_) return;
  evicting_ = true;
  loop_->defer([this, alive = alive_] {
    if (!*alive) return;
    evicting_ = false;
    const bool was_crowded = is_beyond_budget();
    if (engine_.evict_some(options_.memory)) evict_soon();
    if (!was_crowded || (is_beyond_budget() && evicting_)) return;
    callbacks_.now();
    callbacks_.relieved();
  });
}

}  // namespace stanchion::broker
