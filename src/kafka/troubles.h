// What a connection knows of what is wrong with its brokers: what its clients complain about, and,
// while entries are late, what the brokers say of the partitions.
//
// Any thread.
#pragma once

#include <librdkafka/rdkafka.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "kafka/settings.h"

namespace stanchion::kafka {

class Troubles {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Whether it was not said lately: the same complaint comes with each attempt, and says how long that
  // one took.
  bool complained(const std::string& complaint, TimePoint now);

  // An entry was acknowledged. Cheap.
  void acknowledged();

  // The last complaint; empty if an entry was acknowledged since.
  std::string last_error() const;

  // What the brokers have answered.
  void learn(const rd_kafka_metadata_t& answer, TimePoint now);

  // For a person: why an entry in this partition is not acknowledged, as far as that is known.
  std::string why_not_taken(const Partition& partition, TimePoint now) const;

 private:
  struct State {
    std::int32_t leader = -1;  // The broker; negative: there is none.
    int in_sync = 0, replicas = 0;
    TimePoint seen;
  };

  std::atomic<bool> has_error_{false};
  mutable std::mutex mutex_;
  std::string last_error_;
  std::map<std::string, TimePoint> said_;  // Complaints, and when.
  std::map<Partition, State> partitions_;
};

}  // namespace stanchion::kafka
