// The settings of a queue, typed. How they are parsed and validated is engine/rules/attributes.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/ids.h"
#include "model/limits.h"

namespace stanchion {

struct RedrivePolicy {
  std::string target_arn;
  std::uint32_t max_receive_count = 1;

  friend bool operator==(const RedrivePolicy&, const RedrivePolicy&) = default;
};

struct RedriveAllowPolicy {
  enum class Permission : std::uint8_t { kAllowAll = 1, kDenyAll = 2, kByQueue = 3 };

  Permission permission = Permission::kAllowAll;
  std::vector<std::string> source_arns;

  bool allows(const std::string& source_arn) const;
  friend bool operator==(const RedriveAllowPolicy&, const RedriveAllowPolicy&) = default;
};

enum class DeduplicationScope : std::uint8_t { kQueue = 1, kMessageGroup = 2 };
enum class ThroughputLimit : std::uint8_t { kPerQueue = 1, kPerMessageGroupId = 2 };

struct QueueAttributes {
  std::int64_t visibility_timeout_seconds = limits::kVisibilityTimeoutSecondsDefault;
  std::int64_t delay_seconds = 0;
  std::int64_t message_size_max = limits::kMessageSizeMax;
  std::int64_t retention_seconds = limits::kRetentionSecondsDefault;
  std::int64_t wait_time_seconds = 0;
  std::string policy;  // Empty: none.
  std::optional<RedrivePolicy> redrive;
  std::optional<RedriveAllowPolicy> redrive_allow;
  std::string kms_master_key_id;  // Empty: none.
  std::int64_t kms_reuse_seconds = limits::kKmsReuseSecondsDefault;
  bool managed_sse = true;
  bool fifo = false;
  bool content_based_deduplication = false;
  DeduplicationScope deduplication_scope = DeduplicationScope::kQueue;
  ThroughputLimit throughput_limit = ThroughputLimit::kPerQueue;

  friend bool operator==(const QueueAttributes&, const QueueAttributes&) = default;
};

}  // namespace stanchion
