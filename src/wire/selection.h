// Which attributes a ReceiveMessage asked for, and which of a message's attributes are therefore
// returned.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/reply.h"
#include "model/request.h"

namespace stanchion::wire {

enum class SystemAttribute {
  kSenderId,
  kSentTimestamp,
  kApproximateReceiveCount,
  kApproximateFirstReceiveTimestamp,
  kSequenceNumber,
  kMessageDeduplicationId,
  kMessageGroupId,
  kAWSTraceHeader,
  kDeadLetterQueueSourceArn,
};

inline constexpr std::array<std::string_view, 9> kSystemAttributeNames{
    "SenderId",
    "SentTimestamp",
    "ApproximateReceiveCount",
    "ApproximateFirstReceiveTimestamp",
    "SequenceNumber",
    "MessageDeduplicationId",
    "MessageGroupId",
    "AWSTraceHeader",
    "DeadLetterQueueSourceArn"};

// Made once per reply, used for each of its messages. Refers to the request.
class Selection {
 public:
  explicit Selection(const ReceiveMessage& request);

  // The system attributes that were asked for and that the message has, with their values.
  using SystemValue = std::pair<std::string_view, std::string>;
  void system_attributes(const ReceivedMessage& message, std::vector<SystemValue>& out) const;

  // The message attributes that were asked for, in the order in which they were sent.
  std::vector<AttributeView> message_attributes(const Content& content) const;

 private:
  bool wants(SystemAttribute attribute) const {
    return (system_ >> static_cast<unsigned>(attribute) & 1U) != 0;
  }
  bool wants(std::string_view name) const;

  std::uint32_t system_ = 0;
  bool all_ = false;
  const std::vector<std::string>& names_;
};

}  // namespace stanchion::wire
