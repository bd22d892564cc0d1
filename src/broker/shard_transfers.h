// What a shard knows about messages on their way to and from other shards: which of its own may
// leave, what the others have answered, and which have arrived and wait.
//
//   departure recorded ─▶ durable ─▶ handed over ─▶ verdict ─▶ settled by one record
//   arrival ─▶ (no room: waits here, safe in its source's journal) ─▶ accepted
//
// Each source bounds the bytes that it has handed over and not settled, and so those that wait
// here.
//
//   B2  A transfer is handed over only when the fact that it leaves is durable, and its acceptance
//       is reported to the source only when that is durable.
//   B9  What an earlier owner of the source hands over late counts for nothing once a later one has
//       begun to: it may have been settled since.
//   B7  A target is told that lower numbers are settled only when that is durable, because it takes
//       them for accepted from then on.
//
// Used on the shard's loop only, which is checked; before there is one, by the code that recovers
// the shard.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "broker/loop.h"
#include "engine/engine.h"
#include "model/ids.h"

namespace stanchion::broker {

class Peers;

class ShardTransfers {
 public:
  void start(const Loop& loop) { owner_.start(loop); }
  void stop() { owner_.stop(); }

  // Departures below `end` may go when `position` is durable; then those below `settled_below` are
  // settled for good.
  void note_departures(Position position, TransferNo end, TransferNo settled_below) {
    owner_.check();
    CHECK(departures_.empty() ||
              (departures_.back().position <= position && departures_.back().end <= end),
          "departures are recorded in order");
    departures_.push_back({position, end, settled_below});
  }
  bool may_send(Position durable) const {
    return handed_over_ < may_go_ || is_next_durable(durable);
  }
  // Hands over as many as the engine gives out for now.
  void send(Position durable, engine::Engine& engine, Peers& peers);
  // What was handed over and not settled may have been lost, or somebody else may have to accept
  // it: all of that is handed over again, in its order, by the owner of this epoch.
  void start_over(SourceEpoch epoch, engine::Engine& engine, Peers& peers);
  // Whether something was handed over and is not settled yet.
  bool is_unsettled(TransferNo settled_below) const { return settled_below < handed_over_; }

  // While held, nothing leaves and nothing is settled.
  void hold(bool hold) {
    owner_.check();
    held_ = hold;
  }

  // The verdicts of other shards about departures; one record settles those that came together, up
  // to a bound.
  struct Verdicts {
    std::vector<TransferNo> accepted;
    std::vector<TransferNo> refused;

    bool empty() const { return accepted.empty() && refused.empty(); }

    // Each number at most once, and only those of which this is true.
    template <class Predicate>
    void keep_once(const Predicate& is_wanted) {
      std::set<TransferNo> seen;
      for (std::vector<TransferNo>* numbers : {&accepted, &refused})
        std::erase_if(*numbers, [&](TransferNo number) {
          return !is_wanted(number) || !seen.insert(number).second;
        });
    }
  };
  void add(const Settlement& settlement) {
    owner_.check();
    if (settlement.verdict == TransferVerdict::kAccepted) {
      accepted_.push_back(settlement.number);
    } else if (settlement.attempt == attempt_) {
      refused_.push_back(settlement.number);
    }
  }
  bool has_verdicts() const { return !accepted_.empty() || !refused_.empty(); }
  bool may_settle() const { return !held_ && has_verdicts(); }
  // The first of them; the rest stays.
  Verdicts take_verdicts(std::size_t most);

  // Arrivals that wait, those for one queue in their order: a queue that has no room does not hold
  // up the others.
  void keep(Transfer arrival) {
    owner_.check();
    arrivals_[arrival.destination].push_back(std::move(arrival));
  }
  bool anything_waits_for(const QueueRef& queue) const { return arrivals_.contains(queue); }
  // Whether an arrival comes in its turn: those before it may have gone to an earlier owner of this
  // shard, and will come again. B9.
  bool is_in_turn(const Transfer& arrival, SourceEpoch epoch) {
    owner_.check();
    if (arrival.opens_attempt) {
      Attempt& known = attempts_[arrival.source];
      const Attempt opened{epoch, arrival.attempt};
      const bool both_say = epoch != SourceEpoch() && known.epoch != SourceEpoch();
      if (!both_say || known <= opened) known = opened;
    }
    TransferNo& newest = newest_[arrival.source];
    newest = std::max(newest, arrival.number);
    return is_of_this_attempt(arrival);
  }
  // Whether this many numbers of its source have come behind it: the source has only so many.
  bool holds_up_others(const Transfer& arrival, std::uint64_t numbers) const {
    const auto found = newest_.find(arrival.source);
    return found != newest_.end() && found->second.value() >= arrival.number.value() + numbers;
  }
  bool has_arrivals() const { return !arrivals_.empty(); }
  // Passes the arrivals that wait to `accept`, which says whether there was room; if not, those
  // behind it for the same queue stay, too. At most `most` at a time, the queues in turn; true if
  // some were not asked about.
  template <class Accept>
  bool retry_arrivals(std::size_t most, const Accept& accept) {
    owner_.check();
    auto line = arrivals_.lower_bound(turn_);
    for (std::size_t lines = arrivals_.size(); lines > 0; --lines) {
      if (line == arrivals_.end()) line = arrivals_.begin();
      if (most == 0) {
        turn_ = line->first;
        return true;
      }
      bool room = true;
      for (auto& arrivals = line->second; room && most > 0 && !arrivals.empty(); --most) {
        room = !is_of_this_attempt(arrivals.front()) || accept(arrivals.front());
        if (room) arrivals.pop_front();
      }
      if (line->second.empty()) {
        line = arrivals_.erase(line);
      } else if (room) {
        ++lines;  // It is asked about again.
      } else {
        ++line;
      }
    }
    return false;
  }

 private:
  struct Attempt {
    SourceEpoch epoch;
    std::uint64_t number = 0;
    friend auto operator<=>(const Attempt&, const Attempt&) = default;
  };
  struct Departures {
    Position position;
    TransferNo end;
    TransferNo settled_below;
  };

  OwningLoop owner_;
  bool is_next_durable(Position durable) const {
    return !departures_.empty() && departures_.front().position <= durable;
  }
  bool is_of_this_attempt(const Transfer& arrival) const {
    const auto found = attempts_.find(arrival.source);
    return found != attempts_.end() && found->second.number == arrival.attempt;
  }
  void hand_over(engine::Engine& engine, Peers& peers);

  TransferNo handed_over_{1};    // Transfers below this number were handed over in this attempt …
  TransferNo may_go_{1};         // … and those below this one may be: their departure is durable.
  TransferNo settled_below_{1};  // Those below this one are settled, and that is durable.
  SourceEpoch epoch_;
  std::uint64_t attempts_made_ = 0;
  std::uint64_t attempt_ = 0;
  std::set<ShardIndex> targets_;  // Who got something in this attempt.
  std::deque<Departures> departures_;
  bool held_ = false;
  std::deque<TransferNo> accepted_;
  std::deque<TransferNo> refused_;
  std::map<QueueRef, std::deque<Transfer>> arrivals_;  // By destination; no line is empty.
  QueueRef turn_{};  // The destination that is asked about next, or the one behind.
  std::map<ShardIndex, TransferNo> newest_;  // By source: the highest number that came.
  std::map<ShardIndex, Attempt> attempts_;   // By source: the one whose beginning came here.
};

}  // namespace stanchion::broker
