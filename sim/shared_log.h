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
  friend bool operator==(const FleetRules&, const FleetRules&) = default;
};

// How a machine reaches the services: not at all while it is cut off.
struct Uplink {
  Micros cut_until = 0;
  // When something that is sent now arrives, at the earliest.
  Micros departure(const World& world) const { return std::max(world.now(), cut_until); }
};

class SharedLog {
 public:
  struct Entry {
    journal::LogEntry head;
    std::vector<std::string> records;
    std::uint32_t format = 1;
  };

  journal::LogOffset append(Entry entry, Micros now);
  journal::Epoch epoch() const { return judge_.epoch(); }
  Position next() const { return judge_.next(); }
  // All records that were ever valid, seen from outside: the first has position 1.
  const std::vector<std::string>& history() const { return history_; }
  const Entry& at(journal::LogOffset offset) const;
  journal::LogOffset begin() const { return journal::LogOffset(trimmed_); }
  journal::LogOffset end() const { return journal::LogOffset(trimmed_ + entries_.size()); }
  void trim_before(journal::LogOffset offset);
  // As after a failure of all brokers at once: only the first entry that was not trimmed is left.
  void lose_behind_first() { keep(1); }
  // The same for the entries from the one on that has the first record behind `last`, while others
  // read and write: they are told.
  void lose_behind(Position last);
  // As if it had never been written.
  void make_anew();

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

  std::deque<Entry> entries_;
  std::uint64_t trimmed_ = 0;  // Entries that are gone.
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
  // `format` is the newest that this machine reads.
  SharedLogJournal(World& world, Owner owner, SharedLog& log, const Uplink& uplink,
                   const FleetRules& rules, std::uint32_t format = 1);
  ~SharedLogJournal() override;

  void follow(Position from, std::optional<journal::LogDigest> before,
              std::function<void()> arrived) override;
  Result<Progress> read(std::size_t bytes, const journal::RecordVisitor& visit) override;
  bool has_other_past() const override { return other_past_; }
  bool has_reached_end() const override { return reached_end_; }
  void claim() override;
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
  };

  Micros way();
  bool is_readable(const SharedLog::Entry& entry) const;
  void send(SharedLog::Entry entry, std::function<void(journal::LogOffset)> acknowledged);
  void acknowledged(journal::LogOffset at, std::uint64_t number);
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
  const Uplink& uplink_;
  const FleetRules rules_;
  Random random_;
  const std::uint64_t writer_;
  const std::uint32_t reads_;  // The newest format.
  std::uint32_t writes_ = 1;
  journal::JournalEvents events_;
  std::function<void()> arrived_;
  std::uint64_t watch_ = 0;
  journal::LogReader reader_;
  bool all_read_ = true;  // Otherwise nobody is told of further entries, as with Kafka.
  bool reached_end_ = false;
  bool other_past_ = false;
  bool positioned_ = false;    // The reader knows where the log begins.
  journal::LogOffset cursor_;  // The next entry to read.
  Position wanted_;            // The first record that the caller has not.
  journal::Epoch claimed_;     // Of the claim under way, or of the log while it is owned.
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
