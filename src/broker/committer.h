// How a shard's records get to its disk: when a commit begins, and what is sent once it has ended.
//
//   append ─▶ the round ends ─┬─ somebody is in a hurry ───────────────▶ flush ─▶ durable ─▶ replies
//                             └─ all are patient: a moment is given ─▶ flush
//
// Parked receives wait for a consumer whose next call unlocks their messages. Records that are
// patient were sent while such a receive waits: one commit serves both them and that call.
//
//   B1  A reply leaves only when every record that was appended before it was decided is durable,
//       and the journal has proven since that nobody else writes its log: by a commit, or, where
//       nothing was written, by a barrier. Replies that only show state may rely on a proof of the
//       last second. Where nobody else can write the log, the proof costs nothing.
//   B6  Once somebody else writes the log, no reply leaves at all.
//   B8  No client waits for the log for longer than the patience that the committer was given. One
//       whose call may have changed something learns that nobody knows; what it waited for may
//       become durable all the same.
//   B3  Among replies that became durable together, those of parked receives come first, in the
//       order in which they were decided, then all others in theirs.
//
// Everything runs on the shard's loop, except the journal's events, which only post to it.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "base/time.h"
#include "broker/loop.h"
#include "broker/parked_polls.h"
#include "journal/journal.h"
#include "model/ids.h"
#include "model/reply.h"

namespace stanchion::broker {

enum class Haste { kNow, kPatient };

// What a reply needs to know about the log's owner (B1).
enum class Proven {
  kNow,       // It must have been us after the request was decided.
  kRecently,  // It may have been us a moment ago: the reply shows state and promises nothing.
};

// What may wait for the log and for other shards: for how long, and how much of it.
struct Patience {
  Duration time = Duration::max();
  std::size_t bytes = std::numeric_limits<std::size_t>::max();
  // A transfer that is not settled after so long is handed over again, and each time twice as late, where
  // shards are on several machines.
  Duration hand_over_again = std::chrono::seconds(3);
};

// What a client gets when it is durable.
struct ClientReply {
  Respond respond;
  Reply reply;
  bool changes = false;  // Its call may have changed something.
};

class Committer {
 public:
  explicit Committer(journal::Journal& journal, const Patience& patience = {})
      : journal_(journal), must_prove_(journal.can_be_superseded()), patience_(patience) {}
  ~Committer() { signal_->alive = false; }
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;

  // The journal was replayed: its records are durable.
  void recovered();

  // `durable` is called on the loop when something became durable, or the journal got room, and the
  // replies that waited for it are sent; `failed` on any thread.
  // `superseded` is called on the loop when somebody else writes the log.
  void start(Loop& loop, Task durable, std::function<void(const Failure&)> failed, Task superseded);

  // The loop has ended.
  void stop() { owner_.stop(); }

  // Returns the position that the record will have.
  Position append(std::string_view record, Haste haste);
  Position appended() const { return appended_; }
  Position durable() const { return journal_.durable(); }

  // The time by which the age of proofs is measured.
  void set_time(SteadyInstant now) { now_ = now; }

  // Runs when everything appended so far is durable and ownership is proven; at once if it is. No
  // client waits for it, so it waits for as long as that takes.
  void when_durable(Task task, Proven proven = Proven::kNow) {
    send_in_line(replies_, std::move(task), proven);
  }
  // The same with a reply, which does not wait for ever (B8).
  void answer_when_durable(ClientReply reply, Proven proven) {
    send_in_line(replies_, std::move(reply), proven);
  }
  // The same, but before all other replies of its commit.
  void answer_when_durable_first(ClientReply reply) {
    send_in_line(served_polls_, std::move(reply), Proven::kNow);
  }
  void send_durable();

  // B8, by the time that was set last; true if somebody had waited too long.
  bool answer_overdue();
  // Nobody has waited too long before this.
  SteadyInstant next_deadline() const {
    return waiting_bytes_ == 0 ? SteadyInstant::max() : overdue_at_;
  }
  // About how much the replies take that wait.
  std::size_t waiting_bytes() const { return waiting_bytes_; }

  // Somebody else writes the log (B6): what waits is dropped, and so is everything that comes.
  void drop_replies();

  // Starts a commit of what was appended, without waiting for the end of the round.
  void flush_now();
  // Records that were patient while another commit was under way should go now that it has ended.
  void go_on() {
    owner_.check();
    if (!round_ends_) flush();
  }

 private:
  using What = std::variant<Task, ClientReply>;
  struct WaitingReply {
    Position position;
    journal::Proof proof;
    What what;
    SteadyInstant deadline = SteadyInstant::max();
    std::size_t bytes = 0;
  };
  // A proof that was asked for.
  struct Barrier {
    journal::Proof proof;
    SteadyInstant asked;
  };
  // Shared with the journal's thread: one task posted to the loop is enough, and no task may touch
  // a destroyed committer.
  struct Signal {
    std::atomic<bool> posted{false};
    std::atomic<bool> alive{true};
  };

  void flush();
  void flush_when_round_ends();
  journal::Proof ask_for_proof(Proven proven);
  void note_proofs();
  void send_in_line(std::deque<WaitingReply>& line, What what, Proven proven);
  static void send(What what);
  WaitingReply take_first(std::deque<WaitingReply>& line);
  void take_overdue(std::deque<WaitingReply>& line, std::deque<ClientReply>& into);

  journal::Journal& journal_;
  const bool must_prove_;
  const Patience patience_;
  OwningLoop owner_;
  Loop* loop_ = nullptr;
  Position appended_;
  Position flushed_;         // Later records were not flushed yet.
  bool round_ends_ = false;  // flush() is called when the round ends.
  bool hurry_ = false;       // Something unflushed must be flushed at once.
  bool lingering_ = false;   // The flush of patient records comes in a moment.
  bool silent_ = false;      // See drop_replies().
  SteadyInstant now_ = SteadyInstant::min();
  SteadyInstant proven_at_ = SteadyInstant::min();  // When the last proof was asked for.
  std::deque<Barrier> barriers_;                    // Not given yet.
  std::deque<WaitingReply> replies_;
  std::deque<WaitingReply> served_polls_;
  std::size_t waiting_bytes_ = 0;                    // Of both.
  SteadyInstant overdue_at_ = SteadyInstant::max();  // No reply is overdue before this.
  std::shared_ptr<Signal> signal_ = std::make_shared<Signal>();
};

}  // namespace stanchion::broker
