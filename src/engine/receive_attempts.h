// ReceiveRequestAttemptId: a consumer that lost the answer to a receive repeats it under the same
// id and gets the same messages with the same receipts.
//
// An attempt can be repeated while all of its messages are in flight since then. So those that are
// worth remembering are no more than the messages in flight, and the others are forgotten before
// their time.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "base/time.h"
#include "engine/store/store_keys.h"
#include "model/batch.h"
#include "model/ids.h"

namespace stanchion::engine {

struct ReceiveAttempt {
  struct Item {
    Seq seq;
    std::uint32_t receive = 0;
    Instant visible_again;
  };
  std::vector<Item> items;
  Instant expires;
};

class ReceiveAttempts {
 public:
  const ReceiveAttempt* find(std::string_view id) const;

  // A new attempt under this id, or the same one with its visibility timeouts restarted.
  void remember(const std::string& id, ReceiveAttempt attempt);
  void expire(Instant now);
  // Looks at a few of them, at others with each call, and forgets those that cannot be repeated any
  // more.
  template <class IsOver>
  void forget_some(const IsOver& is_over) {
    for (int looks = 0; looks < kLooks && !attempts_.empty(); ++looks) {
      auto at = attempts_.upper_bound(looked_at_);
      if (at == attempts_.end()) at = attempts_.begin();
      looked_at_ = at->first;
      if (is_over(at->second.attempt)) forget(at);
    }
  }

  // A checkpoint writes what differs from the last one: begin_save() fixes what that is, and calls
  // of save_some() write it, each of which looks at this many attempts at most and returns how many
  // it looked at. The batch must live until nothing is pending.
  void begin_save(Batch& batch, StockName stock);
  bool has_pending() const { return !pending_.empty() || !pending_erased_.empty(); }
  std::size_t save_some(std::size_t count);
  // Reads one attempt back; the queue had given the numbers below `end`.
  Status load(StockName stock, std::string_view key, std::string_view value, Seq end);

  Instant next_deadline() const { return by_expiry_.empty() ? kNever : by_expiry_.begin()->first; }
  std::size_t size() const { return attempts_.size(); }
  // Of memory.
  std::size_t bytes() const { return bytes_; }

  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (const auto& [id, kept] : attempts_) visit(id, kept.attempt);
  }

 private:
  struct Kept {
    ReceiveAttempt attempt;
    bool saved = false;  // The store has an attempt of this id.
  };
  using Attempts = std::map<std::string, Kept, std::less<>>;
  // One is added with each call, so that at most a third of what is kept is kept in vain.
  static constexpr int kLooks = 4;

  static std::size_t bytes_of(const Attempts::value_type& entry);
  void forget(Attempts::iterator at);
  // Writes the attempt if it is pending. Must precede any change of it.
  void settle(Attempts::iterator at) {
    if (pending_.erase(at->first) > 0) write(at);
  }
  void write(Attempts::iterator at);

  Attempts attempts_;
  std::set<std::pair<Instant, std::string_view>> by_expiry_;  // The ids are keys of attempts_.
  std::set<std::string_view> unsaved_;                        // So are these.
  std::set<Hash128> erased_;  // Of ids that the store has, and that were forgotten since.
  // What the checkpoint under way has yet to write: of unsaved_ and of erased_.
  std::set<std::string_view> pending_;
  std::set<Hash128> pending_erased_;
  Batch* batch_ = nullptr;  // That of this checkpoint.
  StockName stock_;
  std::string looked_at_;
  std::size_t bytes_ = 0;
};

}  // namespace stanchion::engine
