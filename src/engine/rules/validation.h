// SQS's rules for messages, ids and batches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "model/content.h"
#include "model/error.h"
#include "model/queue_attributes.h"
#include "model/request.h"

namespace stanchion::engine {

Error missing(std::string_view parameter);
Error invalid_value(std::string_view value, std::string_view parameter, std::string_view reason);

// A message that has passed all checks; views point into the OutgoingMessage it was made from.
struct CheckedMessage {
  std::string_view body;
  std::string_view group;
  std::string deduplication_id;  // Given, or derived from the body; empty on standard queues.
  std::optional<Hash128> deduplication_key{};  // FIFO: the key by which repetitions are dropped.
  std::string_view trace_header;
  std::vector<AttributeView> attributes;
  std::vector<AttributeView> system_attributes;
  std::int64_t delay_seconds = 0;
};

Answer<CheckedMessage> check_message(const OutgoingMessage& message, const QueueAttributes& queue);

// Bytes that count against the size limits: body plus names, types and values of attributes.
std::size_t size_of(const OutgoingMessage& message);

// 1 to 128 letters, digits and punctuation, as group, deduplication and attempt ids must be.
Answer<void> check_token(std::string_view parameter, std::string_view value);

// Empty, too many, bad or repeated ids: errors that fail a batch as a whole. `entry_name` is the
// name of an entry in the Query protocol, which SQS uses in its messages.
Answer<void> check_batch_ids(const std::vector<const std::optional<std::string>*>& ids,
                             std::string_view entry_name);

Answer<void> check_tags(const StringMap& tags);

// Names in AttributeNames / MessageSystemAttributeNames of a receive.
Answer<void> check_system_attribute_names(const std::vector<std::string>& names);

}  // namespace stanchion::engine
