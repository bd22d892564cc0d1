// Several simulated machines that write one log, as Kafka would keep it: a service that appends
// whatever it gets, from anybody, in the order in which it arrives, and acknowledges late; and the
// journal of a shard on it, by the rules of journal/shared_log.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "journal/journal.h"
#include "journal/shared_log.h"
#include "sim/world.h"

namespace stanchion::sim {

class SharedLog {
 public:
  struct Entry {
    journal::LogEntry head;
    std::vector<std::string> records;
  };

  journal::LogOffset append(Entry entry) {
    entries_.push_back(std::move(entry));
    return journal::LogOffset(entries_.size() - 1);
  }
  const Entry& at(journal::LogOffset offset) const {
    return entries_.at(static_cast<std::size_t>(offset.value()));
  }
  journal::LogOffset end() const { return journal::LogOffset(entries_.size()); }

 private:
  std::vector<Entry> entries_;
};

// Rules that can be left out, to see that they are needed.
struct SharedLogRules {
  bool barriers = true;        // Replies that wrote nothing wait for a proof.
  bool continuity = true;      // An acknowledgement counts only if what stands before it is known.
  bool reads_to_claim = true;  // A new owner knows everything that stands before its claim.
  bool skips_void = true;      // Readers leave out what a replaced owner appended.
};

class SharedLogJournal final : public journal::Journal {
 public:
  // Claims the log at once.
  SharedLogJournal(World& world, Owner owner, SharedLog& log, SharedLogRules rules);

  Status replay(Position from, const journal::RecordVisitor& visit) override;
  void start(journal::JournalEvents events) override { events_ = std::move(events); }
  Position append(std::string_view record) override;
  void flush() override;
  bool can_be_superseded() const override { return rules_.barriers; }
  journal::Proof barrier() override { return journal::Proof(sent_ + 1); }
  journal::Proof proven() const override { return proven_; }
  Position durable() const override { return durable_; }
  Position next_position() const override { return next_; }
  journal::Room room() const override {
    return superseded_ ? journal::Room::kNone : journal::Room::kPlenty;
  }
  void trim_before(Position) override {}
  Status close() override { return {}; }

  // From now on, what is sent arrives at the log this much later.
  void delay(Micros delay) { delay_ = delay; }

 private:
  void arrive(SharedLog::Entry entry, std::uint64_t number);
  void acknowledged(journal::LogOffset at, std::uint64_t number, Position last);
  bool look_at_gap(journal::LogOffset own);

  World& world_;
  const Owner owner_;
  SharedLog& log_;
  const SharedLogRules rules_;
  Random random_;
  journal::JournalEvents events_;
  journal::Epoch epoch_;
  journal::LogOffset claim_;
  std::optional<journal::LogWriter> writer_;
  std::vector<std::string> pending_;
  Position next_{1};
  Position durable_;
  std::uint64_t sent_ = 0;      // Entries that were sent to the log, behind the claim.
  Micros arrives_at_ = 0;       // Of the last one: the log gets them in order.
  Micros acknowledged_at_ = 0;  // Likewise.
  Micros delay_ = 0;
  journal::Proof proven_;
  bool superseded_ = false;
};

}  // namespace stanchion::sim
