#include "kafka/admin.h"

#include <algorithm>
#include <array>
#include <climits>
#include <expected>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>

#include "base/check.h"
#include "kafka/client_conf.h"

namespace stanchion::kafka {
namespace {

using NewTopic = std::unique_ptr<rd_kafka_NewTopic_t, Destroy<rd_kafka_NewTopic_destroy>>;
using Resource =
    std::unique_ptr<rd_kafka_ConfigResource_t, Destroy<rd_kafka_ConfigResource_destroy>>;
using Metadata = std::unique_ptr<const rd_kafka_metadata_t, Destroy<rd_kafka_metadata_destroy>>;

// A topic that was just made is not known to all brokers yet.
constexpr auto kAskAgainAfter = std::chrono::milliseconds(100);

Result<NewTopic> new_topic(const std::string& topic, int partitions, bool one_copy, TopicUse use) {
  std::array<char, 256> reason{};
  NewTopic made(rd_kafka_NewTopic_new(topic.c_str(), partitions, one_copy ? 1 : kReplicas,
                                      reason.data(), reason.size()));
  if (!made) return fail("topic " + topic + " cannot be made: " + reason.data());
  for (const auto& [name, value] : topic_settings(use)) {
    const bool for_one = one_copy && name == "min.insync.replicas";
    const rd_kafka_resp_err_t error =
        rd_kafka_NewTopic_set_config(made.get(), name.c_str(), for_one ? "1" : value.c_str());
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
      return fail("topic " + topic + " cannot have " + name + ": " + text_of(error));
  }
  return made;
}

// Asked of all topics: asked of one, a broker that makes topics by use would make it.
std::expected<Metadata, rd_kafka_resp_err_t> ask_for_topics(rd_kafka_t* client,
                                                            std::chrono::milliseconds timeout) {
  const rd_kafka_metadata_t* raw = nullptr;
  const rd_kafka_resp_err_t error =
      rd_kafka_metadata(client, 1, nullptr, &raw, static_cast<int>(timeout.count()));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return std::unexpected(error);
  return Metadata(raw);
}

std::optional<int> partitions_in(const rd_kafka_metadata_t& metadata, const std::string& topic) {
  for (int i = 0; i < metadata.topic_cnt; ++i)
    if (metadata.topics[i].topic == topic && metadata.topics[i].partition_cnt > 0)
      return metadata.topics[i].partition_cnt;
  return std::nullopt;
}

}  // namespace

AdminOptions KafkaAdmin::options(rd_kafka_admin_op_t operation) const {
  AdminOptions made(rd_kafka_AdminOptions_new(connection_.producer().get(), operation));
  std::array<char, 256> reason{};
  const rd_kafka_resp_err_t error = rd_kafka_AdminOptions_set_request_timeout(
      made.get(), static_cast<int>(timeout_.count()), reason.data(), reason.size());
  CHECK(error == RD_KAFKA_RESP_ERR_NO_ERROR, reason.data());
  return made;
}

Result<Event> KafkaAdmin::wait_for(rd_kafka_queue_t* queue, const std::string& what) {
  Event event(rd_kafka_queue_poll(queue, static_cast<int>(timeout_.count()) + 1000));
  if (!event) return fail("Kafka does not answer: " + what);
  if (rd_kafka_event_error(event.get()) == RD_KAFKA_RESP_ERR_NO_ERROR) return event;
  return fail(what + ": " + text_or_empty(rd_kafka_event_error_string(event.get())));
}

Status KafkaAdmin::create_topic(const std::string& topic, int partitions, bool one_copy_will_do,
                                TopicUse use) {
  auto made = new_topic(topic, partitions, one_copy_will_do, use);
  if (!made) return std::unexpected(made.error());
  const Queue queue(rd_kafka_queue_new(connection_.producer().get()));
  rd_kafka_NewTopic_t* topics[] = {made->get()};
  rd_kafka_CreateTopics(connection_.producer().get(), topics, 1,
                        options(RD_KAFKA_ADMIN_OP_CREATETOPICS).get(), queue.get());
  const auto event = wait_for(queue.get(), "topic " + topic + " could not be made");
  if (!event) return std::unexpected(event.error());
  std::size_t count = 0;
  const rd_kafka_topic_result_t** results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event->get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    const rd_kafka_resp_err_t error = rd_kafka_topic_result_error(results[i]);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR || error == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
      continue;
    return fail("topic " + topic + " could not be made: " +
                text_or_empty(rd_kafka_topic_result_error_string(results[i])));
  }
  return wait_until_known(topic);
}

