// How a shard's records get to its disk: when a commit begins, and what is sent once it has ended.
//
//   append ─▶ the round ends ─┬─ somebody is in a hurry ───────────────▶ flush ─▶ durable ─▶ replies
//                             └─ all are patient: a moment is given ─▶ flush
//
// Parked receives wait for a consumer whose next call unlocks their messages. Records that are
// patient were sent while such a receive waits: one commit serves both them and that call.
//
//   B1  A reply leaves only when every record that was appended before it was decided is durable.
//   B3  Among replies that became durable together, those of parked receives come first, in the
//       order in which they were decided, then all others in theirs.
//
// Everything runs on the shard's loop, except the journal's events, which only post to it.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "broker/loop.h"
#include "journal/journal.h"
#include "model/ids.h"

namespace stanchion::broker {

enum class Haste { kNow, kPatient };

class Committer {
 public:
  explicit Committer(journal::Journal& journal) : journal_(journal) {}
  ~Committer() { signal_->alive = false; }
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;

  // The journal was replayed: its records are durable.
  void recovered();

  // `durable` is called on the loop when something became durable, or the journal got room, and the
  // replies that waited for it are sent; `failed` on any thread.
  void start(Loop& loop, Task durable, std::function<void(const Failure&)> failed);

  // The loop has ended.
  void stop() { owner_.stop(); }

  // Returns the position that the record will have.
  Position append(std::string_view record, Haste haste);
  Position appended() const { return appended_; }
  Position durable() const { return journal_.durable(); }

  // Sends when everything appended so far is durable; at once if it is.
  void when_durable(Task send) { send_in_line(replies_, std::move(send)); }
  // The same, but before all other replies of its commit.
  void when_durable_first(Task send) { send_in_line(served_polls_, std::move(send)); }
  void send_durable();

  // Starts a commit of what was appended, without waiting for the end of the round.
  void flush_now();
  // Records that were patient while another commit was under way should go now that it has ended.
  void go_on() {
    owner_.check();
    if (!round_ends_) flush();
  }

 private:
  struct WaitingReply {
    Position position;
    Task send;
  };
  // Shared with the journal's thread: one task posted to the loop is enough, and no task may touch
  // a destroyed committer.
  struct Signal {
    std::atomic<bool> posted{false};
    std::atomic<bool> alive{true};
  };

  void flush();
  void send_in_line(std::deque<WaitingReply>& line, Task send);

  journal::Journal& journal_;
  OwningLoop owner_;
  Loop* loop_ = nullptr;
  Position appended_;
  Position flushed_;         // Later records were not flushed yet.
  bool round_ends_ = false;  // flush() is called when the round ends.
  bool hurry_ = false;       // Something unflushed must be flushed at once.
  bool lingering_ = false;   // The flush of patient records comes in a moment.
  std::deque<WaitingReply> replies_;
  std::deque<WaitingReply> served_polls_;
  std::shared_ptr<Signal> signal_ = std::make_shared<Signal>();
};

}  // namespace stanchion::broker
