// What the settings of a topic must be so that nothing is lost, and should be so that little time
// is. Pure rules; admin.h asks the brokers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace stanchion::kafka {

inline constexpr int kReplicas = 3;

// A topic as the brokers describe it.
struct TopicDescription {
  std::string name;
  int partitions = 0;
  int replicas = 0;                             // Of the partition that has the fewest.
  std::map<std::string, std::string> settings;  // Without those that the brokers do not know.
};

struct Findings {
  std::vector<std::string> refusals;  // Each says what to change.
  std::vector<std::string> warnings;
};

// What a topic holds: logs of shards, which must keep every entry, or the control log, in which the
// last entry of a key replaces the others.
enum class TopicUse { kLogs, kControl };

// The settings with which a topic is made.
const std::vector<std::pair<std::string, std::string>>& topic_settings(
    TopicUse use = TopicUse::kLogs);

// A topic for `partitions` logs. With `one_copy_will_do`, for trials, a single broker is accepted.
Findings judge_topic(const TopicDescription& topic, int partitions, bool one_copy_will_do,
                     TopicUse use = TopicUse::kLogs);

// The time-outs of a broker: how long a dead one goes unnoticed.
std::vector<std::string> judge_broker(int id, const std::map<std::string, std::string>& settings);

}  // namespace stanchion::kafka
