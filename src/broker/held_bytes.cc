#include "broker/held_bytes.h"

#include <string>
#include <vector>

namespace stanchion::broker {
namespace {

// What each takes besides its texts: its place in a line, and whoever waits for it.
constexpr std::size_t kEach = 512;
// The same of an attribute or a tag.
constexpr std::size_t kEachText = 96;

std::size_t bytes_of(const MessageAttribute& attribute) {
  std::size_t bytes = kEachText + attribute.name.size();
  for (const auto* text : {&attribute.data_type, &attribute.string_value, &attribute.binary_value})
    if (*text) bytes += (*text)->size();
  return bytes;
}

std::size_t bytes_of(const OutgoingMessage& message) {
  std::size_t bytes = kEach + (message.body ? message.body->size() : 0);
  for (const auto* attributes : {&message.attributes, &message.system_attributes})
    for (const MessageAttribute& attribute : *attributes) bytes += bytes_of(attribute);
  return bytes;
}

std::size_t bytes_of(const StringMap& texts) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : texts) bytes += kEachText + name.size() + value.size();
  return bytes;
}

template <class Message>
std::size_t bytes_of(const std::vector<Message>& messages) {
  std::size_t bytes = 0;
  for (const Message& message : messages) bytes += kEach + message.content->encoded().size();
  return bytes;
}

struct Measure {
  std::size_t operator()(const SendMessage& send) const { return bytes_of(send.message); }
  std::size_t operator()(const SendMessageBatch& batch) const {
    std::size_t bytes = 0;
    for (const auto& entry : batch.entries) bytes += bytes_of(entry.message);
    return bytes;
  }
  std::size_t operator()(const CreateQueue& create) const {
    return bytes_of(create.attributes) + bytes_of(create.tags);
  }
  std::size_t operator()(const SetQueueAttributes& set) const { return bytes_of(set.attributes); }
  std::size_t operator()(const TagQueue& tag) const { return bytes_of(tag.tags); }

  std::size_t operator()(const ReceiveMessageResult& result) const {
    return bytes_of(result.messages);
  }
  std::size_t operator()(const StanchionPeekResult& result) const {
    return bytes_of(result.messages);
  }
  std::size_t operator()(const StanchionGroupsResult& result) const {
    return result.groups.size() * kEach;
  }
  std::size_t operator()(const QueueListResult& result) const {
    return result.queues.size() * kEach;
  }
  std::size_t operator()(const QueueAttributesResult& result) const {
    return bytes_of(result.attributes);
  }
  std::size_t operator()(const QueueTagsResult& result) const { return bytes_of(result.tags); }

  // All others are small.
  template <class Other>
  std::size_t operator()(const Other&) const {
    return 0;
  }
};

}  // namespace

std::size_t held_bytes(const Request& request) {
  return kEach + std::visit(Measure(), request);
}

std::size_t held_bytes(const Reply& reply) {
  return kEach + (reply ? std::visit(Measure(), *reply) : 0);
}

}  // namespace stanchion::broker
