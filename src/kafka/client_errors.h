// What the errors of Kafka's client mean for whoever uses it, and how often one that has ended is
// replaced. Pure rules; connection.h asks the client.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>

#include "kafka/handles.h"

namespace stanchion::kafka {

// Whether a client that ended with this error has done so because it and a broker do not agree on
// which entries there are.
bool is_lost_count(rd_kafka_resp_err_t fatal);

// Whether a client that ended with this error has done so because an entry was refused for good: what
// comes behind it must not be written. The entries of other partitions have nothing to do with it.
bool is_refusal(rd_kafka_resp_err_t fatal);

// Whether a broker has refused the entry for a reason of its own, such as a bug or a bad disk, and
// not because of what the entry is or who has sent it. The client does not send it again by itself.
bool is_brokers_fault(rd_kafka_resp_err_t error);

// A broker that refuses everything is asked less often. One thread.
class AnewLimit {
 public:
  using Instant = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kMax = 20;
  static constexpr std::chrono::minutes kPeriod{1};

  // Whether a client may be replaced now, less than kMax times in the last kPeriod. True counts.
  bool may_begin_anew(Instant now);

 private:
  std::deque<Instant> begun_;  // In the last period.
};

}  // namespace stanchion::kafka
