#include "kafka/client_conf.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>

namespace stanchion::kafka {
namespace {

std::string reading_with(const KafkaSettings& settings, const char* name) {
  auto conf = ClientConf::common(settings);
  EXPECT_TRUE(conf) << conf.error().message;
  const Status status = conf->for_consumer(settings);
  EXPECT_TRUE(status) << status.error().message;
  std::array<char, 64> value{};
  std::size_t size = value.size();
  EXPECT_EQ(rd_kafka_conf_get(conf->get(), name, value.data(), &size), RD_KAFKA_CONF_OK);
  return value.data();
}

KafkaSettings settings_with(std::size_t read_ahead_max) {
  KafkaSettings settings;
  settings.brokers = "127.0.0.1:1";
  settings.read_ahead_max = read_ahead_max;
  return settings;
}

// Of what it cannot parse, the client asks for twice as much each time, up to a gibibyte.
TEST(ClientConf, WhatOneAnswerMayTakeIsBounded) {
  for (const std::size_t ahead : {std::size_t{1}, std::size_t{16} << 20, std::size_t{1} << 30}) {
    const KafkaSettings settings = settings_with(ahead);
    const long fetch = std::stol(reading_with(settings, "fetch.max.bytes"));
    EXPECT_GE(fetch, kMessageSizeMax);
    EXPECT_LE(fetch, 50 << 20);
    EXPECT_LE(std::stol(reading_with(settings, "receive.message.max.bytes")), fetch + (1 << 20));
    auto conf = ClientConf::common(settings);
    ASSERT_TRUE(conf && conf->for_consumer(settings));
    const auto client = std::move(*conf).make(RD_KAFKA_CONSUMER);
    EXPECT_TRUE(client) << client.error().message;
  }
}

TEST(ClientConf, OnlyLogsWhoseEntriesHaveChecksumsAreReadWithoutThoseOfBatches) {
  KafkaSettings settings = settings_with(1);
  EXPECT_EQ(reading_with(settings, "check.crcs"), "true");
  settings.verifies_batches = false;
  EXPECT_EQ(reading_with(settings, "check.crcs"), "false");
}

}  // namespace
}  // namespace stanchion::kafka
