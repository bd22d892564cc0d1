// journal::Journal without threads: a SegmentLog on a simulated disk whose commits are events.
//
//   append ─▶ pending ─flush─▶ commit event, a random latency later ─▶ SegmentLog ─▶ events.durable
//
// Like LocalJournal it writes everything pending in one commit, calls prepare() afterwards, and
// retries a full disk every second. A crash falls before a commit, after it, or, with a disk that
// loses power after a number of operations, anywhere inside. What is appended while a commit is
// under way is in it too, or, as with LocalJournal, in the next one (`in_turn`).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "journal/journal.h"
#include "journal/segment_log.h"
#include "sim/world.h"

namespace stanchion::sim {

// Everything ever appended to one shard's journal, seen from outside of all processes: the
// reference for what a recovery finds.
struct History {
  std::vector<std::string> records;  // Records[i] has position i + 1.
  std::uint64_t durable = 0;         // Positions up to here were reported durable.
};

class SimJournal final : public journal::Journal {
 public:
  // The last position that the checkpoint on the disk contains; 0 if there is none.
  using Checkpointed = std::function<std::uint64_t()>;

  SimJournal(World& world, Owner owner, std::unique_ptr<journal::SegmentLog> log, History& history,
             Micros latency, bool in_turn, Checkpointed checkpointed);

  Status replay(Position from, const journal::RecordVisitor& visit) override;
  void start(journal::JournalEvents events) override;
  Position append(std::string_view record) override;
  void flush() override;
  Position durable() const override { return durable_; }
  Position next_position() const override { return next_; }
  journal::Room room() const override;
  std::uint64_t unwritten_bytes() const override { return pending_bytes_; }
  void trim_before(Position position) override;
  Status close() override;

 private:
  void schedule_commit();
  void schedule_look_for_space();
  Status commit();
  void fail_with(const Failure& failure);

  World& world_;
  const Owner owner_;
  std::unique_ptr<journal::SegmentLog> log_;
  History& history_;
  const Micros latency_;
  const bool in_turn_;
  const Checkpointed checkpointed_;
  journal::JournalEvents events_;
  bool started_ = false;
  Position next_;
  Position durable_;
  std::vector<journal::FrameBuilder> under_way_;  // In turn: what the commit under way contains.
  std::vector<journal::FrameBuilder> pending_;
  std::uint64_t pending_bytes_ = 0;
  bool commit_scheduled_ = false;
  bool flushed_meanwhile_ = false;
  bool look_scheduled_ = false;
  std::optional<Failure> failure_;
};

}  // namespace stanchion::sim
