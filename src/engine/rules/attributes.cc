#include "engine/rules/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "base/json_members.h"
#include "base/text.h"
#include "engine/queue.h"
#include "model/limits.h"

namespace stanchion::engine {
namespace {

namespace json = boost::json;

constexpr std::string_view kFifoQueue = "FifoQueue";
constexpr std::string_view kRedrivePolicy = "RedrivePolicy";
constexpr std::string_view kRedriveAllowPolicy = "RedriveAllowPolicy";

Answer<void> bad_value(std::string_view name) {
  return refuse(ErrorCode::kInvalidAttributeValue,
                fmt::format("Invalid value for the parameter {}.", name));
}

Answer<void> unknown_name(std::string_view name) {
  return refuse(ErrorCode::kInvalidAttributeName, fmt::format("Unknown Attribute {}.", name));
}

Answer<void> set_number(std::int64_t& field, std::string_view name, std::string_view value,
                        std::int64_t least, std::int64_t most) {
  const auto number = parse_decimal(value);
  if (!number || *number > static_cast<std::uint64_t>(most) ||
      static_cast<std::int64_t>(*number) < least)
    return bad_value(name);
  field = static_cast<std::int64_t>(*number);
  return {};
}

// Upper or lower case, because many clients send Python's str(True).
std::optional<bool> parse_flag(std::string_view value) {
  if (equals_ignoring_ascii_case(value, "true")) return true;
  if (equals_ignoring_ascii_case(value, "false")) return false;
  return std::nullopt;
}

Answer<void> set_flag(bool& field, std::string_view name, std::string_view value) {
  const auto flag = parse_flag(value);
  if (!flag) return bad_value(name);
  field = *flag;
  return {};
}

std::optional<json::object> parse_object(std::string_view text) {
  // Parsed, it takes many times its size; ten names of queues fit into the size of a policy.
  if (text.size() > limits::kPolicySizeMax) return std::nullopt;
  json::error_code error;
  json::parse_options options;
  options.max_depth = 16;
  const json::value value = json::parse(text, error, {}, options);
  // One of two equal members would count, while the author may believe in the other.
  if (error || !value.is_object() || repeats_a_member(text)) return std::nullopt;
  return value.as_object();
}

Answer<RedrivePolicy> parse_redrive_policy(const std::string& text) {
  const auto wrong = [&](const std::string& reason) {
    return refuse(
        ErrorCode::kInvalidParameterValue,
        fmt::format("Value {} for parameter RedrivePolicy is invalid. Reason: {}", text, reason));
  };
  const auto object = parse_object(text);
  if (!object)
    return refuse(ErrorCode::kInvalidParameterValue,
                  "Invalid value for the parameter RedrivePolicy. Reason: Redrive policy is not a "
                  "valid JSON map.");
  for (const auto& member : *object)
    if (member.key() != "maxReceiveCount" && member.key() != "deadLetterTargetArn")
      return wrong(
          "Only following attributes are supported: [maxReceiveCount, deadLetterTargetArn].");
  const json::value* count = object->if_contains("maxReceiveCount");
  const json::value* target = object->if_contains("deadLetterTargetArn");
  if (target == nullptr || !target->is_string() || target->as_string().empty())
    return wrong("Redrive policy does not contain mandatory attribute: deadLetterTargetArn.");
  if (count == nullptr)
    return wrong("Redrive policy does not contain mandatory attribute: maxReceiveCount.");

  const std::string count_text =
      count->is_string() ? std::string(count->as_string()) : json::serialize(*count);
  const auto number = parse_decimal(count_text);
  if (!number || *number < 1 || *number > limits::kMaxReceiveCountMax)
    return wrong(
        fmt::format("Invalid value for maxReceiveCount: {}, valid values are from 1 to {} both "
                    "inclusive.",
                    count_text, limits::kMaxReceiveCountMax));
  RedrivePolicy policy{std::string(target->as_string()), static_cast<std::uint32_t>(*number)};
  if (!looks_like_arn(policy.target_arn) || policy.target_arn.size() > limits::kArnSizeMax)
    return wrong("Dead-letter target ARN should be fully qualified ARN.");
  if (!parse_queue_arn(policy.target_arn))
    return wrong("Only SQS queues are valid resources for deadLetterTargetArn.");
  return policy;
}

Answer<RedriveAllowPolicy> parse_redrive_allow_policy(const std::string& text) {
  using Permission = RedriveAllowPolicy::Permission;
  const auto unsupported = refuse(
      ErrorCode::kInvalidParameterValue,
      "Invalid value for the parameter RedriveAllowPolicy. Reason: Amazon SQS can't create the "
      "redrive allow policy, as it's in an unsupported format.");
  const auto wrong = [&](std::string_view reason) {
    return refuse(ErrorCode::kInvalidParameterValue,
                  fmt::format("Value {} for parameter RedriveAllowPolicy is invalid. Reason: "
                              "Amazon SQS can't create the redrive allow policy. {}",
                              text, reason));
  };
  const auto object = parse_object(text);
  if (!object) return unsupported;
  RedriveAllowPolicy policy;
  const json::value* sources = nullptr;
  bool has_permission = false;
  for (const auto& member : *object) {
    if (member.key() == "sourceQueueArns") {
      sources = &member.value();
    } else if (member.key() == "redrivePermission" && member.value().is_string()) {
      const std::string_view name = member.value().as_string();
      has_permission = true;
      if (name == "allowAll") {
        policy.permission = Permission::kAllowAll;
      } else if (name == "denyAll") {
        policy.permission = Permission::kDenyAll;
      } else if (name == "byQueue") {
        policy.permission = Permission::kByQueue;
      } else {
        return unsupported;
      }
    } else {
      return unsupported;
    }
  }
  if (!has_permission || (sources != nullptr && !sources->is_array())) return unsupported;
  if (policy.permission != Permission::kByQueue) {
    if (sources != nullptr)
      return wrong(
          "To specify one or more source queue ARNs, you must set redrivePermission to "
          "byQueue.");
    return policy;
  }
  if (sources == nullptr || sources->as_array().empty())
    return wrong(
        "When you specify the byQueue permission type, you must also specify one or more "
        "sourceQueueArns values.");
  if (sources->as_array().size() > limits::kRedriveSourceArnsMax)
    return wrong("The maximum number of source queue ARNs you can specify is 10.");
  for (const json::value& source : sources->as_array()) {
    if (!source.is_string() || source.as_string().size() > limits::kArnSizeMax) return unsupported;
    policy.source_arns.emplace_back(source.as_string());
  }
  return policy;
}

std::string to_json(const RedrivePolicy& policy) {
  return fmt::format(R"({{"deadLetterTargetArn":{},"maxReceiveCount":{}}})",
                     json::serialize(json::value(policy.target_arn)), policy.max_receive_count);
}

std::string to_json(const RedriveAllowPolicy& policy) {
  static constexpr std::array<std::string_view, 4> kNames{"", "allowAll", "denyAll", "byQueue"};
  json::object object;
  object["redrivePermission"] = kNames[static_cast<std::size_t>(policy.permission)];
  if (policy.permission == RedriveAllowPolicy::Permission::kByQueue)
    object["sourceQueueArns"] = json::array(policy.source_arns.begin(), policy.source_arns.end());
  return json::serialize(object);
}

Answer<void> set_fifo_only(QueueAttributes& a, std::string_view name, const std::string& value) {
  if (name == "ContentBasedDeduplication") {
    if (!a.fifo) return unknown_name(name);
    return set_flag(a.content_based_deduplication, name, value);
  }
  if (!a.fifo)
    return refuse(ErrorCode::kInvalidAttributeName,
                  fmt::format("You can specify the {} only when FifoQueue is set to true.", name));
  if (name == "DeduplicationScope") {
    if (value != "queue" && value != "messageGroup") return bad_value(name);
    a.deduplication_scope =
        value == "queue" ? DeduplicationScope::kQueue : DeduplicationScope::kMessageGroup;
    return {};
  }
  if (value != "perQueue" && value != "perMessageGroupId") return bad_value(name);
  a.throughput_limit =
      value == "perQueue" ? ThroughputLimit::kPerQueue : ThroughputLimit::kPerMessageGroupId;
  return {};
}

Answer<void> set_policies(QueueAttributes& a, std::string_view name, const std::string& value) {
  if (name == "Policy") {
    if (value.size() > limits::kPolicySizeMax || (!value.empty() && !parse_object(value)))
      return bad_value(name);
    a.policy = value;
    return {};
  }
  if (name == kRedrivePolicy) {
    if (value.empty()) return a.redrive.reset(), Answer<void>();
    auto policy = parse_redrive_policy(value);
    if (!policy) return std::unexpected(policy.error());
    a.redrive = std::move(*policy);
    return {};
  }
  if (value.empty()) return a.redrive_allow.reset(), Answer<void>();
  auto policy = parse_redrive_allow_policy(value);
  if (!policy) return std::unexpected(policy.error());
  a.redrive_allow = std::move(*policy);
  return {};
}

Answer<void> set_encryption(QueueAttributes& a, std::string_view name, const std::string& value) {
  if (name == "KmsDataKeyReusePeriodSeconds")
    return set_number(a.kms_reuse_seconds, name, value, limits::kKmsReuseSecondsMin,
                      limits::kKmsReuseSecondsMax);
  if (name == "KmsMasterKeyId") {
    if (value.size() > limits::kArnSizeMax) return bad_value(name);
    a.kms_master_key_id = value;
    if (!value.empty()) a.managed_sse = false;
    return {};
  }
  const Answer<void> set = set_flag(a.managed_sse, name, value);
  if (set && a.managed_sse) {
    a.kms_master_key_id.clear();
    a.kms_reuse_seconds = limits::kKmsReuseSecondsDefault;
  }
  return set;
}

Answer<void> set_attribute(QueueAttributes& a, std::string_view name, const std::string& value) {
  using namespace limits;
  if (name == "VisibilityTimeout")
    return set_number(a.visibility_timeout_seconds, name, value, 0, kVisibilityTimeoutSecondsMax);
  if (name == "DelaySeconds") return set_number(a.delay_seconds, name, value, 0, kDelaySecondsMax);
  if (name == "MaximumMessageSize")
    return set_number(a.message_size_max, name, value, kMessageSizeMaxMin, kMessageSizeMax);
  if (name == "MessageRetentionPeriod")
    return set_number(a.retention_seconds, name, value, kRetentionSecondsMin, kRetentionSecondsMax);
  if (name == "ReceiveMessageWaitTimeSeconds")
    return set_number(a.wait_time_seconds, name, value, 0, kWaitTimeSecondsMax);
  if (name == "Policy" || name == kRedrivePolicy || name == kRedriveAllowPolicy)
    return set_policies(a, name, value);
  if (name == "KmsMasterKeyId" || name == "KmsDataKeyReusePeriodSeconds" ||
      name == "SqsManagedSseEnabled")
    return set_encryption(a, name, value);
  if (name == "ContentBasedDeduplication" || name == "DeduplicationScope" ||
      name == "FifoThroughputLimit")
    return set_fifo_only(a, name, value);
  return unknown_name(name);
}

bool valid_name_characters(std::string_view name) {
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

const char* flag(bool value) {
  return value ? "true" : "false";
}

void put_settings(StringMap& out, const Queue& queue) {
  const QueueAttributes& a = queue.attributes();
  out["VisibilityTimeout"] = fmt::to_string(a.visibility_timeout_seconds);
  out["DelaySeconds"] = fmt::to_string(a.delay_seconds);
  out["MaximumMessageSize"] = fmt::to_string(a.message_size_max);
  out["MessageRetentionPeriod"] = fmt::to_string(a.retention_seconds);
  out["ReceiveMessageWaitTimeSeconds"] = fmt::to_string(a.wait_time_seconds);
  if (!a.policy.empty()) out["Policy"] = a.policy;
  if (a.redrive) out[std::string(kRedrivePolicy)] = to_json(*a.redrive);
  if (a.redrive_allow) out[std::string(kRedriveAllowPolicy)] = to_json(*a.redrive_allow);
  if (!a.kms_master_key_id.empty()) {
    out["KmsMasterKeyId"] = a.kms_master_key_id;
    out["KmsDataKeyReusePeriodSeconds"] = fmt::to_string(a.kms_reuse_seconds);
  }
  out["SqsManagedSseEnabled"] = flag(a.managed_sse);
  if (!a.fifo) return;
  out[std::string(kFifoQueue)] = "true";
  out["ContentBasedDeduplication"] = flag(a.content_based_deduplication);
  out["DeduplicationScope"] =
      a.deduplication_scope == DeduplicationScope::kQueue ? "queue" : "messageGroup";
  out["FifoThroughputLimit"] =
      a.throughput_limit == ThroughputLimit::kPerQueue ? "perQueue" : "perMessageGroupId";
}

StringMap all_attributes(const Queue& queue) {
  StringMap out;
  put_settings(out, queue);
  out["QueueArn"] = queue.arn;
  out["ApproximateNumberOfMessages"] = fmt::to_string(queue.counts().visible);
  out["ApproximateNumberOfMessagesNotVisible"] = fmt::to_string(queue.counts().in_flight);
  out["ApproximateNumberOfMessagesDelayed"] = fmt::to_string(queue.counts().delayed);
  out["CreatedTimestamp"] = fmt::to_string(to_seconds(queue.created));
  out["LastModifiedTimestamp"] = fmt::to_string(to_seconds(queue.modified()));
  return out;
}

constexpr std::array kKnownNames{
    std::string_view("All"),
    std::string_view("ApproximateNumberOfMessages"),
    std::string_view("ApproximateNumberOfMessagesDelayed"),
    std::string_view("ApproximateNumberOfMessagesNotVisible"),
    std::string_view("ContentBasedDeduplication"),
    std::string_view("CreatedTimestamp"),
    std::string_view("DeduplicationScope"),
    std::string_view("DelaySeconds"),
    std::string_view("FifoQueue"),
    std::string_view("FifoThroughputLimit"),
    std::string_view("KmsDataKeyReusePeriodSeconds"),
    std::string_view("KmsMasterKeyId"),
    std::string_view("LastModifiedTimestamp"),
    std::string_view("MaximumMessageSize"),
    std::string_view("MessageRetentionPeriod"),
    std::string_view("Policy"),
    std::string_view("QueueArn"),
    std::string_view("ReceiveMessageWaitTimeSeconds"),
    std::string_view("RedriveAllowPolicy"),
    std::string_view("RedrivePolicy"),
    std::string_view("SqsManagedSseEnabled"),
    std::string_view("VisibilityTimeout"),
};

}  // namespace

Answer<bool> fifo_of_new_queue(std::string_view name, const StringMap& attributes) {
  const auto given = attributes.find(kFifoQueue);
  const bool wants_fifo = given != attributes.end() && parse_flag(given->second) == true;
  if (name.empty()) return refuse(ErrorCode::kInvalidParameterValue, "Queue name cannot be empty");
  if (given != attributes.end() && (!wants_fifo || !is_fifo_name(name))) {
    if (wants_fifo)
      return refuse(ErrorCode::kInvalidParameterValue,
                    "The name of a FIFO queue can only include alphanumeric characters, hyphens, "
                    "or underscores, must end with .fifo suffix and be 1 to 80 in length.");
    return refuse(ErrorCode::kInvalidAttributeName, "Unknown Attribute FifoQueue.");
  }
  const std::string_view stem =
      wants_fifo ? name.substr(0, name.size() - kFifoSuffix.size()) : name;
  if (name.size() > limits::kQueueNameSizeMax || stem.empty() || !valid_name_characters(stem)) {
    return refuse(ErrorCode::kInvalidParameterValue,
                  wants_fifo
                      ? "The name of a FIFO queue can only include alphanumeric characters, "
                        "hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in "
                        "length."
                      : "Can only include alphanumeric characters, hyphens, or underscores. 1 to "
                        "80 in length");
  }
  return wants_fifo;
}

Answer<void> check_fifo_of_queue(bool fifo, const StringMap& attributes) {
  const auto given = attributes.find(kFifoQueue);
  if (given == attributes.end()) return {};
  if (!fifo) return unknown_name(kFifoQueue);
  if (parse_flag(given->second) == true) return {};
  return refuse(ErrorCode::kInvalidAttributeValue,
                "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not "
                "supported.");
}

Answer<QueueAttributes> with_attributes(QueueAttributes base, const StringMap& attributes) {
  const auto sse = attributes.find("SqsManagedSseEnabled");
  const auto key = attributes.find("KmsMasterKeyId");
  if (sse != attributes.end() && parse_flag(sse->second) == true && key != attributes.end() &&
      !key->second.empty())
    return refuse(
        ErrorCode::kInvalidAttributeName,
        "You can use one type of server-side encryption (SSE) at one time. You can either "
        "enable KMS SSE or SQS SSE.");
  for (const auto& [name, value] : attributes) {
    if (name == kFifoQueue) continue;
    if (const auto set = set_attribute(base, name, value); !set)
      return std::unexpected(set.error());
  }
  if (base.throughput_limit == ThroughputLimit::kPerMessageGroupId &&
      base.deduplication_scope != DeduplicationScope::kMessageGroup)
    return refuse(ErrorCode::kInvalidAttributeValue,
                  "The perMessageGroupId value is allowed only when the value for "
                  "DeduplicationScope is messageGroup");
  return base;
}

Answer<std::optional<std::string>> first_difference(const QueueAttributes& existing,
                                                    const StringMap& attributes) {
  for (const auto& [name, value] : attributes) {
    if (name == kFifoQueue) continue;
    QueueAttributes changed = existing;
    if (const auto set = set_attribute(changed, name, value); !set)
      return std::unexpected(set.error());
    if (changed != existing) return name;
  }
  return std::nullopt;
}

Answer<StringMap> read_attributes(const Queue& queue, const std::vector<std::string>& names) {
  StringMap out;
  if (names.empty()) return out;
  for (const std::string& name : names)
    if (std::ranges::find(kKnownNames, name) == kKnownNames.end())
      return std::unexpected(unknown_name(name).error());
  StringMap all = all_attributes(queue);
  if (std::ranges::find(names, "All") != names.end()) return all;
  for (const std::string& name : names)
    if (const auto found = all.find(name); found != all.end()) out.insert(*found);
  return out;
}

std::optional<QueueRef> redrive_target(const StringMap& attributes) {
  const auto given = attributes.find(kRedrivePolicy);
  if (given == attributes.end() || given->second.empty()) return std::nullopt;
  const auto policy = parse_redrive_policy(given->second);
  return policy ? parse_queue_arn(policy->target_arn) : std::nullopt;
}

Answer<void> check_redrive_target(const QueueRef& source, bool fifo, const RedrivePolicy& policy,
                                  const std::string& policy_text,
                                  const std::optional<QueueSummary>& target) {
  const auto wrong = [&](std::string_view reason) {
    return refuse(ErrorCode::kInvalidParameterValue,
                  fmt::format("Value {} for parameter RedrivePolicy is invalid. Reason: {}",
                              policy_text, reason));
  };
  const auto ref = parse_queue_arn(policy.target_arn);
  if (ref->account != source.account)
    return wrong("Dead-letter target owner should be same as the source.");
  if (ref->region != source.region)
    return wrong("Dead-letter target must be in the same region as the source.");
  if (!target) return wrong("Dead letter target does not exist.");
  if (target->fifo != fifo)
    return wrong("Dead-letter queue must be same type of queue as the source..");
  if (target->redrive_allow && !target->redrive_allow->allows(source.arn()))
    return wrong("The redrive allow policy of the dead-letter queue does not permit this source.");
  return {};
}

}  // namespace stanchion::engine
