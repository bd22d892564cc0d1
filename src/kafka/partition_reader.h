// Reads a partition from an offset on, entry by entry. Memory is bounded by librdkafka, which
// fetches ahead up to KafkaSettings::read_ahead_max and goes on when entries are taken.
//
// One thread at a time calls; the handler of when_ready() is called by any.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "journal/shared_log.h"
#include "kafka/handles.h"
#include "kafka/settings.h"

namespace stanchion::kafka {

class PartitionReader {
 public:
  enum class Got {
    kEntry,    // offset() and bytes().
    kEnd,      // There was nothing further, at end(). More may have come since, and will be read.
    kNothing,  // The time is over, and it is not known whether there is more.
    kTrimmed,  // The entry that was to come next is no longer there.
  };

  // `consumer` and `topic` must outlive the reader. From the first entry that is there, if `from`
  // is nullopt. No other reader of that client may read the same partition. A broker that cannot read
  // its own file is asked again for as long as `patience`.
  static Result<std::unique_ptr<PartitionReader>> open(rd_kafka_t* consumer,
                                                       rd_kafka_topic_t* topic,
                                                       const Partition& partition,
                                                       std::optional<journal::LogOffset> from,
                                                       std::chrono::milliseconds patience);
  ~PartitionReader();
  PartitionReader(const PartitionReader&) = delete;
  PartitionReader& operator=(const PartitionReader&) = delete;

  // A failure is one that lasts; what passes by itself is waited for.
  Result<Got> next(std::chrono::milliseconds timeout);

  // Of the entry that next() returned last. The views are valid until the next call.
  journal::LogOffset offset() const;
  std::string_view key() const;  // Empty if there is none.
  std::string_view bytes() const;
  // When it was appended, in milliseconds; by whose clock is the topic's setting.
  std::int64_t timestamp_millis() const;

  // Where the last end was.
  journal::LogOffset end() const { return end_; }

  // `ready` is called when next() has something after it had nothing; it must return at once and
  // must not call the reader. Also called now, so that nothing is missed.
  void when_ready(std::function<void()> ready);

  const Partition& partition() const { return partition_; }

 private:
  PartitionReader(rd_kafka_t* consumer, rd_kafka_topic_t* topic, Partition partition,
                  std::chrono::milliseconds patience);
  bool has_lasted();
  Result<Got> judge_error();

  rd_kafka_topic_t* topic_;
  Partition partition_;
  Queue queue_;
  Message message_;
  const std::chrono::milliseconds patience_;
  std::optional<std::chrono::steady_clock::time_point> invalid_since_;
  bool reading_ = false;
  journal::LogOffset end_;
  std::function<void()> ready_;
};

}  // namespace stanchion::kafka
