// How soon a replica claims its log again when it was lost.
//
// Who loses a log as soon as it has it, because another node claims it, too, or because the brokers
// refuse what is written, would go on with that as fast as the brokers answer: nobody is served
// meanwhile, and when a client of Kafka is replaced for it, other shards are disturbed. So from the
// third loss in a row on it waits, each time twice as long. Losses are in a row if the log was not held
// for some time between them.
#pragma once

#include <optional>

#include "base/time.h"

namespace stanchion::fleet {

class ClaimPace {
 public:
  void served(SteadyInstant now) { served_since_ = now; }

  // The log was lost, or a claim was in vain.
  void lost(SteadyInstant now);

  // Whether the last loss was not the first in its row.
  bool is_in_a_row() const { return losses_ > 1; }

  // What is to be waited for before the next claim.
  Duration left(SteadyInstant now) const;

 private:
  int losses_ = 0;  // In a row.
  std::optional<SteadyInstant> served_since_, lost_at_;
  Duration pause_{};  // Behind the last loss.
};

}  // namespace stanchion::fleet
