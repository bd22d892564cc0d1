// Reads the control log of a fleet from its topic, from the first record that is there.
//
// What is no record is skipped with a warning, and kinds of a later release without one. One thread
// at a time calls.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "fleet/control_record.h"
#include "kafka/connection.h"
#include "kafka/partition_reader.h"

namespace stanchion::fleet_admin {

class ControlReader {
 public:
  struct Entry {
    fleet::ControlRecord record;
    Instant appended;  // By the brokers' clock.
  };

  // `connection` must outlive the reader.
  static Result<std::unique_ptr<ControlReader>> open(kafka::KafkaConnection& connection,
                                                     const std::string& fleet);

  // nullopt: nothing has come in this time. A failure is one that lasts.
  Result<std::optional<Entry>> next(std::chrono::milliseconds timeout);

  // Whether everything was read that was there when reading began, or began again.
  bool has_caught_up() const { return caught_up_; }

  // See PartitionReader.
  void when_ready(std::function<void()> ready);

 private:
  ControlReader(kafka::KafkaConnection& connection, kafka::Partition partition)
      : connection_(connection), partition_(std::move(partition)) {}
  Status begin();
  Result<std::optional<fleet::ControlRecord>> take(std::string_view bytes);

  kafka::KafkaConnection& connection_;
  const kafka::Partition partition_;
  std::unique_ptr<kafka::PartitionReader> reader_;
  std::function<void()> ready_;
  bool caught_up_ = false;
  bool warned_ = false;
};

}  // namespace stanchion::fleet_admin
