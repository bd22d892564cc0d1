// Topics: made by an operator's command with the settings that they need, and looked at by every
// start.
//
// Every call waits for the brokers, up to the time that it is given.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "kafka/connection.h"
#include "kafka/topic_rules.h"

namespace stanchion::kafka {

class KafkaAdmin {
 public:
  // `connection` must outlive the admin.
  explicit KafkaAdmin(KafkaConnection& connection,
                      std::chrono::milliseconds timeout = std::chrono::seconds(30))
      : connection_(connection), timeout_(timeout) {}

  // Makes the topic with topic_settings(), and waits until all brokers know it. One that exists is
  // left as it is. `one_copy_will_do` is for trials on a single broker.
  Status create_topic(const std::string& topic, int partitions, bool one_copy_will_do,
                      TopicUse use = TopicUse::kLogs);

  // Waits until every broker shows the topic. One that was just made is not known to all of them, and
  // a client that asks such a broker takes it for missing, also after another has shown it.
  Status wait_until_known(const std::string& topic);

  // How many partitions it has; nullopt: there is no such topic.
  Result<std::optional<int>> partitions_of(const std::string& topic);

  Result<TopicDescription> describe_topic(const std::string& topic);

  // Fails with everything that has to be changed, one line each; returns what is slow.
  Result<std::vector<std::string>> verify_topic(const std::string& topic, int partitions,
                                                bool one_copy_will_do,
                                                TopicUse use = TopicUse::kLogs);

 private:
  using Clock = std::chrono::steady_clock;

  struct Shape {
    int partitions = 0;
    int replicas = 0;
    std::vector<int> brokers;
  };

  Status wait_until_known_at(const std::string& broker, const std::string& topic,
                             Clock::time_point deadline);
  std::unexpected<Failure> no_answer(rd_kafka_resp_err_t error) const;
  Result<Shape> shape_of(const std::string& topic);
  Result<std::map<std::string, std::string>> settings_of(rd_kafka_ResourceType_t type,
                                                         const std::string& name);
  Result<std::map<std::string, std::string>> ask_settings_of(rd_kafka_ResourceType_t type,
                                                             const std::string& name,
                                                             bool& is_unknown);
  // The result of a request, as an event.
  Result<Event> wait_for(rd_kafka_queue_t* queue, const std::string& what);
  AdminOptions options(rd_kafka_admin_op_t operation) const;

  KafkaConnection& connection_;
  const std::chrono::milliseconds timeout_;
};

}  // namespace stanchion::kafka
