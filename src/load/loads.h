// The requests that the workers of a run make: the loads of `stanchion bench`.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "load/loop.h"
#include "load/replies.h"

namespace stanchion::load {

// Decides when replies count, and when no new work begins.
class Window {
 public:
  // By time, after a warm-up; or, with count > 0, until that many messages were measured.
  Window(Time from, Time until, std::uint64_t count) : from_(from), until_(until), count_(count) {}

  bool open(Time now) const { return count_ > 0 ? true : now < until_; }
  // Whether a reply at this instant counts; if so, it is the last one so far.
  bool measures(Time now) {
    if (now < from_ || (count_ == 0 && now > until_)) return false;
    last_ = now;
    return true;
  }
  // The load has ended, at its time or before: later replies could not have counted.
  void close(Time now) { until_ = std::min(until_, now); }
  bool warms_up(Time now) const { return now < from_; }
  std::uint64_t count() const { return count_; }
  // How long the measurement lasted. 0 if the load ended before it began.
  double seconds() const { return seconds_between(from_, count_ > 0 ? last_ : until_); }
  // The remaining time, if the load is limited by time.
  double seconds_left(Time now) const { return seconds_between(now, until_); }

 private:
  static double seconds_between(Time from, Time to) {
    return std::max(0.0, std::chrono::duration<double>(to - from).count());
  }

  Time from_;
  Time until_;
  std::uint64_t count_;
  Time last_ = from_;
};

// State that all loads of a run share.
struct Shared {
  const Options& options;
  RequestWriter& writer;
  Ledger& ledger;
  Stats& stats;
  Errors& refusals;     // Of entries of batches.
  std::uint64_t& done;  // Messages of the load's main operation, measured or not.
  ReplyReader reader{};
  std::size_t turn = 0;

  // Queues take turns.
  std::uint32_t next_queue() { return static_cast<std::uint32_t>(turn++ % writer.queue_count()); }
  // Reads the rows of an answer and records refused entries.
  bool read(std::string_view body);
};

// A request that carries new messages, and its answer.
void write_send(Shared& shared, Worker& worker, std::uint32_t queue, std::size_t count);
bool take_sent(Shared& shared, Worker& worker, std::string_view body);
// Records the received messages and keeps their receipts in the worker. False if it is not an
// answer.
bool take_received(Shared& shared, Worker& worker, std::string_view body);

// Sends until the window closes, or until the window's number of messages is sent.
class SendLoad final : public Load {
 public:
  SendLoad(Shared& shared, Window& window, bool measured, std::size_t batch)
      : shared_(shared), window_(window), measured_(measured), batch_(batch) {}

  bool begins_unit(const Worker&) const override { return true; }
  Next next(Worker& worker, Time now) override;
  bool on_reply(Worker& worker, std::string_view body, Time now) override;
  void on_failure(Worker& worker) override { worker.step = Worker::Step::kIdle; }
  bool finished(Time) const override { return false; }

 private:
  Shared& shared_;
  Window& window_;
  const bool measured_;
  const std::size_t batch_;
  std::uint64_t begun_ = 0;
};

// Receipts of messages that were received and not yet deleted, by queue.
using Receipts = std::vector<std::vector<std::string>>;

// Receives all available messages, and keeps their receipts.
class ReceiveLoad final : public Load {
 public:
  ReceiveLoad(Shared& shared, bool measured, Receipts& receipts, std::uint64_t expected)
      : shared_(shared), measured_(measured), receipts_(receipts), expected_(expected) {}

  bool begins_unit(const Worker&) const override { return true; }
  Next next(Worker& worker, Time now) override;
  bool on_reply(Worker& worker, std::string_view body, Time now) override;
  void on_failure(Worker& worker) override { worker.step = Worker::Step::kIdle; }
  bool finished(Time) const override;

  std::uint64_t received() const { return received_; }

 private:
  Shared& shared_;
  const bool measured_;
  Receipts& receipts_;
  const std::uint64_t expected_;
  std::uint64_t received_ = 0;
  std::uint64_t empty_in_a_row_ = 0;
};

// Deletes the received messages.
class DeleteLoad final : public Load {
 public:
  DeleteLoad(Shared& shared, bool measured, Receipts& receipts)
      : shared_(shared), measured_(measured), receipts_(receipts) {}

  bool begins_unit(const Worker&) const override { return true; }
  Next next(Worker& worker, Time now) override;
  bool on_reply(Worker& worker, std::string_view body, Time now) override;
  void on_failure(Worker& worker) override;
  bool finished(Time) const override { return false; }

 private:
  Shared& shared_;
  const bool measured_;
  Receipts& receipts_;
};

// Sends, receives and deletes. Sending pauses while more messages wait than at the beginning, so
// that a server that is slow at receiving shows it. When the window closes, the sent messages are
// received and deleted, unless a backlog is in the way.
class CycleLoad final : public Load {
 public:
  enum class Ending { kTakeAll, kLeave };
  CycleLoad(Shared& shared, Window& window, Ending ending);

  bool begins_unit(const Worker& worker) const override;
  Next next(Worker& worker, Time now) override;
  bool on_reply(Worker& worker, std::string_view body, Time now) override;
  void on_failure(Worker& worker) override;
  bool finished(Time now) const override;

 private:
  bool sends(Time now) const;
  bool all_taken() const;
  bool stalled(Time now) const;
  bool enough_waits() const;
  void set_step(Worker& worker, Worker::Step step);

  Shared& shared_;
  Window& window_;
  const Ending ending_;
  const std::int64_t backlog_max_;
  std::uint64_t begun_ = 0;
  std::size_t busy_ = 0;  // Workers whose request is a send or a delete, or leads to a delete.
  Time last_progress_{};
};

// One worker sends, alternately to a queue on which the others wait and to one on which nobody
// does. REQUIRES: two queues.
class WakeUpLoad final : public Load {
 public:
  WakeUpLoad(Shared& shared, Window& window);

  bool begins_unit(const Worker&) const override { return false; }
  Next next(Worker& worker, Time now) override;
  bool on_reply(Worker& worker, std::string_view body, Time now) override;
  void on_failure(Worker& worker) override;
  bool finished(Time now) const override { return !window_.open(now); }

 private:
  static constexpr std::uint32_t kPolled = 0;
  static constexpr std::uint32_t kPlain = 1;

  Next next_send(Worker& worker, Time now);
  void note_wake_up(Time now);

  Shared& shared_;
  Window& window_;
  const Histogram::Nanos gap_;
  bool waking_ = false;    // The send under way, or the last one, is to the polled queue.
  bool expected_ = false;  // A poll is to be woken and was not yet.
  Time sent_;
  Time answered_{};  // When the send was answered; Time{}: not yet.
  Time woken_{};     // When a poll was answered; likewise.
  Time next_at_{};
};

// Posts the same bytes again and again.
class HttpLoad final : public Load {
 public:
  HttpLoad(Shared& shared, Window& window, std::string body)
      : shared_(shared), window_(window), body_(std::move(body)) {}

  bool begins_unit(const Worker&) const override { return true; }
  Next next(Worker& worker, Time now) override;
  bool on_reply(Worker& worker, std::string_view body, Time now) override;
  void on_failure(Worker& worker) override { worker.step = Worker::Step::kIdle; }
  bool finished(Time) const override { return false; }

 private:
  Shared& shared_;
  Window& window_;
  const std::string body_;
  std::uint64_t begun_ = 0;
};

}  // namespace stanchion::load
