#include "wire/selection.h"

#include <algorithm>

namespace stanchion::wire {
namespace {

constexpr std::string_view kAll = "All";
constexpr std::string_view kAnySuffix = ".*";
constexpr std::string_view kAnything = "*";

}  // namespace

Selection::Selection(const ReceiveMessage& request) : names_(request.message_attribute_names) {
  for (const std::string& name : request.attribute_names) {
    if (name == kAll) system_ = ~0U;
    const auto at = std::ranges::find(kSystemAttributeNames, std::string_view(name));
    if (at != kSystemAttributeNames.end()) system_ |= 1U << (at - kSystemAttributeNames.begin());
  }
  for (const std::string& name : names_)
    all_ = all_ || name == kAll || name == kAnySuffix || name == kAnything;
}

void Selection::system_attributes(const ReceivedMessage& message,
                                  std::vector<SystemValue>& out) const {
  out.clear();
  if (system_ == 0) return;
  const Content& content = *message.content;
  const auto add = [&](SystemAttribute attribute, auto&& value) {
    if (!wants(attribute)) return;
    std::string text(value());
    const std::string_view name = kSystemAttributeNames[static_cast<std::size_t>(attribute)];
    if (!text.empty()) out.emplace_back(name, std::move(text));
  };
  using enum SystemAttribute;
  add(kSenderId, [&] { return content.sender(); });
  add(kSentTimestamp, [&] { return std::to_string(to_millis(content.sent())); });
  add(kApproximateReceiveCount, [&] { return std::to_string(message.receive_count); });
  add(kApproximateFirstReceiveTimestamp,
      [&] { return std::to_string(to_millis(message.first_received)); });
  add(kSequenceNumber, [&] {
    return message.sequence_number ? format_sequence_number(*message.sequence_number)
                                   : std::string();
  });
  add(kMessageDeduplicationId, [&] { return content.deduplication_id(); });
  add(kMessageGroupId, [&] { return content.group(); });
  add(kAWSTraceHeader, [&] { return content.trace_header(); });
  add(kDeadLetterQueueSourceArn, [&] { return content.source_arn(); });
}

bool Selection::wants(std::string_view name) const {
  return all_ || std::ranges::any_of(names_, [&](std::string_view asked) {
           if (!asked.ends_with(kAnySuffix)) return asked == name;
           return name.starts_with(asked.substr(0, asked.size() - kAnySuffix.size()));
         });
}

std::vector<AttributeView> Selection::message_attributes(const Content& content) const {
  if (names_.empty() || content.attribute_section().empty()) return {};
  std::vector<AttributeView> attributes = content.attributes();
  if (!all_) std::erase_if(attributes, [&](const AttributeView& a) { return !wants(a.name); });
  return attributes;
}

}  // namespace stanchion::wire