Result<std::optional<int>> KafkaAdmin::partitions_of(const std::string& topic) {
  const auto metadata = ask_for_topics(connection_.producer().get(), timeout_);
  if (!metadata) return no_answer(metadata.error());
  return partitions_in(**metadata, topic);
}

std::unexpected<Failure> KafkaAdmin::no_answer(rd_kafka_resp_err_t error) const {
  const std::string reason = connection_.last_error();
  return fail("Kafka does not answer at " + connection_.settings().brokers + ": " +
              (reason.empty() ? text_of(error) : reason));
}

Status KafkaAdmin::wait_until_known(const std::string& topic) {
  const auto deadline = Clock::now() + timeout_;
  const auto metadata = ask_for_topics(connection_.producer().get(), timeout_);
  if (!metadata) return no_answer(metadata.error());
  for (int i = 0; i < (*metadata)->broker_cnt; ++i) {
    const rd_kafka_metadata_broker_t& broker = (*metadata)->brokers[i];
    const std::string host = broker.host;
    const std::string address =
        (host.contains(':') ? "[" + host + "]" : host) + ":" + std::to_string(broker.port);
    RETURN_IF_FAILED(wait_until_known_at(address, topic, deadline));
  }
  return {};
}

// By a client that knows of this broker only. It hears of the others, but connects with none of them
// without a need.
Status KafkaAdmin::wait_until_known_at(const std::string& broker, const std::string& topic,
                                       Clock::time_point deadline) {
  KafkaSettings settings = connection_.settings();
  settings.brokers = broker;
  auto conf = ClientConf::common(settings);
  if (!conf) return std::unexpected(conf.error());
  const auto client = std::move(*conf).make(RD_KAFKA_PRODUCER);
  if (!client) return std::unexpected(client.error());
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    const auto metadata =
        ask_for_topics(client->get(), std::max(left, std::chrono::milliseconds(1)));
    if (metadata && partitions_in(**metadata, topic)) return {};
    if (Clock::now() >= deadline)
      return fail(
          "Kafka's broker at " + broker + " does not know the topic " + topic + " yet: " +
          (metadata ? "look whether it follows the controller" : text_of(metadata.error())) +
          ", and give the command again");
    std::this_thread::sleep_for(kAskAgainAfter);
  }
}

Result<KafkaAdmin::Shape> KafkaAdmin::shape_of(const std::string& topic) {
  const auto deadline = Clock::now() + timeout_;
  const Topic handle(rd_kafka_topic_new(connection_.producer().get(), topic.c_str(), nullptr));
  for (;;) {
    const rd_kafka_metadata_t* raw = nullptr;
    rd_kafka_resp_err_t error = rd_kafka_metadata(connection_.producer().get(), 0, handle.get(),
                                                  &raw, static_cast<int>(timeout_.count()));
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
      const Metadata metadata(raw);
      CHECK(metadata->topic_cnt == 1, "one topic was asked for");
      const rd_kafka_metadata_topic_t& found = metadata->topics[0];
      error = found.err;
      if (error == RD_KAFKA_RESP_ERR_NO_ERROR && found.partition_cnt > 0) {
        Shape shape{.partitions = found.partition_cnt, .replicas = INT_MAX, .brokers = {}};
        for (int i = 0; i < found.partition_cnt; ++i)
          shape.replicas = std::min(shape.replicas, found.partitions[i].replica_cnt);
        for (int i = 0; i < metadata->broker_cnt; ++i)
          shape.brokers.push_back(metadata->brokers[i].id);
        return shape;
      }
    }
    if (Clock::now() >= deadline)
      return fail("topic " + topic + " cannot be looked at: " + text_of(error));
    std::this_thread::sleep_for(kAskAgainAfter);
  }
}

