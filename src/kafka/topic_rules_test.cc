#include "kafka/topic_rules.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stanchion::kafka {
namespace {

TopicDescription good_topic() {
  TopicDescription topic{.name = "log", .partitions = 24, .replicas = 3, .settings = {}};
  for (const auto& [name, value] : topic_settings()) topic.settings[name] = value;
  return topic;
}

std::string only_refusal(const TopicDescription& topic) {
  const Findings findings = judge_topic(topic, 24, false);
  EXPECT_EQ(findings.refusals.size(), 1u);
  return findings.refusals.empty() ? "" : findings.refusals.front();
}

TEST(TopicRules, TheTopicsThatWeMakeAreAccepted) {
  const Findings findings = judge_topic(good_topic(), 24, false);
  EXPECT_TRUE(findings.refusals.empty());
  EXPECT_TRUE(findings.warnings.empty());
}

TEST(TopicRules, EverySettingThatWouldLoseDataIsRefusedWithWhatToChange) {
  const std::pair<std::string, std::string> wrong[] = {
      {"cleanup.policy", "compact"},
      {"cleanup.policy", "compact,delete"},
      {"retention.ms", "604800000"},
      {"retention.bytes", "1073741824"},
      {"unclean.leader.election.enable", "true"},
      {"min.insync.replicas", "1"},
      {"max.message.bytes", "1048588"},
  };
  for (const auto& [name, value] : wrong) {
    TopicDescription topic = good_topic();
    const std::string right = topic.settings[name];
    topic.settings[name] = value;
    const std::string refusal = only_refusal(topic);
    EXPECT_NE(refusal.find("topic log: set " + name + "=" + right + " (it is " + value + ")"),
              std::string::npos)
        << refusal;
  }
}

// An earlier release made such topics, and its nodes run beside this one's in an upgrade.
TEST(TopicRules, TimestampsOfTheNodesAreWarnedOf) {
  TopicDescription topic = good_topic();
  topic.settings["message.timestamp.type"] = "CreateTime";
  const Findings findings = judge_topic(topic, 24, false);
  EXPECT_TRUE(findings.refusals.empty());
  ASSERT_EQ(findings.warnings.size(), 1u);
  EXPECT_NE(findings.warnings[0].find("set message.timestamp.type=LogAppendTime"),
            std::string::npos);
}

TEST(TopicRules, TooFewReplicasAndAnotherNumberOfPartitionsAreRefused) {
  TopicDescription topic = good_topic();
  topic.replicas = 2;
  EXPECT_NE(only_refusal(topic).find("has 2 replicas"), std::string::npos);
  topic = good_topic();
  topic.partitions = 12;
  EXPECT_NE(only_refusal(topic).find("has 12 partitions"), std::string::npos);
}

TEST(TopicRules, ASettingThatIsNotKnownIsNotTakenForASafeOne) {
  TopicDescription topic = good_topic();
  topic.settings.erase("min.insync.replicas");
  EXPECT_NE(only_refusal(topic).find("min.insync.replicas=2"), std::string::npos);
}

TEST(TopicRules, ATrialOnOneBrokerIsAcceptedIfItIsAskedFor) {
  TopicDescription topic = good_topic();
  topic.replicas = 1;
  topic.settings["min.insync.replicas"] = "1";
  EXPECT_EQ(judge_topic(topic, 24, false).refusals.size(), 2u);
  EXPECT_TRUE(judge_topic(topic, 24, true).refusals.empty());
  topic.settings["retention.ms"] = "1000";
  EXPECT_EQ(judge_topic(topic, 24, true).refusals.size(), 1u);
}

TEST(TopicRules, AControlLogIsCompactedAndNothingElse) {
  TopicDescription topic{.name = "control", .partitions = 1, .replicas = 3, .settings = {}};
  for (const auto& [name, value] : topic_settings(TopicUse::kControl)) topic.settings[name] = value;
  EXPECT_TRUE(judge_topic(topic, 1, false, TopicUse::kControl).refusals.empty());
  for (const char* policy : {"delete", "compact,delete"}) {
    topic.settings["cleanup.policy"] = policy;
    EXPECT_EQ(judge_topic(topic, 1, false, TopicUse::kControl).refusals.size(), 1u) << policy;
  }
}

// Every release has made it with the brokers' time, by which clocks are judged.
TEST(TopicRules, TimestampsOfTheNodesInAControlLogAreRefused) {
  TopicDescription topic{.name = "control", .partitions = 1, .replicas = 3, .settings = {}};
  for (const auto& [name, value] : topic_settings(TopicUse::kControl)) topic.settings[name] = value;
  topic.settings["message.timestamp.type"] = "CreateTime";
  const Findings findings = judge_topic(topic, 1, false, TopicUse::kControl);
  ASSERT_EQ(findings.refusals.size(), 1u);
  EXPECT_TRUE(findings.refusals[0].starts_with(
      "topic control: set message.timestamp.type=LogAppendTime (it is CreateTime), because"))
      << findings.refusals[0];
  EXPECT_TRUE(findings.warnings.empty());
}

TEST(TopicRules, SlowBrokersAndTooManyInSyncReplicasAreWarnedAbout) {
  TopicDescription topic = good_topic();
  topic.settings["min.insync.replicas"] = "3";
  EXPECT_EQ(judge_topic(topic, 24, false).warnings.size(), 1u);
  EXPECT_TRUE(judge_topic(topic, 24, false).refusals.empty());

  EXPECT_TRUE(
      judge_broker(1, {{"broker.session.timeout.ms", "2000"}, {"replica.lag.time.max.ms", "2000"}})
          .empty());
  const auto warnings = judge_broker(
      1, {{"broker.session.timeout.ms", "9000"}, {"replica.lag.time.max.ms", "30000"}});
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings.front().find("broker.session.timeout.ms=9000"), std::string::npos);
}

}  // namespace
}  // namespace stanchion::kafka
