#include "kafka/connection.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "kafka/client_conf.h"

namespace stanchion::kafka {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kTick = std::chrono::milliseconds(100);
// An acknowledgement usually takes a few milliseconds.
constexpr auto kLate = std::chrono::milliseconds(300);
constexpr auto kAskInterval = std::chrono::milliseconds(250);
// The thread that asks also reports, so that it waits only shortly for a broker that may be gone.
constexpr int kAskTimeoutMillis = 100;
constexpr int kDeleteTimeoutMillis = 60'000;
constexpr int kLearnTimeoutMillis = 1000;
constexpr auto kAskAgainAfter = std::chrono::milliseconds(50);

}  // namespace

Result<std::unique_ptr<KafkaConnection>> KafkaConnection::open(const KafkaSettings& settings) {
  std::unique_ptr<KafkaConnection> connection(new KafkaConnection(settings));
  RETURN_IF_FAILED(connection->start());
  return connection;
}

Status KafkaConnection::start() {
  auto writing = ClientConf::common(settings_);
  if (!writing) return std::unexpected(writing.error());
  RETURN_IF_FAILED(writing->for_producer(settings_));
  rd_kafka_conf_set_opaque(writing->get(), this);
  rd_kafka_conf_set_dr_msg_cb(writing->get(), &KafkaConnection::report);
  rd_kafka_conf_set_error_cb(writing->get(), &KafkaConnection::complain);
  rd_kafka_conf_set_log_cb(writing->get(), &KafkaConnection::pass_on_log);
  auto producer = std::move(*writing).make(RD_KAFKA_PRODUCER);
  if (!producer) return std::unexpected(producer.error());
  producer_ = std::move(*producer);

  auto reading = ClientConf::common(settings_);
  if (!reading) return std::unexpected(reading.error());
  RETURN_IF_FAILED(reading->for_consumer());
  rd_kafka_conf_set_opaque(reading->get(), this);
  rd_kafka_conf_set_error_cb(reading->get(), &KafkaConnection::complain);
  rd_kafka_conf_set_log_cb(reading->get(), &KafkaConnection::pass_on_log);
  auto consumer = std::move(*reading).make(RD_KAFKA_CONSUMER);
  if (!consumer) return std::unexpected(consumer.error());
  consumer_ = std::move(*consumer);

  producer_queue_.reset(rd_kafka_queue_get_main(producer_.get()));
  consumer_queue_.reset(rd_kafka_queue_get_main(consumer_.get()));
  admin_queue_.reset(rd_kafka_queue_new(producer_.get()));
  for (rd_kafka_queue_t* queue : {producer_queue_.get(), consumer_queue_.get(), admin_queue_.get()})
    rd_kafka_queue_cb_event_enable(
        queue, [](rd_kafka_t*, void* opaque) { static_cast<KafkaConnection*>(opaque)->wake(); },
        this);
  thread_ = std::thread([this] { run(); });
  return {};
}

KafkaConnection::~KafkaConnection() {
  silent_ = true;
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(wake_mutex_);
      ending_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  if (producer_) {
    // What is under way is given up. Its memory is ours until the client has reported it.
    (void)rd_kafka_purge(producer_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    for (;;) {
      rd_kafka_poll(producer_.get(), static_cast<int>(kTick.count()));
      const std::lock_guard lock(mutex_);
      if (outgoing_.empty()) break;
    }
  }
  for (const Queue* queue : {&producer_queue_, &consumer_queue_, &admin_queue_})
    if (*queue) rd_kafka_queue_cb_event_enable(queue->get(), nullptr, nullptr);
  topics_.clear();
  producer_queue_.reset();
  consumer_queue_.reset();
  admin_queue_.reset();
}

Result<KafkaConnection::Topics*> KafkaConnection::topics_of(const std::string& topic) {
  const auto found = topics_.find(topic);
  if (found != topics_.end()) return &found->second;
  Topics topics{Topic(rd_kafka_topic_new(producer_.get(), topic.c_str(), nullptr)),
                Topic(rd_kafka_topic_new(consumer_.get(), topic.c_str(), nullptr))};
  if (!topics.producer || !topics.consumer)
    return fail("Kafka's topic " + topic + " cannot be used: " + text_of(rd_kafka_last_error()));
  return &topics_.emplace(topic, std::move(topics)).first->second;
}

Status KafkaConnection::send(const Partition& partition, std::string bytes, Delivered delivered,
                             std::string_view key) {
  const std::lock_guard lock(mutex_);
  const auto topics = topics_of(partition.topic);
  if (!topics) return std::unexpected(topics.error());
  const std::uint64_t number = ++last_number_;
  Outgoing& outgoing = outgoing_[number];
  outgoing = {number, partition, std::move(bytes), std::move(delivered), Clock::now()};
  if (rd_kafka_produce((*topics)->producer.get(), partition.number, 0, outgoing.bytes.data(),
                       outgoing.bytes.size(), key.empty() ? nullptr : key.data(), key.size(),
                       &outgoing) == 0)
    return {};
  const std::string reason = text_of(rd_kafka_last_error());
  outgoing_.erase(number);
  return fail("Kafka's client does not take an entry for " + partition.text() + ": " + reason);
}

// Without this, the clients learn of a topic's leaders up to a second after its first use.
void KafkaConnection::learn_leaders(const std::string& topic) {
  std::pair<rd_kafka_t*, rd_kafka_topic_t*> clients[2];
  {
    const std::lock_guard lock(mutex_);
    if (topics_.contains(topic)) return;
    const auto topics = topics_of(topic);
    if (!topics) return;
    clients[0] = {producer_.get(), (*topics)->producer.get()};
    clients[1] = {consumer_.get(), (*topics)->consumer.get()};
  }
  for (const auto& [client, handle] : clients) {
    const rd_kafka_metadata_t* metadata = nullptr;
    if (rd_kafka_metadata(client, 0, handle, &metadata, kLearnTimeoutMillis) ==
        RD_KAFKA_RESP_ERR_NO_ERROR)
      rd_kafka_metadata_destroy(metadata);
  }
}

Result<std::unique_ptr<PartitionReader>> KafkaConnection::read(
    const Partition& partition, std::optional<journal::LogOffset> from) {
  learn_leaders(partition.topic);
  rd_kafka_topic_t* topic = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto topics = topics_of(partition.topic);
    if (!topics) return std::unexpected(topics.error());
    topic = (*topics)->consumer.get();
  }
  return PartitionReader::open(consumer_.get(), topic, partition, from);
}

