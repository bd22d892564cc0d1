// Does to the topics of a fleet what no node would, for faults.py and log_loss.py.
//
//   log_meddler append BROKERS TOPIC PARTITION [KEY]   standard input becomes one record
//   log_meddler last BROKERS TOPIC PARTITION           prints the last record, nothing if there is none
//   log_meddler range BROKERS TOPIC PARTITION          prints the first offset, and that behind the last
//   log_meddler trim BROKERS TOPIC PARTITION           removes all records
//   log_meddler partitions BROKERS TOPIC               a line each: number leader replica,… in-sync,…
//   log_meddler delete BROKERS TOPIC…                  deletes the topics
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kafka/handles.h"

namespace stanchion::kafka {
namespace {

constexpr int kTimeoutMillis = 20'000;
constexpr std::size_t kRecordSizeMax = 8 << 20;
using Steady = std::chrono::steady_clock;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "log_meddler: %s\n", why.c_str());
  std::exit(1);
}

void must(rd_kafka_resp_err_t error, const std::string& what) {
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) give_up(what + ": " + rd_kafka_err2str(error));
}

void set(rd_kafka_conf_t* conf, const char* name, const std::string& value) {
  std::array<char, 512> why{};
  if (rd_kafka_conf_set(conf, name, value.c_str(), why.data(), why.size()) != RD_KAFKA_CONF_OK)
    give_up(why.data());
}

rd_kafka_resp_err_t delivered_as = RD_KAFKA_RESP_ERR__TIMED_OUT;

void note_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void*) {
  delivered_as = message->err;
}

Client make_client(rd_kafka_type_t type, const std::string& brokers) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", brokers);
  set(conf, "log_level", "3");
  if (type == RD_KAFKA_PRODUCER) {
    set(conf, "message.max.bytes", std::to_string(kRecordSizeMax));
    set(conf, "message.timeout.ms", std::to_string(kTimeoutMillis));
    set(conf, "acks", "all");
    rd_kafka_conf_set_dr_msg_cb(conf, note_delivery);
  }
  std::array<char, 512> why{};
  Client client(rd_kafka_new(type, conf, why.data(), why.size()));
  if (!client) give_up(why.data());
  return client;
}

std::string read_standard_input() {
  std::string bytes;
  std::array<char, 65536> some{};
  for (ssize_t got = 0; (got = read(STDIN_FILENO, some.data(), some.size())) > 0;) {
    bytes.append(some.data(), static_cast<std::size_t>(got));
    if (bytes.size() > kRecordSizeMax) give_up("that is too much for one record");
  }
  return bytes;
}

void append(const std::string& brokers, const std::string& topic, int partition,
            std::string_view key) {
  std::string bytes = read_standard_input();
  const Client client = make_client(RD_KAFKA_PRODUCER, brokers);
  must(rd_kafka_producev(
           client.get(), RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(partition),
           RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE(bytes.data(), bytes.size()),
           RD_KAFKA_V_KEY(key.empty() ? nullptr : key.data(), key.size()), RD_KAFKA_V_END),
       "append");
  must(rd_kafka_flush(client.get(), kTimeoutMillis), "append");
  must(delivered_as, "append");
}

struct Range {
  std::int64_t low = 0, high = 0;
};

Range range_of(rd_kafka_t* client, const std::string& topic, int partition) {
  Range found;
  must(rd_kafka_query_watermark_offsets(client, topic.c_str(), partition, &found.low, &found.high,
                                        kTimeoutMillis),
       "the ends of the log");
  return found;
}

void print_range(const std::string& brokers, const std::string& topic, int partition) {
  const Client client = make_client(RD_KAFKA_CONSUMER, brokers);
  const Range range = range_of(client.get(), topic, partition);
  std::printf("%lld %lld\n", static_cast<long long>(range.low), static_cast<long long>(range.high));
}

void trim(const std::string& brokers, const std::string& topic, int partition) {
  const Client client = make_client(RD_KAFKA_PRODUCER, brokers);
  const std::unique_ptr<rd_kafka_topic_partition_list_t,
                        Destroy<rd_kafka_topic_partition_list_destroy>>
      offsets(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(offsets.get(), topic.c_str(), partition)->offset =
      range_of(client.get(), topic, partition).high;
  rd_kafka_DeleteRecords_t* request = rd_kafka_DeleteRecords_new(offsets.get());
  const Queue queue(rd_kafka_queue_new(client.get()));
  rd_kafka_DeleteRecords(client.get(), &request, 1, nullptr, queue.get());
  const Event event(rd_kafka_queue_poll(queue.get(), kTimeoutMillis));
  rd_kafka_DeleteRecords_destroy(request);
  if (!event) give_up("no answer to the removal");
  must(rd_kafka_event_error(event.get()), "trim");
  must(rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event.get()))
           ->elems[0]
           .err,
       "trim");
}

