#include "worker/copies.h"

#include "base/check.h"
#include "base/text.h"

namespace stanchion::worker {

std::int64_t number_in(const client::StringMap& attributes, const char* name,
                       std::int64_t otherwise) {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return otherwise;
  const auto number = parse_decimal(found->second);
  return number ? static_cast<std::int64_t>(*number) : otherwise;
}

std::string group_of(const TaskInformation& task) {
  const auto found = task.attributes.find("MessageGroupId");
  return found == task.attributes.end() ? std::string() : found->second;
}

client::SendMessageRequest copy_of(const TaskInformation& task, const std::string& queue_url,
                                   const std::string& group_otherwise) {
  client::SendMessageRequest copy{.queue_url = queue_url,
                                  .message_body = task.body,
                                  .message_attributes = task.message_attributes};
  const std::string group = group_of(task);
  if (!group.empty()) copy.message_group_id = group;
  if (queue_url.ends_with(".fifo")) {
    if (group.empty()) copy.message_group_id = group_otherwise;
    // The same for every delivery, so that a message that is sent again arrives once.
    copy.message_deduplication_id = task.message_id;
    CHECK(!copy.message_group_id->empty(), "a message of a FIFO queue has a group");
  }
  return copy;
}

}  // namespace stanchion::worker
