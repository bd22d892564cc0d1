// What tests of one shard need around it: a loop and a background that run on demand, a clock that
// is a number, and a journal that reports when something is durable.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "broker/shard.h"

namespace stanchion::broker {

class ManualLoop final : public Loop {
 public:
  void post(Task task) override { tasks_.push_back(std::move(task)); }
  void defer(Task task) override { tasks_.push_back(std::move(task)); }
  void linger(Wanted wanted, Task task) override {
    lingering_.push_back({std::move(wanted), std::move(task)});
  }
  bool is_current() const override { return is_current_; }
  // From here on calls come as if from another thread.
  void leave() { is_current_ = false; }
  std::unique_ptr<Alarm> make_alarm(Task on_due) override {
    alarms_.push_back(std::move(on_due));
    return std::make_unique<NotedAlarm>(*this, alarms_.size() - 1);
  }

  // Lets the moment pass for which some tasks linger; returns how many of them were still wanted.
  std::size_t wait_a_moment() {
    std::size_t count = 0;
    for (auto& [wanted, task] : std::exchange(lingering_, {})) {
      if (!wanted()) continue;
      task();
      ++count;
    }
    run();
    return count;
  }

  // The deadline last set on a timer since the last call.
  std::optional<Duration> alarm() { return std::exchange(alarm_, std::nullopt); }

  // Fires the timer that was set last.
  void ring() {
    alarms_[last_set_]();
    run();
  }

  void ring_all() {
    for (Task& ring : alarms_) ring();
    run();
  }

  void run() {
    while (!tasks_.empty()) {
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }

 private:
  struct NotedAlarm final : Alarm {
    NotedAlarm(ManualLoop& owner, std::size_t place) : loop(owner), index(place) {}
    void set(Duration from_now) override {
      loop.alarm_ = from_now;
      loop.last_set_ = index;
    }
    ManualLoop& loop;
    const std::size_t index;
  };
  std::deque<Task> tasks_;
  std::vector<std::pair<Wanted, Task>> lingering_;
  std::vector<Task> alarms_;
  bool is_current_ = true;
  std::size_t last_set_ = 0;
  std::optional<Duration> alarm_;
};

class ManualBackground final : public Background {
 public:
  void run(Work work, Task task) override { of(work).push_back(std::move(task)); }

  // Does the work of one kind; false if there was none.
  bool work(Work work) {
    auto tasks = std::exchange(of(work), {});
    for (Task& task : tasks) task();
    return !tasks.empty();
  }
  // Only the task that has waited longest.
  bool work_once(Work work) {
    if (of(work).empty()) return false;
    Task task = std::move(of(work).front());
    of(work).pop_front();
    task();
    return true;
  }
  std::size_t waiting(Work work) { return of(work).size(); }

 private:
  std::deque<Task>& of(Work work) { return tasks_[static_cast<std::size_t>(work)]; }

  std::array<std::deque<Task>, kKindsOfWork> tasks_;
};

struct NumberClock final : os::Time {
  os::TimeReading read() override {
    return {at, SteadyInstant(at.time_since_epoch() + waited), hurries};
  }
  Instant at = from_millis(1'700'000'000'000);
  Duration waited{};  // How much more has passed by the steady clock.
  bool hurries = false;
};

struct CountingEntropy final : os::Entropy {
  void fill(std::span<std::uint8_t> bytes) override {
    for (std::uint8_t& byte : bytes) byte = next++;
  }
  std::uint8_t next = 0;
};

struct NotedPeers final : Peers {
  struct Verdict {
    ShardIndex to;
    TransferNo number;
    TransferVerdict verdict;
    friend bool operator==(const Verdict&, const Verdict&) = default;
  };
  ShardIndex shard_of(const QueueRef&) const override { return ShardIndex(0); }
  void deliver(ShardIndex, Transfer transfer, SourceEpoch) override {
    handed_over.push_back(std::move(transfer));
  }
  void tell_verdict(ShardIndex to, const Settlement& settlement) override {
    verdicts.push_back({to, settlement.number, settlement.verdict});
  }
  void fatal(ShardIndex, const Failure& failure) override { failures.push_back(failure); }
  void damaged(const QueueRef& queue, const Failure&) override {
    damaged_queues.push_back(queue.name);
  }
  void healed(const QueueRef& queue) override { std::erase(damaged_queues, queue.name); }

