// Several simulated machines that write one log, as Kafka would keep it: a service that appends
// whatever it gets, from anybody, in the order in which it arrives; and the journal of a shard on
// it, by the rules of journal/shared_log.h.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "journal/journal.h"
#include "journal/shared_journal.h"
#include "journal/shared_log.h"
#include "sim/world.h"

namespace stanchion::sim {

// Rules that can be left out, to see that they are needed.
struct FleetRules {
  bool knows_others = true;    // Shards know that others may write their logs.
  bool barriers = true;        // Replies that wrote nothing wait for a proof.
  bool continuity = true;      // An acknowledgement counts only if what stands before it is known.
  bool reads_to_claim = true;  // A new owner knows everything that stands before its claim.
  bool skips_void = true;      // Readers leave out what a replaced owner appended.
  bool skips_doubled = true;   // Readers leave out what arrived twice.
  bool one_at_a_time = true;   // Of two that claim at once, one is refused.
  bool trims_by_all = true;    // The log is trimmed only when all replicas have what goes.
  bool frames_once = true;     // No request is taken to its owner twice.
  bool waits_for_all = true;   // A later format is written only when all nodes read it.
  bool checks_past = true;     // Who has other records than the log does not go on.
  bool meets_newer = false;    // Without that: who meets one that it cannot read has to cope.
  // Worlds have the faults of LogTrouble, and those that came with it.
  bool later_faults = true;
  // Those are there when these are left out; with the rules above, worlds are as they were.
  bool one_under_way = true;    // The next entry is sent when the one before is known.
  bool sees_unplaced = true;    // What was acknowledged without an offset counts when it was seen.
  bool gives_up_claims = true;  // A claim that may be lost is refused.
  bool heeds_skips = true;      // An entry that an operator has skipped is void.
  bool skips_foreign = true;    // So are bytes that no node has written.
  bool tells_links = true;      // Nodes say whom they have links with.
  bool rereads_beats = true;  // Who has lost a log claims when it has read what was decided (RE3).
  bool hands_over_again = true;  // What is not settled is handed over again after a while.
  bool log_stamps = true;        // The log has its own clock, and does not look at the nodes'.
  bool heeds_later = true;       // What only a later release can read is not passed over.
  friend bool operator==(const FleetRules&, const FleetRules&) = default;

  // Whether the worlds have the latest faults, by which the last rule is noticed.
  bool has_latest_faults() const {
    FleetRules others = *this;
    others.heeds_later = true;
    return others == FleetRules();
  }
  // Whether the worlds have the later faults.
  bool is_troubled() const {
    FleetRules others = *this;
    others.one_under_way = others.sees_unplaced = others.gives_up_claims = true;
    others.heeds_skips = others.skips_foreign = true;
    others.tells_links = others.rereads_beats = others.hands_over_again = others.log_stamps = true;
    others.heeds_later = true;
    return others == FleetRules();
  }
};

// What brokers and their clients do now and then, in some worlds.
struct LogTrouble {
  // The writer is as the real one: it sends one entry at a time, and hears of each at last.
  bool one_under_way = false;
  // Per mille of the entries: the client that has sent it is replaced. It is in the log when its
  // writer hears of that, or comes later, or never.
  unsigned anew = 0;
  unsigned fatal = 0;  // The same: the client fails for good.
  unsigned late = 0;   // Percent of the entries can be read only later than they were appended.
  // Percent of the control records.
  unsigned control_lost = 0, control_late = 0, control_doubled = 0;
  unsigned control_again = 0;    // Per mille of the readings begin with the first record again.
  bool clock_is_behind = false;  // That of the brokers, by hours.
  // Percent of the verdicts about transfers, as of those that go to an owner that is none any more.
  unsigned verdicts_lost = 0;

  bool is_felt() const {
    return anew + fatal + late + control_lost + control_late + control_doubled + control_again +
               verdicts_lost >
           0;
  }
};

// How a machine reaches a service: not at all while it is cut off.
struct Uplink {
  Micros cut_until = 0;
  // Until then it reads from a broker that leads no longer and does not know it: one that has
  // nothing from stale_end on.
  Micros stale_until = 0;
  journal::LogOffset stale_end{};
  Micros begun_anew = 0;  // When its client was last replaced.
  // When something that is sent now arrives, at the earliest.
  Micros departure(const World& world) const { return std::max(world.now(), cut_until); }
};

class SharedLog {
 public:
  // Bytes that no node of the fleet has written, or that cannot be read. What is of a later release counts
  // for all who can read it.
  enum class Litter { kNone, kStrange, kDamaged, kLater };
  struct Entry {
    journal::LogEntry head;
    std::vector<std::string> records;
    std::uint32_t format = 1;
    Litter litter = Litter::kNone;
    // As the log says when it is appended.
    Micros readable_at = 0;
    Position last{};  // The last record then.

