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

// How many messages a checkpoint looks at before others have their turn.
constexpr std::size_t kMessagesAtATime = 1024;

// A checkpoint for memory's sake is not made for less than this part of the budget.
constexpr std::size_t kMemoryShare = 8;

}  // namespace

Keeper::Keeper(engine::Engine& engine, journal::Journal& journal,
               std::shared_ptr<store::Store> store, const KeeperOptions& options)
    : engine_(engine), journal_(journal), store_(std::move(store)), options_(options) {}

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
  loaded_ = *position;
  now = std::max(now, at);
  RETURN_IF_FAILED(engine_.read_wanted(scan(), now));
  return position;
}

Status Keeper::prepare(const std::vector<Fact>& facts, Instant now) {
  if (!store_) return {};
  if (engine_.resident_bytes() > options_.memory) engine_.evict_some(options_.memory);
  return engine_.prepare_for(facts, scan(), now);
}

void Keeper::start(Loop& loop, Background& background, Callbacks callbacks, Instant now) {
  last_checkpoint_ = now;
  loop_ = &loop;
  background_ = &background;
  callbacks_ = std::move(callbacks);
  // Not by the clock, which may be set back.
  space_alarm_ = loop.make_alarm([this] {
    waits_for_space_ = false;
    commit();
  });
}

void Keeper::work(Position position, Instant now) {
  if (auto discarded = engine_.take_discarded(); !discarded.empty())
    background_->run(Work::kRead, [gone = std::move(discarded)] {});
  if (!store_) return;
  start_reads();
  if (wants_checkpoint(now)) begin_checkpoint(position, now);
  if (engine_.resident_bytes() > options_.memory) evict_soon();
}

bool Keeper::wants_checkpoint(Instant now) const {
  if (is_saving()) return false;
  if (saving_ && saving_->decided) return true;
  if (unsaved_bytes_ == 0) return false;
  if (unsaved_bytes_ >= options_.checkpoint_bytes) return true;
  if (now >= last_checkpoint_ + options_.checkpoint_interval) return true;
  return engine_.resident_bytes() > options_.memory &&
         unsaved_bytes_ >= options_.memory / kMemoryShare;
}

Instant Keeper::next_deadline() const {
  if (!store_ || is_saving() || unsaved_bytes_ == 0) return kNever;
  return last_checkpoint_ + options_.checkpoint_interval;
}

void Keeper::begin_checkpoint(Position position, Instant now) {
  engine_.begin_checkpoint(position, now);
  collecting_ = true;
  batch_position_ = position;
  unsaved_bytes_ = 0;
  last_checkpoint_ = now;
  if (saving_ && saving_->decided) {
    save_batch_ = saving_->save;
    std::exchange(saving_->decided, nullptr)();
  }
  collect();
}

void Keeper::collect() {
  if (!engine_.save_some(kMessagesAtATime)) {
    return loop_->defer([this, alive = alive_] {
      if (*alive) collect();
    });
  }
  collecting_ = false;
  batch_ = std::make_shared<const Batch>(engine_.take_checkpoint());
  // Most often it is already; not all that was appended since need be.
  if (journal_.durable() >= batch_position_) return commit();
  callbacks_.when_durable([this] { commit(); });
}

void Keeper::save(Saving saving) {
  CHECK(!saving_, "one copy at a time");
  saving_ = std::move(saving);
  if (!store_) return saved(fail("there is no store to save"));
  if (waits_for_space_) saved(fail("the disk that holds the data is full", ENOSPC));
}

void Keeper::saved(const Status& status) {
  Saving saving = std::move(*saving_);
  saving_.reset();
  if (saving.decided) saving.decided();
  saving.done(status);
}

void Keeper::commit() {
  background_->run(Work::kCheckpoint,
                   [store = store_, batch = batch_, position = batch_position_, loop = loop_, this,
                    alive = alive_, save = std::exchange(save_batch_, nullptr)] {
                     auto status = std::make_shared<Status>(store->commit(*batch));
                     loop->post([this, alive, status] {
                       if (*alive) committed(*status);
                     });
                     if (!*status || !save) return;
                     // The next commit waits behind this task, so the store stays as it is.
                     auto outcome = std::make_shared<Status>(save(position));
                     loop->post([this, alive, outcome] {
                       if (*alive) saved(*outcome);
                     });
                   });
}

void Keeper::committed(const Status& status) {
  if (!status && status.error().os_error == ENOSPC) {
    // The journal keeps everything meanwhile.
    waits_for_space_ = true;
    if (saving_) saved(status);
    space_alarm_->set(kRetryInterval);
    callbacks_.now();
    return callbacks_.relieved();
  }
  if (!status) return callbacks_.failed(status.error());
  ++checkpoints_;
  // Contents may be many: they are let go of elsewhere.
  background_->run(Work::kRead, [batch = std::exchange(batch_, nullptr)]() mutable { batch = {}; });
  engine_.checkpoint_is_durable();
  journal_.trim_before(batch_position_.next());
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
    background_->run(Work::kRead, [run = std::vector(std::make_move_iterator(begin),
                                                     std::make_move_iterator(end)),
                                   scan = scan(), loop = loop_, this, alive = alive_]() mutable {
      auto found = std::make_shared<Found>(engine::Engine::read(run, scan));
      loop->post([this, alive, found, run = std::move(run)] {
        if (*alive) installed(run, std::move(*found));
      });
    });
    begin = end;
  }
}

void Keeper::installed(const std::vector<engine::ColdRead>& reads, Found found) {
  reads_ += reads.size();
  if (!found) return callbacks_.failed(found.error());
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const Status status = engine_.install(reads[i], std::move((*found)[i]), callbacks_.now());
    if (!status) return callbacks_.failed(status.error());
  }
  callbacks_.installed(reads.front().stock.queue);
}

// A little at a time, so that nobody waits for it.
void Keeper::evict_soon() {
  if (evicting_) return;
  evicting_ = true;
  loop_->defer([this, alive = alive_] {
    if (!*alive) return;
    evicting_ = false;
    const bool was_full = is_full();
    if (engine_.evict_some(options_.memory)) evict_soon();
    if (!was_full || is_full()) return;
    callbacks_.now();
    callbacks_.relieved();
  });
}

}  // namespace stanchion::broker
