// One shard on one node: it follows the shard's log into an engine and a store of its own, and
// serves the shard while the log is its own.
//
//   closed ─open─▶ loading ─▶ following ─claim─▶ claiming ─▶ serving
//                     ▲           ▲  ▲              │refused    │ lost, or released by plan
//                     └─ copying ◀┘  └──────────────┘           │
//                        (trimmed)  closed ◀────────────────────┘ and opened again
//
// A replica that cannot go on gives the shard up: its store cannot be opened, its log cannot be read,
// because an entry is damaged or of a later release, or the log refuses for good what is written. It
// tries again now and then, from its store. The node goes on with its other shards.
//
//   RE1  An engine that has served is not followed on with: it may have decided what never was. The
//        replica begins anew from its store, which contains only what was in the log.
//   RE2  The store is opened again behind every commit of the last time that it was open.
//   RE3  Who lost the log, was refused, or had given the shard up, claims only when it is told once
//        more that it is the owner: two nodes that both take themselves for it would take the log
//        from each other without end. If that goes on all the same, it waits (claim_pace.h).
//   RE4  A store that has other records than the log, or more, is not replaced by a copy: it may be all
//        that is left of what the log has lost. That is noted beside the store before anybody else
//        hears of it, and holds until the log's end is reached with that store. A copy is replaced.
//   RE5  What it has read from the log, or written there, since the node was started, must be in the
//        log whenever it begins anew: a log that has lost its end is not gone on with, although the
//        store may be older than what is lost.
//
// Everything runs on the shard's loop, except what is said to run in the background.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "broker/background.h"
#include "broker/broker.h"
#include "broker/loop.h"
#include "broker/shard.h"
#include "fleet/claim_pace.h"
#include "fleet/control.h"
#include "fleet/limits.h"
#include "journal/shared_journal.h"
#include "store/store.h"

namespace stanchion::fleet {

struct ReplicaStatistics {
  std::uint64_t claims = 0, promotions = 0, losses = 0, releases = 0, copies = 0, refusals = 0,
                given_up = 0;
};

struct ReplicaFigures {
  bool serving = false;
  bool given_up = false;
  Duration lag{};             // While it follows; see Beat::Reached for how far it is.
  Duration last_promotion{};  // From the claim until it served.
  std::optional<journal::LogStall> stall{};
  ReplicaStatistics counted{};
};

class Replica {
 public:
  struct Storage {
    std::unique_ptr<journal::SharedJournal> log;
    std::shared_ptr<store::Store> store;
    bool other_past = false;  // As was noted last.
  };
  struct Outside {
    std::function<Result<Storage>()> open;  // In the background.
    // In the background: replaces the store by a copy of another replica's. The store is not open.
    // A failure is nothing to end for: it is tried again.
    std::function<Status()> copy_store;
    std::function<void(const Failure&)> not_copied;
    // In the background, RE4: whether the store has another past than the log, for whoever opens it
    // later, also after a restart.
    std::function<Status(bool)> note_past;
    std::function<void(const Failure&)> gave_up;  // The shard; see why_given_up().
    std::function<void(AssignmentNo)> released;   // Somebody else may claim.
    std::function<void()> role_changed;           // serving() has changed.
    std::function<void()> overtaken;              // RE3: it waits for set_role(kOwner).
    // For a person: what has become of the shard here, to be read after its name.
    std::function<void(const std::string&)> said = [](const std::string&) {};
  };
  struct Options {
    engine::Options engine;
    broker::KeeperOptions keeping;
    broker::Patience patience{};
  };

  // Everything must outlive the replica.
  Replica(ShardIndex shard, Options options, broker::Broker& broker, broker::Loop& loop,
          broker::Background& background, os::Time& time, os::Entropy& entropy, Outside outside);
  ~Replica();
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  // What the node should be for the shard. An owner claims at once; it is asked for that only when
  // the owner before it has given way, or is not waited for any longer.
  enum class Role { kNone, kStandby, kOwner };
  void set_role(Role role, AssignmentNo assignment);

  // What was wrong with the log may be mended: a shard that was given up is tried again at once.
  void try_again();

  // Somebody else may have claimed the log since: if so, this finds out.
  void verify_ownership();

  // Somebody else owns the log; see Peers::moved().
  void lost(std::string_view why);

  // The format in which the log is written from now on, while this is its owner.
  void write_format(std::uint32_t format);

