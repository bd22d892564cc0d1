// Keeps the history of the queues: when a minute of the server's time is over, the figures of all
// shards become points of the history.
//
//   alarm on a loop ─▶ every shard's loop, a few queues at a time ─▶ one thread: points ─▶ store
//   questions, by turns (question_line.h) ─────────────────────────▶ the same thread ─▶ answers
//
//   HK1  The history can be lost, and never takes a queue with it: if its store is damaged, that is
//        set aside with a word in the log and begun anew; while the disk is full, points wait.
//   HK2  What is counted is durable before it is in a point, so that no crash takes it back.
//
// After a start, what the last process had counted and not written is put into the minute behind
// the last one that it wrote. Minutes that nobody saw end, because time jumped, have no points.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "broker/background.h"
#include "broker/broker.h"
#include "broker/loop.h"
#include "history/history.h"
#include "monitoring/question_line.h"
#include "os/timekeeper.h"

namespace stanchion::monitoring {

// Whether CloudWatch takes a queue to be active: it holds messages, or was called in the last six
// hours.
bool is_active(const engine::Counts& counts, Instant used, Instant now);

class HistoryKeeper {
 public:
  enum class Weight { kWarning, kError };
  using Tell = std::function<void(Weight, const std::string&)>;

  // `path`: of its store; empty: in memory. `names_bytes_max`: what it may keep in memory of the
  // queues, see history::Space. `tell` is called on the history's thread. Everything must outlive
  // the keeper, and the background must end before it.
  HistoryKeeper(std::string path, std::size_t names_bytes_max, broker::Broker& broker,
                broker::Background& background, os::Time& time, Tell tell);

  // Once, when the broker has started. Everything happens on this loop and in the background.
  void start(broker::Loop& loop);

  // Any loop's thread: `done` runs there when everything is written that was counted before time
  // is moved by this much …
  void before_move(broker::Loop& from, Duration by, broker::Task done);
  // … and when the minutes are written that ended by it.
  void after_move(broker::Loop& from, broker::Task done);

  // Not on a loop: writes what was counted since the last minute, before the process ends.
  void finish(std::chrono::milliseconds patience);

  // Any thread: `question` is called on the history's thread when it is the account's turn, with
  // nullptr if there is no history at the moment. False: too many wait, or the server stops.
  [[nodiscard]] bool ask(const std::string& account, QuestionLine::Question question);

  // Any thread: questions that wait are answered without the history, so that a stop need not wait
  // for them.
  void stop_answering() { questions_.stop(); }

 private:
  enum class Occasion { kStart, kMinute, kPartOfMinute };

  void arm();
  void on_alarm();
  void collect(broker::Loop& from, Occasion occasion, broker::Task done);

  // On the history's thread.
  void record(Occasion occasion, Instant now, broker::Figures figures);
  void expire(Instant now, broker::Task done);
  bool open(Instant now);
  void handle(const Failure& failure, Instant now);
  QuestionLine::Turn answer(QuestionLine::Question& question, bool stopping);

  const std::string path_;
  const std::size_t names_bytes_max_;
  broker::Broker& broker_;
  broker::Background& background_;
  os::Time& time_;
  const Tell tell_;
  QuestionLine questions_;

  std::atomic<std::int64_t> seen_all_{-1};  // The day on which all queues were looked at.

  broker::Loop* loop_ = nullptr;
  // On the loop.
  std::unique_ptr<broker::Alarm> alarm_;
  Minute open_minute_ = 0;  // The one that the alarm waits for to end.

  // On the history's thread.
  std::unique_ptr<history::History> history_;
  bool disk_was_full_ = false;
  bool was_unopened_ = false;
  std::set<std::string> left_out_;  // Accounts of which the log has said so.
};

}  // namespace stanchion::monitoring