// The broker that is asked may not have heard yet of a topic that another one has shown.
Result<std::map<std::string, std::string>> KafkaAdmin::settings_of(rd_kafka_ResourceType_t type,
                                                                   const std::string& name) {
  const auto deadline = Clock::now() + timeout_;
  for (;;) {
    bool is_unknown = false;
    auto settings = ask_settings_of(type, name, is_unknown);
    if (!is_unknown || Clock::now() >= deadline) return settings;
    std::this_thread::sleep_for(kAskAgainAfter);
  }
}

Result<std::map<std::string, std::string>> KafkaAdmin::ask_settings_of(rd_kafka_ResourceType_t type,
                                                                       const std::string& name,
                                                                       bool& is_unknown) {
  const Resource resource(rd_kafka_ConfigResource_new(type, name.c_str()));
  const Queue queue(rd_kafka_queue_new(connection_.producer().get()));
  rd_kafka_ConfigResource_t* resources[] = {resource.get()};
  rd_kafka_DescribeConfigs(connection_.producer().get(), resources, 1,
                           options(RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS).get(), queue.get());
  const std::string what = "the settings of " + name + " cannot be read";
  const auto event = wait_for(queue.get(), what);
  if (!event) return std::unexpected(event.error());
  std::size_t count = 0;
  const rd_kafka_ConfigResource_t** results = rd_kafka_DescribeConfigs_result_resources(
      rd_kafka_event_DescribeConfigs_result(event->get()), &count);
  std::map<std::string, std::string> settings;
  for (std::size_t i = 0; i < count; ++i) {
    const rd_kafka_resp_err_t error = rd_kafka_ConfigResource_error(results[i]);
    is_unknown = error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
      return fail(what + ": " + text_or_empty(rd_kafka_ConfigResource_error_string(results[i])));
    std::size_t entries = 0;
    const rd_kafka_ConfigEntry_t** entry = rd_kafka_ConfigResource_configs(results[i], &entries);
    for (std::size_t j = 0; j < entries; ++j)
      if (const char* value = rd_kafka_ConfigEntry_value(entry[j]); value != nullptr)
        settings[rd_kafka_ConfigEntry_name(entry[j])] = value;
  }
  return settings;
}

Result<TopicDescription> KafkaAdmin::describe_topic(const std::string& topic) {
  const auto shape = shape_of(topic);
  if (!shape) return std::unexpected(shape.error());
  auto settings = settings_of(RD_KAFKA_RESOURCE_TOPIC, topic);
  if (!settings) return std::unexpected(settings.error());
  return TopicDescription{.name = topic,
                          .partitions = shape->partitions,
                          .replicas = shape->replicas,
                          .settings = std::move(*settings)};
}

Result<std::vector<std::string>> KafkaAdmin::verify_topic(const std::string& topic, int partitions,
                                                          bool one_copy_will_do, TopicUse use) {
  const auto description = describe_topic(topic);
  if (!description) return std::unexpected(description.error());
  Findings findings = judge_topic(*description, partitions, one_copy_will_do, use);
  if (!findings.refusals.empty()) {
    std::string text = "Kafka would lose data as it is set up:";
    for (const std::string& refusal : findings.refusals) text += "\n  " + refusal;
    return fail(text);
  }
  const auto shape = shape_of(topic);
  if (!shape) return std::unexpected(shape.error());
  for (const int broker : shape->brokers) {
    const auto settings = settings_of(RD_KAFKA_RESOURCE_BROKER, std::to_string(broker));
    if (!settings) {
      // Hosted brokers do not show everything to everybody.
      findings.warnings.push_back("broker " + std::to_string(broker) + ": " +
                                  settings.error().message);
      continue;
    }
    std::ranges::move(judge_broker(broker, *settings), std::back_inserter(findings.warnings));
  }
  return findings.warnings;
}

}  // namespace stanchion::kafka
