#include "fleet/node.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "fleet/control_codec.h"
#include "fleet/coordinator.h"
#include "fleet/limits.h"

namespace stanchion::fleet {
namespace {

constexpr Duration kLookInterval = 100ms;
// An assignment, or a coordinator's claim, that was not read back in this time is repeated.
constexpr Duration kRepeatAfter = 1s;

}  // namespace

Node::Node(NodeOptions options, ControlLog& control, Transport& transport, os::Time& time,
           os::Entropy& entropy, broker::Background& background, Outside outside)
    : options_(std::move(options)),
      control_(control),
      transport_(transport),
      time_(time),
      entropy_(entropy),
      background_(background),
      outside_(std::move(outside)),
      process_(entropy.u64()),
      router_(
          options_.shards, transport, time,
          [this](ShardIndex shard, std::string_view why) { lost(shard, why); },
          outside_.unpack_guard, process_),
      broker_(broker::Broker::of_a_node(options_.shards, router_, options_.queues)),
      replicas_(options_.shards),
      state_(options_.shards),
      views_(options_.shards) {}

Node::~Node() {
  *alive_ = false;
}

void Node::start(std::vector<broker::Loop*> loops) {
  loop_ = loops.front();
  router_.start(*broker_);
  broker_->start(
      std::move(loops), background_, [] {}, outside_.failed);
  loop_->post([this, alive = alive_] {
    if (!*alive) return;
    alarm_ = loop_->make_alarm([this] { on_alarm(); });
    control_.follow([this, alive] {
      loop_->post([this, alive] {
        if (*alive) read_control();
      });
    });
    read_control();
    on_alarm();
  });
}

void Node::read_control() {
  const SteadyInstant now = time_.read().steady;
  bool moved = false;
  std::vector<ShardIndex> skipped;
  const Status status = control_.read([&](const ControlRecord& record) {
    state_.apply(record, now);
    const auto* beat = std::get_if<Beat>(&record);
    if (beat != nullptr) note_service(*beat);
    const bool is_own = beat != nullptr && beat->node == options_.name && beat->process == process_;
    if (is_own) beats_read_ = std::max(beats_read_, beat->count);
    if (const auto* skip = std::get_if<Skip>(&record)) skipped.push_back(skip->shard);
    moved |= beat == nullptr || is_own;
  });
  if (!status) return outside_.failed(status.error());
  if (moved) reconcile();
  if (skipped.empty()) return;
  outside_.looked_around(state_, figures_);  // Whoever reads the log asks there.
  for (const ShardIndex shard : skipped) note_skip(shard);
}

void Node::note_skip(ShardIndex shard) {
  if (shard.value() >= replicas_.size()) return;
  broker_->loop_of(shard).post([this, shard, alive = alive_] {
    if (*alive && replicas_[shard.value()]) replicas_[shard.value()]->try_again();
  });
}

void Node::connection_broke(const NodeName& node) {
  router_.connection_broke(node);
  loop_->post([this, node, alive = alive_] {
    if (*alive) state_.suspect(node, time_.read().steady);
  });
}

// A shard that is served by somebody else than before, or anew: what was handed over to the last
// owner may have been lost. If it is this node's, somebody has claimed it who was late, and perhaps
// has given way already.
void Node::note_service(const Beat& beat) {
  for (const auto& [shard, reached] : beat.reached) {
    if (reached.service == 0 || shard.value() >= views_.size()) continue;
    ShardView& view = views_[shard.value()];
    if (view.service == reached.service) continue;
    view.service = reached.service;
    broker_->hand_over_again();
    if (view.role != Replica::Role::kOwner || beat.node == options_.name) continue;
    broker_->loop_of(shard).post([this, shard = shard, alive = alive_] {
      if (*alive && replicas_[shard.value()]) replicas_[shard.value()]->verify_ownership();
    });
  }
}

void Node::on_alarm() {
  const SteadyInstant now = time_.read().steady;
  if (now >= next_beat_) {
    next_beat_ = now + kBeatInterval;
    collect_reached();
    beat();
  }
  reconcile();
  outside_.looked_around(state_, figures_);
  alarm_->set(kLookInterval);
}

void Node::beat() {
  Beat beat{.node = options_.name,
            .process = process_,
            .zone = options_.zone,
            .address = options_.address,
            .version = options_.version,
            .clock = time_.read().now,
            .format = options_.format,
            .draining = draining_,
            .ready = is_ready(),
            .reached = reached_,
            .count = ++beats_,
            .given_up = given_up_,
            .other_past = other_past_,
            .stalled = stalls_.all()};
  tell_links(beat);
  control_.append(std::move(beat));
}

void Node::tell_links(Beat& beat) {
  auto links = transport_.links();
  if (!links || links->with.size() > kControlLinksMax) return;
  beat.linked = std::move(links->with);
  const SteadyInstant now = time_.read().steady;
  for (const auto& [name, why] : links->without)
    if (state_.is_alive(name, now) && beat.unlinked.size() < kControlLinkReasonsMax)
      beat.unlinked.emplace(name, control_reason(why));
}

bool Node::is_ready() const {
  if (!control_.has_caught_up()) return false;
  for (std::uint32_t i = 0; i < options_.shards; ++i)
    if (views_[i].role != Replica::Role::kNone && !reached_.contains(ShardIndex(i))) return false;
  return true;
}

// Every replica tells what it has reached, from its own loop, for the next beat.
void Node::collect_reached() {
  for (std::uint32_t i = 0; i < options_.shards; ++i) {
    const ShardIndex shard(i);
    broker_->loop_of(shard).post([this, shard, alive = alive_] {
      if (!*alive || !replicas_[shard.value()]) return;
      loop_->post([this, shard, reached = replicas_[shard.value()]->reached(),
                   figures = replicas_[shard.value()]->figures(),
                   given_up = replicas_[shard.value()]->why_given_up(),
                   other_past = replicas_[shard.value()]->has_other_past(), alive] {
        if (!*alive) return;
        figures_.insert_or_assign(shard, figures);
        set_given_up(shard, given_up, other_past);
        note_stall(shard, figures);
        reached ? (void)reached_.insert_or_assign(shard, *reached) : (void)reached_.erase(shard);
      });
    });
  }
}

void Node::reconcile() {
  // Half of what has happened would be decided upon as if it were all.
  if (!control_.has_caught_up()) return;
  const SteadyInstant now = time_.read().steady;
  look_at_formats();
  if (state_.coordinator() == options_.name) {
    act_as_coordinator(now);
  } else if (!state_.is_alive(state_.coordinator(), now) && !draining_ &&
             !state_.is_drained(options_.name) && state_.is_alive(options_.name, now) &&
             (!claimed_at_ || now - *claimed_at_ >= kRepeatAfter)) {
    claimed_at_ = now;
    control_.append(CoordinatorClaim{state_.term().next(), options_.name, process_ + claims_++});
  }
  for (std::uint32_t i = 0; i < options_.shards; ++i) look_at_shard(ShardIndex(i), now);
}

// A newer format is written only when all nodes can read it.
void Node::look_at_formats() {
  const std::uint32_t format = std::min(options_.format, state_.format_of_all());
  if (format == 0 || format_.exchange(format) == format) return;
  for (std::uint32_t i = 0; i < options_.shards; ++i)
    broker_->loop_of(ShardIndex(i)).post([this, i, format, alive = alive_] {
      if (*alive && replicas_[i]) replicas_[i]->write_format(format);
    });
}

// On the shard's loop, RE3: what this node knows may be of yesterday. When it has read a beat that it
// sends now, it has read everything that was decided before.
void Node::note_overtaken(ShardIndex shard) {
  loop_->post([this, shard, alive = alive_] {
    if (!*alive) return;
    ShardView& view = views_[shard.value()];
    view.heard_from = beats_ + 1;
    if (view.role == Replica::Role::kOwner) set_role(shard, Replica::Role::kStandby);
    beat();
  });
}

// On the shard's loop. The others should know soon: one of them may be able to have the shard.
void Node::note_given_up(ShardIndex shard, const Failure& why) {
  outside_.gave_up(shard, why);
  loop_->post([this, shard, why = why.message,
               other_past = replicas_[shard.value()]->has_other_past(), alive = alive_] {
    if (!*alive) return;
    reached_.erase(shard);
    set_given_up(shard, why, other_past);
    note_stall(shard, {});
    beat();
  });
}

// For the next beat. An empty reason: it has not.
void Node::set_given_up(ShardIndex shard, const std::string& why, bool other_past) {
  why.empty() ? (void)given_up_.erase(shard)
              : (void)given_up_.insert_or_assign(shard, control_reason(why));
  other_past ? (void)other_past_.insert(shard) : (void)other_past_.erase(shard);
}

// The shard's owner tells, be it that it claims the log in vain.
void Node::note_stall(ShardIndex shard, const Replica::Figures& figures) {
  const auto& assignment = state_.shard(shard).assignment;
  const bool is_owned =
      assignment && assignment->owner == options_.name && !given_up_.contains(shard);
  const Stalls::Change change = stalls_.look_at(
      shard, {.owned = is_owned, .serving = figures.serving, .stall = figures.stall}, time_.read());
  if (change.news == Stalls::News::kNone) return;
  const auto stall = stalls_.all().find(shard);
  outside_.stalled(shard, change, stall == stalls_.all().end() ? nullptr : &stall->second);
}

void Node::act_as_coordinator(SteadyInstant now) {
  for (Assignment& made : plan_assignments(state_, now)) {
    ShardView& view = views_[made.shard.value()];
    if (view.planned == made.number && now - view.planned_at < kRepeatAfter) continue;
    view.planned = made.number;
    view.planned_at = now;
    control_.append(std::move(made));
  }
}

// Whether the owner before this one has given way, or need not be waited for.
bool Node::may_claim(ShardIndex index, SteadyInstant now) const {
  const ControlState::Shard& shard = state_.shard(index);
  const NodeName& previous = shard.assignment->previous;
  if (beats_read_ < views_[index.value()].heard_from) return false;
  if (previous == options_.name || shard.is_released()) return true;
  return !state_.is_alive(previous, now) || now - views_[index.value()].since >= kReleaseWait;
}

void Node::look_at_shard(ShardIndex index, SteadyInstant now) {
  const auto& assignment = state_.shard(index).assignment;
  if (!assignment) return;
  ShardView& view = views_[index.value()];
  const bool is_new = view.assignment != assignment->number;
  if (is_new) {
    view.assignment = assignment->number;
    view.since = now;
  }
  Replica::Role role = Replica::Role::kNone;
  if (assignment->includes(options_.name)) role = Replica::Role::kStandby;
  if (assignment->owner == options_.name &&
      (view.role == Replica::Role::kOwner || may_claim(index, now)))
    role = Replica::Role::kOwner;
  if (view.role != role || (is_new && role == Replica::Role::kOwner)) set_role(index, role);
  const NodeName owner = assignment->owner == options_.name ? NodeName() : assignment->owner;
  if (view.owner != owner) {
    view.owner = owner;
    broker_->loop_of(index).post([this, index, owner, alive = alive_] {
      if (*alive && !(replicas_[index.value()] && replicas_[index.value()]->serving()))
        router_.set_owner(index, owner);
    });
  }
  const Position saved = state_.saved_by_all(index, now);
  if (role == Replica::Role::kOwner && saved > view.dropped) {
    view.dropped = saved;
    broker_->loop_of(index).post([this, index, saved, alive = alive_] {
      if (*alive && replicas_[index.value()]) replicas_[index.value()]->drop_before(saved.next());
    });
  }
}

void Node::set_role(ShardIndex index, Replica::Role role) {
  ShardView& view = views_[index.value()];
  view.role = role;
  broker_->loop_of(index).post([this, index, role, number = view.assignment, alive = alive_] {
    if (*alive) replica_of(index).set_role(role, number);
  });
}

Replica& Node::replica_of(ShardIndex shard) {
  auto& replica = replicas_[shard.value()];
  if (replica) return *replica;
  broker::Loop& loop = broker_->loop_of(shard);
  replica = std::make_unique<Replica>(
      shard,
      Replica::Options{
          engine::Options{shard, options_.strict, options_.memory, options_.decision_messages},
          options_.keeping,
          {options_.write_timeout, options_.waiting_bytes, options_.hand_over_again}},
      *broker_, loop, background_, time_, entropy_,
      Replica::Outside{
          .open = [this, shard] { return outside_.open(shard); },
          .copy_store = [this, shard] { return outside_.copy_store(shard); },
          .not_copied = [this, shard](const Failure& why) { outside_.not_copied(shard, why); },
          .note_past = [this, shard](bool is_other) { return outside_.note_past(shard, is_other); },
          .gave_up = [this, shard](const Failure& why) { note_given_up(shard, why); },
          .released =
              [this, shard](AssignmentNo number) {
                control_.append(Release{options_.name, shard, number});
              },
          .role_changed = [this, shard] { note_role(shard); },
          .overtaken = [this, shard] { note_overtaken(shard); },
          .said = [this, shard](const std::string& what) { outside_.said(shard, what); }});
  replica->write_format(format_);
  return *replica;
}

// On the shard's loop: it is served here from now on, or no longer. The others should know soon.
void Node::note_role(ShardIndex shard) {
  const Replica& replica = *replicas_[shard.value()];
  if (replica.serving()) {
    router_.serve_here(shard);
  } else {
    router_.set_owner(shard, {});
  }
  loop_->post([this, shard, reached = replica.reached(), alive = alive_] {
    if (!*alive) return;
    views_[shard.value()].owner.reset();
    if (reached) reached_.insert_or_assign(shard, *reached);
    beat();
  });
}

void Node::lost(ShardIndex shard, std::string_view why) {
  if (replicas_[shard.value()]) replicas_[shard.value()]->lost(why);
}

void Node::back_up(ShardIndex shard, journal::LogOffset end, broker::Keeper::Backup backup) {
  const auto& replica = replicas_[shard.value()];
  if (!replica) return backup.done(fail("it is not here"));
  replica->back_up(end, std::move(backup));
}

void Node::drain() {
  draining_ = true;
  beat();
}

}  // namespace stanchion::fleet
