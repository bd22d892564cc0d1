// ReceiveRequestAttemptId: a consumer that lost the answer to a receive repeats it under the same
// id and gets the same messages with the same receipts.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

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

  // A checkpoint writes what differs from the last one: begin_save() fixes what that is, and calls
  // of save_some() write it, each of which looks at this many attempts at most and returns how many
  // it looked at. The batch must live until nothing is pending.
  void begin_save(Batch& batch, StockName stock);
  bool has_pending() const { return !pending_.empty(); }
  std::size_t save_some(std::size_t count);
  // Reads one attempt back; the queue had given the numbers below `end`.
  Status load(StockName stock, std::string_view key, std::string_view value, Seq end);

  Instant next_deadline() const { return order_.empty() ? kNever : order_.front().expires; }
  std::size_t size() const { return attempts_.size(); }

  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (const auto& [id, attempt] : attempts_) visit(id, attempt);
  }

 private:
  struct Entry {
    Instant expires;
    std::string id;
  };
  std::map<std::string, ReceiveAttempt, std::less<>> attempts_;
  // A replaced attempt leaves its entry here; the entry names an older expiry and is skipped.
  std::deque<Entry> order_;
  // Writes the attempt if it is pending. Must precede any change of it.
  void settle(const std::string& id) {
    const auto found = pending_.find(id);
    if (found != pending_.end()) save(found);
  }
  void save(std::set<std::string>::iterator id);

  std::set<std::string> unsaved_;  // Ids that were added or forgotten.
  std::set<std::string> pending_;  // Those that the checkpoint under way has yet to write.
  Batch* batch_ = nullptr;         // That of this checkpoint.
  StockName stock_;
};

}  // namespace stanchion::engine