Result<journal::LogOffset> KafkaConnection::end_of(const Partition& partition,
                                                   std::chrono::milliseconds timeout) {
  const auto range = range_of(partition, timeout);
  if (!range) return std::unexpected(range.error());
  return range->first < range->end ? range->end : journal::LogOffset();
}

Result<KafkaConnection::Range> KafkaConnection::range_of(const Partition& partition,
                                                         std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  for (;;) {
    std::int64_t low = 0;
    std::int64_t high = 0;
    // By the client that writes: on the other one's connection the question would wait behind a
    // fetch, which waits for entries.
    const rd_kafka_resp_err_t error = rd_kafka_query_watermark_offsets(
        producer_.get(), partition.topic.c_str(), partition.number, &low, &high,
        static_cast<int>(std::min(timeout, settings_.request_timeout).count()));
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
      return Range{journal::LogOffset(static_cast<std::uint64_t>(std::max<std::int64_t>(0, low))),
                   journal::LogOffset(static_cast<std::uint64_t>(std::max<std::int64_t>(0, high)))};
    if (Clock::now() >= deadline) {
      const std::string reason = last_error();
      return fail("Kafka does not say where partition " + partition.text() +
                  " ends: " + (reason.empty() ? text_of(error) : reason));
    }
    std::this_thread::sleep_for(kAskAgainAfter);
  }
}