    bool is_an_entry() const { return litter == Litter::kNone || litter == Litter::kLater; }
  };
  // What is on the disks of the brokers.
  struct Disk {
    std::deque<Entry> entries;
    std::uint64_t trimmed = 0;  // Entries that are gone.
  };

  // It can be read so much later.
  journal::LogOffset append(Entry entry, Micros now, Micros readable_in = 0);
  journal::Epoch epoch() const { return judge_.epoch(); }
  Position next() const { return judge_.next(); }
  // All records that were ever valid, seen from outside: the first has position 1.
  const std::vector<std::string>& history() const { return history_; }
  const Entry& at(journal::LogOffset offset) const;
  journal::LogOffset begin() const { return journal::LogOffset(disk_.trimmed); }
  journal::LogOffset end() const {
    return journal::LogOffset(disk_.trimmed + disk_.entries.size());
  }
  // Behind what can be read.
  journal::LogOffset readable_end(Micros now) const;
  // The last record before this offset.
  Position last_before(journal::LogOffset offset) const {
    return offset <= begin() ? Position() : at(journal::LogOffset(offset.value() - 1)).last;
  }
  void trim_before(journal::LogOffset offset);
  // As after a failure of all brokers at once: only the first entry that was not trimmed is left.
  void lose_behind_first() {
    ++failures_;
    keep(1);
  }
  // The same for the entries from the one on that has the first record behind `last`, but not the first
  // entry, while others read and write: they are told.
  void lose_behind(Position last);
  // As if it had never been written.
  void make_anew();
  const Disk& disk() const { return disk_; }
  // Older disks of all brokers come back.
  void restore(Disk older);
  // Of all brokers at once. What was on its way is lost with what is lost.
  std::uint64_t failures() const { return failures_; }

  // The broker that leads from now on has bad bytes for what comes, until another one leads.
  void damage(Micros until) {
    damaged_from_ = end();
    damaged_until_ = until;
  }
  bool is_damaged(journal::LogOffset offset, Micros now) const {
    return offset >= damaged_from_ && now < damaged_until_;
  }

  // `arrived` is called for every entry from now on, at once, until ignore() is called with the
  // number that this returns.
  std::uint64_t watch(std::function<void()> arrived) {
    watchers_.emplace(++watches_, std::move(arrived));
    return watches_;
  }
  void ignore(std::uint64_t watch) { watchers_.erase(watch); }

 private:
  // Only so many entries are left.
  void keep(std::size_t entries);

  Disk disk_;
  std::uint64_t failures_ = 0;
  journal::LogReader judge_;
  std::vector<std::string> history_;
  std::deque<Micros> claims_;  // When the last valid ones came.
  journal::LogOffset damaged_from_;
  Micros damaged_until_ = 0;
  std::uint64_t watches_ = 0;
  std::map<std::uint64_t, std::function<void()>> watchers_;
};

class SharedLogJournal final : public journal::SharedJournal {
 public:
  // What a journal is told of its machine.
  struct Site {
    std::uint32_t format = 1;             // The newest that this machine reads.
    const LogTrouble* trouble = nullptr;  // That may end; none: there is none.
    std::uint64_t seed = 0;               // Of trouble.
    std::function<bool(journal::LogOffset)> is_skipped = {};
  };
  static constexpr const char* kFatal = "the log cannot be written";

  SharedLogJournal(World& world, Owner owner, SharedLog& log, Uplink& uplink,
                   const FleetRules& rules, Site site);
  SharedLogJournal(World& world, Owner owner, SharedLog& log, Uplink& uplink,
                   const FleetRules& rules)
      : SharedLogJournal(world, owner, log, uplink, rules, Site()) {}
  ~SharedLogJournal() override;

  void follow(Position from, std::optional<journal::LogDigest> before,
              std::function<void()> arrived) override;
  Result<Progress> read(std::size_t bytes, const journal::RecordVisitor& visit) override;
  bool has_other_past() const override { return other_past_; }
  bool has_reached_end() const override { return reached_end_; }
  void claim() override;
  std::optional<Failure> refusal() const override {
    return has_failed_ ? std::optional(Failure{kFatal}) : std::nullopt;
  }
  std::optional<journal::LogStall> stall() const override;
  void write_format(std::uint32_t format) override {
    writes_ = rules_.waits_for_all ? format : reads_;
  }
  journal::LogOffset next_offset() const override { return cursor_; }
  std::uint64_t lag() const override {
    return log_.end() < cursor_ ? 0 : log_.end().value() - cursor_.value();
  }
  void drop_before(Position position) override;
  void trim_before(Position position) override {
    if (!rules_.trims_by_all) drop_before(position);
  }

