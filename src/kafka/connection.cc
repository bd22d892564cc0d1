#include "kafka/connection.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "base/check.h"
#include "kafka/client_conf.h"
#include "kafka/client_errors.h"

namespace stanchion::kafka {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kTick = std::chrono::milliseconds(100);
// A client that ends for an entry that was refused reports that entry within this time.
constexpr auto kRefusalTold = std::chrono::seconds(1);
// An acknowledgement usually takes a few milliseconds.
constexpr auto kLate = std::chrono::milliseconds(300);
constexpr auto kAskInterval = std::chrono::milliseconds(250);
// The thread that asks also reports, so that it waits only shortly for a broker that may be gone.
constexpr int kAskTimeoutMillis = 100;
// Where logs end is asked of all of them in turn, one after the other.
constexpr auto kAskForEndInterval = std::chrono::milliseconds(500);
constexpr int kDeleteTimeoutMillis = 60'000;
constexpr int kLearnTimeoutMillis = 1000;
constexpr auto kAskAgainAfter = std::chrono::milliseconds(50);
// A broker that cannot be reached is complained about several times a second.
constexpr auto kTroubleLasts = std::chrono::seconds(5);
// A client is not replaced again and again for a partition that really cannot be written.
constexpr auto kStuckAfterMax = std::chrono::minutes(10);

using Metadata = std::unique_ptr<const rd_kafka_metadata_t, Destroy<rd_kafka_metadata_destroy>>;

// The client takes note of the leaders in the answer by itself. Null: there was none.
Metadata ask_for_leaders(rd_kafka_t* client, rd_kafka_topic_t* topic, int timeout_millis) {
  const rd_kafka_metadata_t* metadata = nullptr;
  if (rd_kafka_metadata(client, 0, topic, &metadata, timeout_millis) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return nullptr;
  return Metadata(metadata);
}

rd_kafka_resp_err_t fatal_error_of(rd_kafka_t* client) {
  std::array<char, 512> ignored{};
  return rd_kafka_fatal_error(client, ignored.data(), ignored.size());
}

void forget(std::initializer_list<const Queue*> queues) {
  for (const Queue* queue : queues)
    if (*queue) rd_kafka_queue_cb_event_enable(queue->get(), nullptr, nullptr);
}

// Not what a broker has answered.
bool is_clients_own(rd_kafka_resp_err_t error) {
  return error > RD_KAFKA_RESP_ERR__BEGIN && error < RD_KAFKA_RESP_ERR__END;
}

// Whether another client can go on where this one has ended. One that is not let in at all would end
// again.
bool can_be_replaced(rd_kafka_t* client) {
  const rd_kafka_resp_err_t end = fatal_error_of(client);
  return is_lost_count(end) || is_refusal(end);
}

}  // namespace

Result<std::unique_ptr<KafkaConnection>> KafkaConnection::open(const KafkaSettings& settings) {
  std::unique_ptr<KafkaConnection> connection(new KafkaConnection(settings));
  RETURN_IF_FAILED(connection->start());
  return connection;
}

Result<std::shared_ptr<KafkaConnection::Writing>> KafkaConnection::make_writing() {
  auto conf = ClientConf::common(settings_);
  if (!conf) return std::unexpected(conf.error());
  RETURN_IF_FAILED(conf->for_producer(settings_));
  rd_kafka_conf_set_opaque(conf->get(), this);
  rd_kafka_conf_set_dr_msg_cb(conf->get(), &KafkaConnection::report);
  rd_kafka_conf_set_error_cb(conf->get(), &KafkaConnection::complain);
  rd_kafka_conf_set_log_cb(conf->get(), &KafkaConnection::pass_on_log);
  auto client = std::move(*conf).make(RD_KAFKA_PRODUCER);
  if (!client) return std::unexpected(client.error());
  auto made = std::make_shared<Writing>();
  made->client = std::move(*client);
  made->queue.reset(rd_kafka_queue_get_main(made->client.get()));
  made->admin_queue.reset(rd_kafka_queue_new(made->client.get()));
  wake_by(made->queue.get());
  wake_by(made->admin_queue.get());
  return made;
}

Status KafkaConnection::start() {
  auto writing = make_writing();
  if (!writing) return std::unexpected(writing.error());
  writing_ = std::move(*writing);

  auto reading = ClientConf::common(settings_);
  if (!reading) return std::unexpected(reading.error());
  RETURN_IF_FAILED(reading->for_consumer(settings_));
  rd_kafka_conf_set_opaque(reading->get(), this);
  rd_kafka_conf_set_error_cb(reading->get(), &KafkaConnection::complain);
  rd_kafka_conf_set_log_cb(reading->get(), &KafkaConnection::pass_on_log);
  auto consumer = std::move(*reading).make(RD_KAFKA_CONSUMER);
  if (!consumer) return std::unexpected(consumer.error());
  consumer_ = std::move(*consumer);
  consumer_queue_.reset(rd_kafka_queue_get_main(consumer_.get()));
  wake_by(consumer_queue_.get());
  thread_ = std::thread([this] { run(); });
  return {};
}

void KafkaConnection::wake_by(rd_kafka_queue_t* queue) {
  rd_kafka_queue_cb_event_enable(
      queue, [](rd_kafka_t*, void* opaque) { static_cast<KafkaConnection*>(opaque)->wake(); },
      this);
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
  if (writing_) replaced_.push_back(writing_);
  for (const auto& writing : replaced_) {
    while (!has_let_go(*writing, kTick)) continue;
    forget({&writing->queue, &writing->admin_queue});
  }
  forget({&consumer_queue_});
  read_topics_.clear();
  consumer_queue_.reset();
}

// What is under way is given up. Whether the client has reported all of it, so that the memory is
// not needed any more. Asked more than once: an entry that is just then on its way from one broker
// to another, or put back to be sent again, is overlooked.
bool KafkaConnection::has_let_go(Writing& writing, std::chrono::milliseconds patience) {
  (void)rd_kafka_purge(writing.client.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  rd_kafka_poll(writing.client.get(), static_cast<int>(patience.count()));
  const std::lock_guard lock(mutex_);
  return oldest_of(writing) == nullptr;
}

const KafkaConnection::Outgoing* KafkaConnection::oldest_of(const Writing& writing) const {
  const auto found = std::ranges::find_if(
      outgoing_, [&](const auto& entry) { return entry.second.client == &writing; });
  return found == outgoing_.end() ? nullptr : &found->second;
}

std::shared_ptr<KafkaConnection::Writing> KafkaConnection::writing() const {
  const std::lock_guard lock(mutex_);
  return writing_;
}

std::shared_ptr<rd_kafka_t> KafkaConnection::producer() const {
  const auto held = writing();
  return {held, held->client.get()};
}

Result<rd_kafka_topic_t*> KafkaConnection::topic_of(rd_kafka_t* client,
                                                    std::map<std::string, Topic>& topics,
                                                    const std::string& name) {
  Topic& topic = topics[name];
  if (!topic) topic.reset(rd_kafka_topic_new(client, name.c_str(), nullptr));
  if (topic) return topic.get();
  topics.erase(name);
  return fail("Kafka's topic " + name + " cannot be used: " + text_of(rd_kafka_last_error()));
}

Status KafkaConnection::send(const Partition& partition, std::string bytes, Delivered delivered,
                             std::string_view key) {
  const std::lock_guard lock(mutex_);
  rd_kafka_t* const client = writing_->client.get();
  const auto topic = topic_of(client, writing_->topics, partition.topic);
  if (!topic) return std::unexpected(topic.error());
  const std::uint64_t number = ++last_number_;
  Outgoing& outgoing = outgoing_[number];
  outgoing = {number,       partition,     std::move(bytes), std::move(delivered),
              Clock::now(), writing_.get()};
  if (rd_kafka_produce(*topic, partition.number, 0, outgoing.bytes.data(), outgoing.bytes.size(),
                       key.empty() ? nullptr : key.data(), key.size(), &outgoing) == 0)
    return {};
  const Failure failure{"Kafka's client does not take an entry for " + partition.text() + ": " +
                        text_of(rd_kafka_last_error())};
  const auto unsent = outgoing_.extract(number);
  if (!can_be_replaced(client)) return std::unexpected(failure);
  // Its successor takes the next one.
  post([tell = std::move(unsent.mapped().delivered), failure] {
    tell({.failure = failure, .began_anew = true, .at = {}});
  });
  return {};
}

// Without this, the clients learn of a topic's leaders up to a second after its first use.
void KafkaConnection::learn_leaders(const std::string& topic) {
  const auto held = writing();
  std::pair<rd_kafka_t*, rd_kafka_topic_t*> clients[2];
  {
    const std::lock_guard lock(mutex_);
    if (read_topics_.contains(topic)) return;
    const auto written = topic_of(held->client.get(), held->topics, topic);
    const auto read = topic_of(consumer_.get(), read_topics_, topic);
    if (!written || !read) return;
    clients[0] = {held->client.get(), *written};
    clients[1] = {consumer_.get(), *read};
  }
  for (const auto& [client, handle] : clients) ask_for_leaders(client, handle, kLearnTimeoutMillis);
}

Result<std::unique_ptr<PartitionReader>> KafkaConnection::read(
    const Partition& partition, std::optional<journal::LogOffset> from) {
  learn_leaders(partition.topic);
  rd_kafka_topic_t* topic = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = topic_of(consumer_.get(), read_topics_, partition.topic);
    if (!found) return std::unexpected(found.error());
    topic = *found;
  }
  return PartitionReader::open(consumer_.get(), topic, partition, from, settings_.silent_after);
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
  const auto client = producer();
  for (;;) {
    std::int64_t low = 0;
    std::int64_t high = 0;
    // By the client that writes: on the other one's connection the question would wait behind a
    // fetch, which waits for entries.
    const rd_kafka_resp_err_t error = rd_kafka_query_watermark_offsets(
        client.get(), partition.topic.c_str(), partition.number, &low, &high,
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

bool KafkaConnection::ask_end(const Partition& partition,
                              std::function<void(journal::LogOffset)> answered) {
  {
    const std::lock_guard lock(mutex_);
    if (Clock::now() - asked_for_end_ < kAskForEndInterval) return false;
    asked_for_end_ = Clock::now();
  }
  post([this, partition, answered = std::move(answered)] {
    const auto range = range_of(partition, std::chrono::milliseconds(kAskTimeoutMillis));
    if (range) answered(range->end);
  });
  return true;
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
  const auto held = writing();
  const AdminOptions options(
      rd_kafka_AdminOptions_new(held->client.get(), RD_KAFKA_ADMIN_OP_DELETERECORDS));
  std::array<char, 256> reason{};
  if (rd_kafka_AdminOptions_set_request_timeout(options.get(), kDeleteTimeoutMillis, reason.data(),
                                                reason.size()) != RD_KAFKA_RESP_ERR_NO_ERROR)
    settings_.warn(std::string("Kafka's client refuses a time limit: ") + reason.data());
  rd_kafka_DeleteRecords(held->client.get(), &request, 1, options.get(), held->admin_queue.get());
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
  while (rd_kafka_poll(producer().get(), 0) > 0) continue;
  while (rd_kafka_poll(consumer_.get(), 0) > 0) continue;
  if (must_begin_anew_ && Clock::now() >= begin_anew_at_ &&
      anew_limit_.may_begin_anew(Clock::now()))
    begin_anew(
        is_refusal(fatal_error_of(producer().get()))
            ? "Kafka has refused an entry for good, so that its client does not go on"
            : "Kafka's client and a broker do not agree on what was written, as happens when a "
              "broker comes back from a network that was cut");
  look_for_stuck_entries();
  end_replaced_clients();
  look_at_admin_results();
  look_for_leaders();
}

void KafkaConnection::note_end(rd_kafka_t* client) {
  if (must_begin_anew_ || producer().get() != client || !can_be_replaced(client)) return;
  must_begin_anew_ = true;
  // The client tells that it has ended before it tells which entry was refused, and that one's sender
  // must hear why.
  if (is_refusal(fatal_error_of(client))) begin_anew_at_ = Clock::now() + kRefusalTold;
}

// An entry that is not acknowledged may wait for its broker. But if others, sent much later, were
// acknowledged long since, the client may have lost it.
void KafkaConnection::look_for_stuck_entries() {
  std::string partition;
  {
    const std::lock_guard lock(mutex_);
    const Outgoing* const oldest = oldest_of(*writing_);
    if (oldest == nullptr || Clock::now() - oldest->sent < stuck_after_ ||
        acknowledged_ - oldest->sent < stuck_after_ / 2)
      return;
    partition = oldest->partition.text();
  }
  begin_anew("Kafka's client has not got rid of an entry in " + partition + " for " +
             std::to_string(stuck_after_.count()) + " ms, while others were acknowledged");
  stuck_after_ = std::min<std::chrono::milliseconds>(2 * stuck_after_, kStuckAfterMax);
}

void KafkaConnection::begin_anew(const std::string& why) {
  auto made = make_writing();
  // Such as when there are no more threads. It is tried again at the next tick.
  if (!made) return settings_.warn("Kafka: " + made.error().message);
  must_begin_anew_ = false;
  begin_anew_at_ = {};
  settings_.warn(why + ": the client begins anew, and shards are claimed again");
  std::vector<Delivered> unknown;
  {
    const std::lock_guard lock(mutex_);
    replaced_.push_back(std::exchange(writing_, std::move(*made)));
    for (auto& [number, entry] : outgoing_)
      if (entry.client == replaced_.back().get() && entry.delivered)
        unknown.push_back(std::exchange(entry.delivered, nullptr));
  }
  for (const Delivered& delivered : unknown)
    delivered({.failure = Failure{why}, .began_anew = true, .at = {}});
}

// To end a client takes a while, for which others do not wait.
void KafkaConnection::end_replaced_clients() {
  std::erase_if(ending_clients_, [](const std::future<void>& ended) {
    return ended.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  std::erase_if(replaced_, [this](std::shared_ptr<Writing>& writing) {
    if (!has_let_go(*writing, std::chrono::milliseconds(0))) return false;
    forget({&writing->queue, &writing->admin_queue});
    // If there are no more threads, it is ended when this connection is.
    ending_clients_.push_back(
        std::async(std::launch::async | std::launch::deferred,
                   [ended = std::move(writing)]() mutable { ended.reset(); }));
    return true;
  });
}

void KafkaConnection::report(rd_kafka_t* client, const rd_kafka_message_t* message, void* opaque) {
  const std::uint64_t number = static_cast<const Outgoing*>(message->_private)->number;
  static_cast<KafkaConnection*>(opaque)->finish(client, number, *message);
}

void KafkaConnection::finish(rd_kafka_t* client, std::uint64_t number,
                             const rd_kafka_message_t& message) {
  Delivery delivery;
  if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (message.offset >= 0)
      delivery.at = journal::LogOffset(static_cast<std::uint64_t>(message.offset));
  } else {
    std::array<char, 512> fatal{};
    // Not rd_kafka_message_errstr(): of an entry that was sent, that is the entry itself.
    std::string reason = text_of(message.err);
    if (rd_kafka_fatal_error(client, fatal.data(), fatal.size()) != RD_KAFKA_RESP_ERR_NO_ERROR)
      reason += std::string(" (") + fatal.data() + ")";
    delivery.failure = Failure{reason};
    const bool is_in_doubt = is_lost_count(fatal_error_of(client)) || is_brokers_fault(message.err);
    // Whether the client has ended for another entry's sake.
    const bool is_bystander = is_refusal(fatal_error_of(client)) && is_clients_own(message.err);
    delivery.began_anew = is_in_doubt || is_bystander;
    if (is_in_doubt && producer().get() == client) must_begin_anew_ = true;
    note_end(client);
    if (is_in_doubt || !is_clients_own(message.err)) begin_anew_at_ = {};
  }
  std::map<std::uint64_t, Outgoing>::node_type done;
  {
    const std::lock_guard lock(mutex_);
    done = outgoing_.extract(number);
  }
  CHECK(!done.empty(), "an entry is reported once");
  if (!delivery.failure) {
    acknowledged_ = std::max(acknowledged_, done.mapped().sent);
    troubles_.acknowledged();
  }
  if (done.mapped().delivered) done.mapped().delivered(delivery);
}

void KafkaConnection::complain(rd_kafka_t* client, int error, const char* reason, void* opaque) {
  auto& self = *static_cast<KafkaConnection*>(opaque);
  if (self.silent_) return;
  self.troubled_at_ = Clock::now();
  self.note_end(client);
  std::string text = text_or_empty(reason);
  std::array<char, 512> fatal{};
  if (error == RD_KAFKA_RESP_ERR__FATAL &&
      rd_kafka_fatal_error(client, fatal.data(), fatal.size()) != RD_KAFKA_RESP_ERR_NO_ERROR)
    text = fatal.data();
  if (self.troubles_.complained(text, Clock::now())) self.settings_.warn("Kafka: " + text);
}

void KafkaConnection::pass_on_log(const rd_kafka_t* client, int, const char*, const char* line) {
  const auto& self = *static_cast<const KafkaConnection*>(rd_kafka_opaque(client));
  if (!self.silent_) self.settings_.warn("Kafka: " + text_or_empty(line));
}

void KafkaConnection::look_at_admin_results() {
  for (;;) {
    const Event event(rd_kafka_queue_poll(writing()->admin_queue.get(), 0));
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

void KafkaConnection::look_for_leaders() {
  const auto now = Clock::now();
  if (now - asked_at_ < kAskInterval) return;
  const auto held = writing();
  std::vector<std::pair<rd_kafka_t*, rd_kafka_topic_t*>> doubtful;
  {
    const std::lock_guard lock(mutex_);
    const Outgoing* const oldest = oldest_of(*held);
    if (oldest != nullptr && now - oldest->sent >= kLate) {
      const auto topic = topic_of(held->client.get(), held->topics, oldest->partition.topic);
      if (topic) doubtful.emplace_back(held->client.get(), *topic);
    }
    // One that only reads is not told that nothing comes.
    if (now - troubled_at_ < kTroubleLasts)
      for (const auto& [name, topic] : read_topics_)
        doubtful.emplace_back(consumer_.get(), topic.get());
  }
  if (doubtful.empty()) return;
  asked_at_ = now;
  for (const auto& [client, topic] : doubtful)
    if (const Metadata answer = ask_for_leaders(client, topic, kAskTimeoutMillis))
      troubles_.learn(*answer, Clock::now());
}

}  // namespace stanchion::kafka
