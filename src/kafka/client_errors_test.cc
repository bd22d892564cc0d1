#include "kafka/client_errors.h"

#include <gtest/gtest.h>

namespace stanchion::kafka {
namespace {

TEST(ClientErrors, AClientThatDoesNotAgreeWithABrokerHasLostCount) {
  for (const rd_kafka_resp_err_t error :
       {RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID,
        RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, RD_KAFKA_RESP_ERR__INCONSISTENT})
    EXPECT_TRUE(is_lost_count(error)) << rd_kafka_err2name(error);
  for (const rd_kafka_resp_err_t error :
       {RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE,
        RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
        RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED})
    EXPECT_FALSE(is_lost_count(error)) << rd_kafka_err2name(error);
}

TEST(ClientErrors, AClientThatEndsForOneEntryCanBeReplacedForTheOthers) {
  EXPECT_TRUE(is_refusal(RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE));
  for (const rd_kafka_resp_err_t error :
       {RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_RESP_ERR__INCONSISTENT,
        RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED})
    EXPECT_FALSE(is_refusal(error)) << rd_kafka_err2name(error);
}

TEST(ClientErrors, WhatABrokerCannotExplainIsItsOwnFaultAndWhatIsForbiddenIsNot) {
  EXPECT_TRUE(is_brokers_fault(RD_KAFKA_RESP_ERR_UNKNOWN));
  EXPECT_TRUE(is_brokers_fault(RD_KAFKA_RESP_ERR_INVALID_MSG));
  for (const rd_kafka_resp_err_t error :
       {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
        RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, RD_KAFKA_RESP_ERR__FATAL})
    EXPECT_FALSE(is_brokers_fault(error)) << rd_kafka_err2name(error);
}

TEST(ClientErrors, AClientIsReplacedSoManyTimesAMinuteAtMost) {
  AnewLimit limit;
  const AnewLimit::Instant start{std::chrono::hours(1)};
  const auto after = [&](int seconds) { return start + std::chrono::seconds(seconds); };
  for (std::size_t i = 0; i < AnewLimit::kMax; ++i)
    EXPECT_TRUE(limit.may_begin_anew(after(static_cast<int>(i)))) << i;
  EXPECT_FALSE(limit.may_begin_anew(after(20)));
  EXPECT_FALSE(limit.may_begin_anew(after(59))) << "who is refused counts for nothing";
  EXPECT_TRUE(limit.may_begin_anew(after(60))) << "the first is a minute ago";
  EXPECT_FALSE(limit.may_begin_anew(after(60)));
  EXPECT_TRUE(limit.may_begin_anew(after(61)));
}

}  // namespace
}  // namespace stanchion::kafka
