#include "kafka/topic_rules.h"

#include <optional>
#include <string_view>

#include "base/text.h"
#include "kafka/settings.h"

namespace stanchion::kafka {
namespace {

std::optional<std::string> find(const std::map<std::string, std::string>& settings,
                                std::string_view name) {
  const auto found = settings.find(std::string(name));
  if (found == settings.end()) return std::nullopt;
  return found->second;
}

std::optional<std::uint64_t> number(const std::map<std::string, std::string>& settings,
                                    std::string_view name) {
  const auto text = find(settings, name);
  return text ? parse_decimal(*text) : std::nullopt;
}

std::string change(const TopicDescription& topic, std::string_view name, std::string_view value,
                   std::string_view why) {
  const auto is = find(topic.settings, name);
  return "topic " + topic.name + ": set " + std::string(name) + "=" + std::string(value) +
         (is ? " (it is " + *is + ")" : "") + ", because " + std::string(why);
}

void must_be(const TopicDescription& topic, std::string_view name, std::string_view value,
             std::string_view why, Findings& findings) {
  // What a broker does not know, it does not do.
  const auto is = find(topic.settings, name);
  if (is && *is != value) findings.refusals.push_back(change(topic, name, value, why));
}

void judge_copies(const TopicDescription& topic, Findings& findings) {
  if (topic.replicas < kReplicas)
    findings.refusals.push_back("topic " + topic.name + " has " + std::to_string(topic.replicas) +
                                " replicas: it needs 3, in three zones");
  if (const auto in_sync = number(topic.settings, "min.insync.replicas"); !in_sync || *in_sync < 2)
    findings.refusals.push_back(
        change(topic, "min.insync.replicas", "2",
               "otherwise what was acknowledged may be on one broker only"));
  else if (topic.replicas >= kReplicas && *in_sync >= static_cast<unsigned>(topic.replicas))
    findings.warnings.push_back("topic " + topic.name +
                                ": min.insync.replicas=" + std::to_string(*in_sync) +
                                " stops all sends while a single broker is down");
}

void judge_logs(const TopicDescription& topic, Findings& findings) {
  must_be(topic, "cleanup.policy", "delete", "compaction removes entries", findings);
  must_be(topic, "retention.ms", "-1", "entries that are still needed would expire", findings);
  must_be(topic, "retention.bytes", "-1", "entries that are still needed would be removed",
          findings);
  // Not refused: the first releases made it without, and a fleet is upgraded node by node.
  if (const auto found = topic.settings.find("message.timestamp.type");
      found != topic.settings.end() && found->second != "LogAppendTime")
    findings.warnings.push_back(
        change(topic, "message.timestamp.type", "LogAppendTime",
               "a node whose clock is far from the brokers' could write nothing"));
  if (const auto size = number(topic.settings, "max.message.bytes");
      size && *size < kMessageSizeMax)
    findings.refusals.push_back(change(topic, "max.message.bytes", std::to_string(kMessageSizeMax),
                                       "the largest entries would be refused"));
}

// Every release has made it with both.
void judge_control(const TopicDescription& topic, Findings& findings) {
  must_be(topic, "cleanup.policy", "compact", "who owns what would expire, or pile up", findings);
  must_be(topic, "message.timestamp.type", "LogAppendTime",
          "a node whose clock is far from the brokers' could not say that it is alive, and nobody "
          "could tell whose clock is wrong",
          findings);
}

}  // namespace

const std::vector<std::pair<std::string, std::string>>& topic_settings(TopicUse use) {
  static const std::vector<std::pair<std::string, std::string>> logs{
      {"cleanup.policy", "delete"},
      {"retention.ms", "-1"},
      {"retention.bytes", "-1"},
      {"unclean.leader.election.enable", "false"},
      {"min.insync.replicas", "2"},
      {"max.message.bytes", std::to_string(kMessageSizeMax)},
      {"message.timestamp.type", "LogAppendTime"},
  };
  // Every node that starts reads all of it, so that it is compacted early and often: some thousand
  // beats are left. The brokers' time tells how late a beat is, whatever the nodes' clocks say.
  static const std::vector<std::pair<std::string, std::string>> control{
      {"cleanup.policy", "compact"},
      {"segment.ms", "600000"},
      {"segment.bytes", "16777216"},
      {"min.cleanable.dirty.ratio", "0.1"},
      {"max.compaction.lag.ms", "600000"},
      {"delete.retention.ms", "3600000"},
      {"message.timestamp.type", "LogAppendTime"},
      {"unclean.leader.election.enable", "false"},
      {"min.insync.replicas", "2"},
  };
  return use == TopicUse::kLogs ? logs : control;
}

Findings judge_topic(const TopicDescription& topic, int partitions, bool one_copy_will_do,
                     TopicUse use) {
  Findings findings;
  if (topic.partitions != partitions)
    findings.refusals.push_back("topic " + topic.name + " has " + std::to_string(topic.partitions) +
                                " partitions, but there are " + std::to_string(partitions) +
                                " logs: it is not this fleet's");
  if (!one_copy_will_do) judge_copies(topic, findings);
  must_be(topic, "unclean.leader.election.enable", "false",
          "a replica that lags could become the leader, and what it lacks would be lost", findings);
  use == TopicUse::kLogs ? judge_logs(topic, findings) : judge_control(topic, findings);
  return findings;
}

std::vector<std::string> judge_broker(int id, const std::map<std::string, std::string>& settings) {
  struct Limit {
    std::string_view name;
    std::uint64_t slow;
    std::string_view advice;
    std::string_view why;
  };
  constexpr Limit kLimits[] = {
      {"broker.session.timeout.ms", 3000, "2000", "so long a dead broker goes on being a leader"},
      {"replica.lag.time.max.ms", 5000, "2000", "so long a silent replica holds up every send"},
  };
  std::vector<std::string> warnings;
  for (const Limit& limit : kLimits)
    if (const auto is = number(settings, limit.name); is && *is > limit.slow)
      warnings.push_back("broker " + std::to_string(id) + ": " + std::string(limit.name) + "=" +
                         std::to_string(*is) + " is slow, " + std::string(limit.why) +
                         "; a fleet wants " + std::string(limit.advice));
  return warnings;
}

}  // namespace stanchion::kafka