void print_last(const std::string& brokers, const std::string& topic, int partition) {
  const Client client = make_client(RD_KAFKA_CONSUMER, brokers);
  const auto [low, high] = range_of(client.get(), topic, partition);
  if (low == high) return;
  const Topic handle(rd_kafka_topic_new(client.get(), topic.c_str(), nullptr));
  if (rd_kafka_consume_start(handle.get(), partition, high - 1) != 0)
    must(rd_kafka_last_error(), "read");
  const auto deadline = Steady::now() + std::chrono::milliseconds(kTimeoutMillis);
  while (Steady::now() < deadline) {
    const Message message(rd_kafka_consume(handle.get(), partition, 500));
    if (!message || message->err != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    std::fwrite(message->payload, 1, message->len, stdout);
    rd_kafka_consume_stop(handle.get(), partition);
    return;
  }
  give_up("the last record does not come");
}

std::string list_of(const std::int32_t* brokers, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + std::to_string(brokers[i]);
  return text.empty() ? "-" : text;
}

void print_partitions(const std::string& brokers, const std::string& topic) {
  const Client client = make_client(RD_KAFKA_CONSUMER, brokers);
  const Topic handle(rd_kafka_topic_new(client.get(), topic.c_str(), nullptr));
  const rd_kafka_metadata_t* found = nullptr;
  must(rd_kafka_metadata(client.get(), 0, handle.get(), &found, kTimeoutMillis), "metadata");
  for (int i = 0; found->topic_cnt == 1 && i < found->topics[0].partition_cnt; ++i) {
    const rd_kafka_metadata_partition_t& one = found->topics[0].partitions[i];
    std::printf("%d %d %s %s\n", one.id, one.leader, list_of(one.replicas, one.replica_cnt).c_str(),
                list_of(one.isrs, one.isr_cnt).c_str());
  }
  rd_kafka_metadata_destroy(found);
}

void delete_topics(const std::string& brokers, const std::vector<std::string>& topics) {
  const Client client = make_client(RD_KAFKA_PRODUCER, brokers);
  const Queue queue(rd_kafka_queue_new(client.get()));
  std::vector<rd_kafka_DeleteTopic_t*> wanted;
  for (const std::string& topic : topics) wanted.push_back(rd_kafka_DeleteTopic_new(topic.c_str()));
  rd_kafka_DeleteTopics(client.get(), wanted.data(), wanted.size(), nullptr, queue.get());
  const Event event(rd_kafka_queue_poll(queue.get(), kTimeoutMillis));
  rd_kafka_DeleteTopic_destroy_array(wanted.data(), wanted.size());
  if (!event) give_up("no answer to the deletion");
  must(rd_kafka_event_error(event.get()), "delete");
  std::size_t count = 0;
  const rd_kafka_topic_result_t** results =
      rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event.get()), &count);
  for (std::size_t i = 0; i < count; ++i)
    must(rd_kafka_topic_result_error(results[i]), rd_kafka_topic_result_name(results[i]));
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3) give_up("COMMAND BROKERS TOPIC …");
  const std::string& command = arguments[0];
  const int partition = arguments.size() > 3 ? std::atoi(arguments[3].c_str()) : 0;
  if (command == "append") {
    append(arguments[1], arguments[2], partition, arguments.size() > 4 ? arguments[4] : "");
  } else if (command == "last") {
    print_last(arguments[1], arguments[2], partition);
  } else if (command == "range") {
    print_range(arguments[1], arguments[2], partition);
  } else if (command == "trim") {
    trim(arguments[1], arguments[2], partition);
  } else if (command == "partitions") {
    print_partitions(arguments[1], arguments[2]);
  } else if (command == "delete") {
    delete_topics(arguments[1], {arguments.begin() + 2, arguments.end()});
  } else {
    give_up("there is no command " + command);
  }
  return 0;
}

}  // namespace
}  // namespace stanchion::kafka

int main(int argc, char** argv) {
  return stanchion::kafka::run({argv + 1, argv + argc});
}
