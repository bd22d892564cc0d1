// The names of things: queues, messages, shards, transfers, tasks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/strong.h"
#include "base/text.h"

namespace stanchion {

using ShardIndex = Strong<struct ShardIndexTag, std::uint32_t>;

// A queue's number within its shard. Never reused: a queue that is deleted and created anew under
// the same name is another queue.
using QueueId = Strong<struct QueueIdTag>;

// The number of a message in its queue. Increasing, never reused.
using Seq = Strong<struct SeqTag>;

// Numbers the transfers of a shard (dead letters, redrives); increasing, never reused.
using TransferNo = Strong<struct TransferNoTag>;

// The ordinal of a record in a shard's journal. The first record is 1; 0 means "nothing yet".
using Position = Strong<struct PositionTag>;

// 128 random bits that print as a UUID.
template <class Tag>
struct Uuid {
  std::array<std::uint8_t, 16> bytes{};

  std::string text() const { return format_uuid(bytes); }
  friend auto operator<=>(const Uuid&, const Uuid&) = default;
};
using MessageId = Uuid<struct MessageIdTag>;
using TaskId = Uuid<struct TaskIdTag>;

// The full name of a queue: its account, its region, and its own name.
struct QueueRef {
  std::string account;
  std::string region;
  std::string name;

  std::string arn() const;
  friend auto operator<=>(const QueueRef&, const QueueRef&) = default;
};

// nullopt unless `arn` is arn:<partition>:sqs:<region>:<account>:<name> with nothing left empty.
std::optional<QueueRef> parse_queue_arn(std::string_view arn);

// Whether `arn` has the five separators of an ARN, whatever the service.
bool looks_like_arn(std::string_view arn);

inline constexpr std::string_view kFifoSuffix = ".fifo";
inline bool is_fifo_name(std::string_view name) {
  return name.ends_with(kFifoSuffix);
}

// The 20-digit number that FIFO queues show for a message.
std::string format_sequence_number(Seq seq);

}  // namespace stanchion
