// The settings of librdkafka with which we write and read logs, and why each of them is needed.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kafka/handles.h"
#include "kafka/settings.h"

namespace stanchion::kafka {

class ClientConf {
 public:
  // With what both kinds of client need.
  static Result<ClientConf> common(const KafkaSettings& settings);

  Status for_producer(const KafkaSettings& settings);
  Status for_consumer(const KafkaSettings& settings);

  rd_kafka_conf_t* get() { return conf_.get(); }

  // The configuration is used up.
  Result<Client> make(rd_kafka_type_t type) &&;

 private:
  ClientConf() : conf_(rd_kafka_conf_new()) {}
  Status set(std::string_view name, std::string_view value);

  std::unique_ptr<rd_kafka_conf_t, Destroy<rd_kafka_conf_destroy>> conf_;
};

}  // namespace stanchion::kafka