  void start(journal::JournalEvents events) override { events_ = std::move(events); }
  Position append(std::string_view record) override;
  void flush() override;
  bool can_be_superseded() const override { return rules_.knows_others; }
  journal::Epoch epoch() const override { return claimed_; }
  journal::Proof barrier() override {
    barrier_wanted_ = true;
    return rules_.barriers ? journal::Proof(sent_ + 1) : journal::Proof();
  }
  journal::Proof proven() const override { return proven_; }
  Position durable() const override { return durable_; }
  Position next_position() const override { return next_; }
  std::optional<journal::LogDigest> digest() const override { return digest_; }
  journal::Room room() const override;
  Status close() override { return {}; }

 private:
  // What was sent and is not known to be in the log.
  struct Sent {
    std::uint64_t number;
    Position last;
    Micros at;
  };

  Micros way();
  bool per_mille(unsigned LogTrouble::*what);
  bool is_readable(const SharedLog::Entry& entry) const;
  // Broken on purpose: as if it were not there.
  bool passes_over(const SharedLog::Entry& entry) const {
    return !rules_.heeds_later && entry.format > reads_;
  }
  bool can_be_skipped(const SharedLog::Entry& entry, journal::LogOffset at) const;
  journal::LogOffset end() const;
  void look_again_when_there_is_more();
  bool has_trouble(const SharedLog::Entry& entry);
  void send_by_a_client_that_is_replaced(SharedLog::Entry entry);
  Micros readable_in();
  void send(SharedLog::Entry entry, std::uint64_t number);
  void send_next(bool only_barrier);
  void send_what_is_due();
  void acknowledged(journal::LogOffset at, std::uint64_t number);
  void acknowledged_without_offset();
  void give_way();
  bool has_lost_entries(journal::LogOffset own, std::uint64_t number) const;
  void begin_at(journal::LogOffset first);
  bool take_up_to(journal::LogOffset own);
  void take_own(const SharedLog::Entry& entry, journal::LogOffset at);
  void look_for_silence();
  Result<Progress> read_some(std::size_t bytes, const journal::RecordVisitor& visit);
  Status take(Position position, const std::string& record, bool anyway,
              const journal::RecordVisitor& visit);
  Status check_end();
  Status refuse(const char* why);
  Result<Progress> judge(const SharedLog::Entry& entry, journal::LogOffset at,
                         const journal::RecordVisitor& visit, std::size_t& bytes);

  World& world_;
  const Owner owner_;
  SharedLog& log_;
  Uplink& uplink_;
  const FleetRules rules_;
  Random random_;
  std::uint64_t writer_;
  const Site site_;
  Random troubled_;  // A stream of its own.
  const bool one_under_way_;
  const std::uint32_t reads_;  // The newest format.
  std::uint32_t writes_ = 1;
  journal::JournalEvents events_;
  std::function<void()> arrived_;
  std::uint64_t watch_ = 0;
  journal::LogReader reader_;
  bool looking_again_ = false;
  bool claim_is_lost_ = false;   // As far as is known.
  bool has_failed_ = false;      // For good.
  bool due_ = false;             // There was a flush() for what is pending.
  bool barrier_wanted_ = false;  // There was a barrier() since the last entry was sent.
  bool all_read_ = true;         // Otherwise nobody is told of further entries, as with Kafka.
  bool reached_end_ = false;
  bool other_past_ = false;
  bool positioned_ = false;           // The reader knows where the log begins.
  journal::LogOffset cursor_;         // The next entry to read.
  Position wanted_;                   // The first record that the caller has not.
  std::optional<Micros> claim_sent_;  // While it is under way.
  journal::Epoch claimed_;            // Of the claim under way, or of the log while it is owned.
  std::optional<journal::LogWriter> log_writer_;
  // Entries with valid records: the first position, and where they are.
  std::deque<std::pair<Position, journal::LogOffset>> places_;
  std::vector<std::string> pending_;
  std::optional<journal::LogDigest> pending_before_;  // The digest before them.
  Position next_{1};
  std::optional<journal::LogDigest> digest_;  // Of all records before that.
  Position durable_;
  std::uint64_t sent_ = 0;  // Entries that were sent to the log, behind the claim.
  std::deque<Sent> unknown_;
  Micros arrives_at_ = 0;   // Of the last one: the log gets them in order.
  bool listening_ = false;  // look_for_silence() is scheduled.
  journal::Proof proven_;
  bool superseded_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace stanchion::sim