  std::vector<Transfer> handed_over;
  std::vector<Verdict> verdicts;
  std::vector<Failure> failures;
  std::vector<std::string> damaged_queues;
};

// Keeps its records, makes them durable when it is flushed unless it is held, and remembers what
// may be trimmed.
class HeldJournal final : public journal::Journal {
 public:
  // A journal without records begins behind the checkpoint with which it is opened.
  Status replay(Position from, const journal::RecordVisitor& visit) override {
    if (records_.empty()) {
      first_ = next_ = from;
      durable_ = flushed_ = Position(from.value() - 1);
    }
    for (Position at = from; at < next_; at = at.next())
      if (at != lost) RETURN_IF_FAILED(visit(at, records_[at.value() - first_.value()]));
    return {};
  }
  void start(journal::JournalEvents events) override { events_ = std::move(events); }
  Position append(std::string_view record) override {
    CHECK(!closed_, "append comes before close");
    records_.emplace_back(record);
    return std::exchange(next_, next_.next());
  }
  void flush() override {
    flushed_ = Position(next_.value() - 1);
    ++flushes_;
    if (!held) release();
  }
  // What was flushed while it was held becomes durable.
  void release() {
    held = false;
    release_up_to(flushed_);
    const bool is_news = proven_ < journal::Proof(flushes_);
    proven_ = journal::Proof(flushes_);
    if (is_news && events_.proven) events_.proven();
  }
  // A part of it does, and the rest is still held.
  void release_up_to(Position position) {
    CHECK(position <= flushed_, "only what was flushed becomes durable");
    if (durable_ >= position) return;
    durable_ = position;
    events_.durable(durable_);
  }
  // As of a log that somebody else may take over: then replies wait for proofs.
  bool can_be_superseded() const override { return owned.value() > 0; }
  journal::Epoch epoch() const override { return owned; }
  journal::Proof barrier() override {
    return owned.value() > 0 ? journal::Proof(flushes_ + 1) : journal::Proof();
  }
  journal::Proof proven() const override { return proven_; }
  void supersede() { events_.superseded(); }
  // What a process that dies now leaves behind.
  std::unique_ptr<HeldJournal> after_crash() const {
    CHECK(first_ == Position(1), "all records are there");
    auto left = std::make_unique<HeldJournal>();
    for (Position at = first_; at <= durable_; at = at.next())
      left->append(records_[at.value() - first_.value()]);
    left->flushed_ = left->durable_ = durable_;
    return left;
  }
  Position durable() const override { return durable_; }
  Position next_position() const override { return next_; }
  journal::Room room() const override { return room_left; }
  std::uint64_t unwritten_bytes() const override {
    std::uint64_t bytes = 0;
    for (Position at = durable_.next(); at < next_; at = at.next())
      bytes += records_[at.value() - first_.value()].size();
    return bytes;
  }
  void trim_before(Position position) override { trimmed = position; }
  Status close() override {
    closed_ = true;
    return {};
  }

  bool held = false;
  journal::Epoch owned{};  // Before the shard is made.
  journal::Room room_left = journal::Room::kPlenty;
  Position lost{};      // A record that is not replayed.
  Position trimmed{1};  // Records before this are no longer needed.

 private:
  journal::JournalEvents events_;
  std::vector<std::string> records_;  // From first_ on.
  Position first_{1};
  Position next_{1};
  Position flushed_;
  Position durable_;
  std::uint64_t flushes_ = 0;
  journal::Proof proven_;
  bool closed_ = false;
};

}  // namespace stanchion::broker