journal::LogOffset KafkaConnection::known_end(const Partition& partition) const {
  std::int64_t low = 0;
  std::int64_t high = 0;
  if (rd_kafka_get_watermark_offsets(consumer_.get(), partition.topic.c_str(), partition.number,
                                     &low, &high) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return {};
  return journal::LogOffset(static_cast<std::uint64_t>(std::max<std::int64_t>(0, high)));
}

void KafkaConnection::delete_before(const Partition& partition, journal::LogOffset before) {
  std::unique_ptr<rd_kafka_topic_partition_list_t, Destroy<rd_kafka_topic_partition_list_destroy>>
      offsets(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(offsets.get(), partition.topic.c_str(), partition.number)
      ->offset = static_cast<std::int64_t>(before.value());
  rd_kafka_DeleteRecords_t* request = rd_kafka_DeleteRecords_new(offsets.get());
  const AdminOptions options(
      rd_kafka_AdminOptions_new(producer_.get(), RD_KAFKA_ADMIN_OP_DELETERECORDS));
  std::array<char, 256> reason{};
  if (rd_kafka_AdminOptions_set_request_timeout(options.get(), kDeleteTimeoutMillis, reason.data(),
                                                reason.size()) != RD_KAFKA_RESP_ERR_NO_ERROR)
    settings_.warn(std::string("Kafka's client refuses a time limit: ") + reason.data());
  rd_kafka_DeleteRecords(producer_.get(), &request, 1, options.get(), admin_queue_.get());
  rd_kafka_DeleteRecords_destroy(request);
}

void KafkaConnection::post(Task task) {
  {
    const std::lock_guard lock(wake_mutex_);
    tasks_.push_back(std::move(task));
    woken_ = true;
  }
  wake_.notify_one();
}

std::string KafkaConnection::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

void KafkaConnection::wake() {
  {
    const std::lock_guard lock(wake_mutex_);
    woken_ = true;
  }
  wake_.notify_one();
}

void KafkaConnection::run() {
  std::unique_lock lock(wake_mutex_);
  for (;;) {
    wake_.wait_for(lock, kTick, [this] { return woken_ || ending_; });
    if (ending_) return;
    woken_ = false;
    std::vector<Task> tasks = std::exchange(tasks_, {});
    lock.unlock();
    serve();
    for (const Task& task : tasks) task();
    lock.lock();
  }
}

void KafkaConnection::serve() {
  while (rd_kafka_poll(producer_.get(), 0) > 0) continue;
  while (rd_kafka_poll(consumer_.get(), 0) > 0) continue;
  look_at_admin_results();
  look_for_stall();
}

void KafkaConnection::report(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
  const std::uint64_t number = static_cast<const Outgoing*>(message->_private)->number;
  static_cast<KafkaConnection*>(opaque)->finish(number, *message);
}

void KafkaConnection::finish(std::uint64_t number, const rd_kafka_message_t& message) {
  Delivery delivery;
  if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (message.offset >= 0)
      delivery.at = journal::LogOffset(static_cast<std::uint64_t>(message.offset));
  } else {
    std::array<char, 512> fatal{};
    std::string reason = text_or_empty(rd_kafka_message_errstr(&message));
    if (rd_kafka_fatal_error(producer_.get(), fatal.data(), fatal.size()) !=
        RD_KAFKA_RESP_ERR_NO_ERROR)
      reason += std::string(" (") + fatal.data() + ")";
    delivery.failure = Failure{reason};
  }
  std::map<std::uint64_t, Outgoing>::node_type done;
  {
    const std::lock_guard lock(mutex_);
    done = outgoing_.extract(number);
    if (!delivery.failure) last_error_.clear();
  }
  CHECK(!done.empty(), "an entry is reported once");
  done.mapped().delivered(delivery);
}

void KafkaConnection::complain(rd_kafka_t* client, int error, const char* reason, void* opaque) {
  auto& self = *static_cast<KafkaConnection*>(opaque);
  if (self.silent_) return;
  std::string text = text_or_empty(reason);
  std::array<char, 512> fatal{};
  if (error == RD_KAFKA_RESP_ERR__FATAL &&
      rd_kafka_fatal_error(client, fatal.data(), fatal.size()) != RD_KAFKA_RESP_ERR_NO_ERROR)
    text = fatal.data();
  {
    const std::lock_guard lock(self.mutex_);
    // A broker that is gone is complained about several times a second.
    if (self.last_error_ == text) return;
    self.last_error_ = text;
  }
  self.settings_.warn("Kafka: " + text);
}

void KafkaConnection::pass_on_log(const rd_kafka_t* client, int, const char*, const char* line) {
  const auto& self = *static_cast<const KafkaConnection*>(rd_kafka_opaque(client));
  if (!self.silent_) self.settings_.warn("Kafka: " + text_or_empty(line));
}

void KafkaConnection::look_at_admin_results() {
  for (;;) {
    const Event event(rd_kafka_queue_poll(admin_queue_.get(), 0));
    if (!event) return;
    const rd_kafka_DeleteRecords_result_t* result =
        rd_kafka_event_DeleteRecords_result(event.get());
    std::string reason = text_or_empty(rd_kafka_event_error_string(event.get()));
    bool failed = rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR;
    if (!failed && result != nullptr) {
      const auto* offsets = rd_kafka_DeleteRecords_result_offsets(result);
      for (int i = 0; i < offsets->cnt; ++i) {
        if (offsets->elems[i].err == RD_KAFKA_RESP_ERR_NO_ERROR) continue;
        failed = true;
        reason = text_of(offsets->elems[i].err);
      }
    }
    if (failed)
      settings_.warn(
          "Kafka did not trim a log, and will be asked again after the next checkpoint: " + reason);
  }
}

void KafkaConnection::look_for_stall() {
  const auto now = Clock::now();
  rd_kafka_topic_t* topic = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (outgoing_.empty() || now - outgoing_.begin()->second.sent < kLate ||
        now - asked_at_ < kAskInterval)
      return;
    topic = topics_.at(outgoing_.begin()->second.partition.topic).producer.get();
  }
  asked_at_ = now;
  const rd_kafka_metadata_t* metadata = nullptr;
  // The client takes note of the leaders in the answer by itself.
  if (rd_kafka_metadata(producer_.get(), 0, topic, &metadata, kAskTimeoutMillis) ==
      RD_KAFKA_RESP_ERR_NO_ERROR)
    rd_kafka_metadata_destroy(metadata);
}

}  // namespace stanchion::kafka
