#include "kafka/partition_reader.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace stanchion::kafka {

PartitionReader::PartitionReader(rd_kafka_t* consumer, rd_kafka_topic_t* topic, Partition partition,
                                 std::chrono::milliseconds patience)
    : topic_(topic),
      partition_(std::move(partition)),
      queue_(rd_kafka_queue_new(consumer)),
      patience_(patience) {}

Result<std::unique_ptr<PartitionReader>> PartitionReader::open(
    rd_kafka_t* consumer, rd_kafka_topic_t* topic, const Partition& partition,
    std::optional<journal::LogOffset> from, std::chrono::milliseconds patience) {
  std::unique_ptr<PartitionReader> reader(
      new PartitionReader(consumer, topic, partition, patience));
  const std::int64_t offset =
      from ? static_cast<std::int64_t>(from->value()) : RD_KAFKA_OFFSET_BEGINNING;
  if (rd_kafka_consume_start_queue(topic, partition.number, offset, reader->queue_.get()) != 0)
    return fail("Kafka's partition " + partition.text() +
                " cannot be read: " + text_of(rd_kafka_last_error()));
  reader->reading_ = true;
  return reader;
}

PartitionReader::~PartitionReader() {
  rd_kafka_queue_cb_event_enable(queue_.get(), nullptr, nullptr);
  message_.reset();
  // Waits until the client has stopped fetching. It only fails if the partition is unknown, and
  // then nothing is fetched.
  if (reading_) (void)rd_kafka_consume_stop(topic_, partition_.number);
}

Result<PartitionReader::Got> PartitionReader::next(std::chrono::milliseconds timeout) {
  // Until nothing is left: the handler of when_ready() is called only after that.
  for (auto wait = static_cast<int>(timeout.count());; wait = 0) {
    message_.reset(rd_kafka_consume_queue(queue_.get(), wait));
    if (!message_) return Got::kNothing;
    if (message_->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      invalid_since_.reset();
      return Got::kEntry;
    }
    const auto judged = judge_error();
    if (!judged || *judged != Got::kNothing) return judged;
  }
}

Result<PartitionReader::Got> PartitionReader::judge_error() {
  const std::string reason = text_or_empty(rd_kafka_message_errstr(message_.get()));
  const rd_kafka_resp_err_t error = message_->err;
  const std::int64_t offset = message_->offset;
  message_.reset();
  switch (error) {
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
      invalid_since_.reset();
      end_ = journal::LogOffset(static_cast<std::uint64_t>(std::max<std::int64_t>(0, offset)));
      return Got::kEnd;
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
      return Got::kTrimmed;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR__BAD_MSG:
    case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
    case RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED:
      return fail("Kafka's partition " + partition_.text() + " cannot be read: " + reason);
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
      if (!has_lasted()) return Got::kNothing;
      return fail("Kafka's partition " + partition_.text() +
                  " cannot be read: the broker that leads it finds its own copy damaged");
    default:
      return Got::kNothing;  // The client tries again by itself.
  }
}

// Whether the broker has said for some time that it cannot read what comes next.
bool PartitionReader::has_lasted() {
  const auto now = std::chrono::steady_clock::now();
  if (!invalid_since_) invalid_since_ = now;
  return now - *invalid_since_ >= patience_;
}

journal::LogOffset PartitionReader::offset() const {
  CHECK(message_, "there is an entry");
  return journal::LogOffset(static_cast<std::uint64_t>(message_->offset));
}

std::string_view PartitionReader::bytes() const {
  CHECK(message_, "there is an entry");
  return {static_cast<const char*>(message_->payload), message_->len};
}

std::string_view PartitionReader::key() const {
  CHECK(message_, "there is an entry");
  return {static_cast<const char*>(message_->key), message_->key_len};
}

std::int64_t PartitionReader::timestamp_millis() const {
  CHECK(message_, "there is an entry");
  rd_kafka_timestamp_type_t type{};
  return std::max<std::int64_t>(0, rd_kafka_message_timestamp(message_.get(), &type));
}

void PartitionReader::when_ready(std::function<void()> ready) {
  CHECK(!ready_, "there is one handler");
  ready_ = std::move(ready);
  rd_kafka_queue_cb_event_enable(
      queue_.get(),
      [](rd_kafka_t*, void* opaque) { static_cast<PartitionReader*>(opaque)->ready_(); }, this);
  ready_();
}

}  // namespace stanchion::kafka