  // Copies what it has when it has read its log up to `end`; see Keeper::back_up(). Fails if that, or
  // until the log has what it has decided as the owner, takes longer than kBackupPatience. All
  // functions are destroyed, and `done` may never be called, if the replica is closed while it copies.
  // One at a time.
  void back_up(journal::LogOffset end, broker::Keeper::Backup backup);

  // The log may drop what is before this.
  void drop_before(Position position);

  bool serving() const { return state_ == State::kServing; }
  bool following() const { return state_ == State::kFollowing; }
  // For a person; empty: it has not given the shard up.
  const std::string& why_given_up() const { return given_up_; }
  // It has, because its store has other records than the log, or more.
  bool has_other_past() const { return has_other_past_ && !given_up_.empty(); }
  bool is_closed() const { return state_ == State::kClosed; }
  // What it has reached, if it follows or serves.
  std::optional<Beat::Reached> reached() const;
  const broker::Shard* shard() const { return shard_.get(); }

  using Statistics = ReplicaStatistics;
  const Statistics& statistics() const { return statistics_; }
  using Figures = ReplicaFigures;
  Figures figures() const;

 private:
  enum class State { kClosed, kLoading, kFollowing, kClaiming, kServing, kReleasing, kGivenUp };
  struct Opened;

  void open(bool copy_first);
  using Alive = std::shared_ptr<bool>;
  void copy(const Alive& alive);
  void load(const Alive& alive);
  void copy_again(const Failure& why);
  void begin_with_a_copy();
  void give_up(const Failure& why);
  void note_past_and_tell(const Failure& why);
  void tell_given_up(const Failure& why);
  void mended();
  void overtaken();
  void opened(Result<std::unique_ptr<Opened>> result);
  void catch_up();
  void read_soon();
  void claim_if_owner();
  void claim_in(Duration wait);
  void promote();
  void release();
  void close();
  void begin_backup();
  void no_backup(std::string why);
  void stop_waiting_to_back_up();
  std::string no_backup_because_given_up() const;
  void remember_seen();
  Status apply(Position position, std::string_view record);
  bool has_lost_its_end();
  void note_other_past();
  void set_state(State state);
  // Runs on the loop, unless the replica or this opening of it has ended by then.
  broker::Task guarded(std::function<void()> task);

  const ShardIndex index_;
  const Options options_;
  broker::Broker& broker_;
  broker::Loop& loop_;
  broker::Background& background_;
  os::Time& time_;
  os::Entropy& entropy_;
  const Outside outside_;
  State state_ = State::kClosed;
  Role role_ = Role::kNone;
  AssignmentNo assignment_;
  std::unique_ptr<broker::Shard> shard_;
  journal::SharedJournal* log_ = nullptr;  // The shard's.
  bool reading_soon_ = false;
  bool has_other_past_ = false;  // RE4.
  bool past_is_noted_ = false;   // Beside the store.
  bool copied_ = false;          // This opening began with a copy of another's store.
  bool borrowed_ = false;        // The store is a copy, and the log's end was not reached with it.
  bool copy_next_ = false;       // The copy had other records than the log.
  // RE5: the furthest that it has been, and the digest there, if it was following.
  Position seen_;
  std::optional<journal::LogDigest> seen_digest_;
  bool doubted_ = false;  // While it claims; see verify_ownership().
  struct Backup {
    journal::LogOffset end;
    broker::Keeper::Backup copy;
  };
  std::optional<Backup> backup_;  // That waits until it has read so much.
  std::unique_ptr<broker::Alarm> backup_alarm_;
  std::unique_ptr<broker::Alarm> copy_alarm_;
  std::unique_ptr<broker::Alarm> retry_alarm_;  // After it has given up.
  std::unique_ptr<broker::Alarm> claim_alarm_;  // While claim_pace_ says to wait.
  ClaimPace claim_pace_;
  Duration retry_after_ = kRetryAfter;  // Grows with each time that it was in vain.
  bool gave_up_before_ = false;         // Since it followed last.
  bool refused_ = false;                // By the log, for good, when it gave up last.
  std::string given_up_;
  std::uint64_t service_ = 0;  // See Beat::Reached.
  std::uint32_t format_ = 1;   // That the log is written in.
  Statistics statistics_;
  SteadyInstant claimed_at_{};
  Duration last_promotion_{};
  // Replaced when the replica is closed, so that tasks of an earlier time do nothing.
  Alive alive_ = std::make_shared<bool>(true);
};

}  // namespace stanchion::fleet
