// The control log of a fleet in a topic of Kafka.
//
//   append ─▶ waiting, one record a slot ─▶ under way, one a slot ─▶ the topic ─▶ read, by all nodes
//
// A slot is what a record replaces: the beat of a node, what is assigned of a shard. A record that
// has to wait because the brokers do not answer is replaced by the next one of its slot, so that a
// node which was cut off does not tell its old beats and assignments when it is back.
//
// It is written by the client that writes the logs of shards: a beat that comes back proves that this
// client is not stuck. It is read by another one, which verifies batches (KafkaSettings).
//
// Threads: any may append; one at a time reads.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "fleet/control_log.h"
#include "fleet_admin/control_reader.h"
#include "kafka/connection.h"

namespace stanchion::fleet_node {

class KafkaControlLog final : public fleet::ControlLog {
 public:
  // The connections must outlive the log.
  KafkaControlLog(kafka::KafkaConnection& writing, kafka::KafkaConnection& reading,
                  std::string fleet);
  // What is waiting is given up.
  ~KafkaControlLog() override;

  void follow(std::function<void()> arrived) override;
  Status read(const std::function<void(const fleet::ControlRecord&)>& visit) override;
  bool has_caught_up() const override { return reader_ && reader_->has_caught_up(); }
  void append(fleet::ControlRecord record) override;

 private:
  class Outbox;

  kafka::KafkaConnection& reading_;
  const std::string fleet_;
  std::function<void()> arrived_;
  std::shared_ptr<Outbox> outbox_;  // Shared with what is under way.
  std::unique_ptr<fleet_admin::ControlReader> reader_;
  std::optional<Failure> failure_;
};

}  // namespace stanchion::fleet_node
