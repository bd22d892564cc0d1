#include "engine/rules/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/digest.h"
#include "base/text.h"
#include "engine/deduplication.h"
#include "model/limits.h"

namespace stanchion::engine {
namespace {

using std::string_view;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::unexpected<Error> wrong(std::string message) {
  return refuse(ErrorCode::kInvalidParameterValue, std::move(message));
}

Answer<void> check_attribute_name(string_view name) {
  if (name.empty() || !has_only_letters_digits_and("_-.", name))
    return wrong(
        "Message (user) attributes name can only contain upper and lower score characters, "
        "digits, periods, hyphens and underscores. ");
  if (name.size() > limits::kAttributeNameSizeMax)
    return wrong("Message (user) attribute name must be shorter than 256 bytes.");
  const std::string lower = to_lower_ascii(name);
  if (lower.starts_with("aws.") || lower.starts_with("amazon."))
    return wrong(
        "You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. These strings "
        "are reserved for internal use.");
  if (name.starts_with('.'))
    return wrong("Message (user) attribute name must not begin with character '.'.");
  if (name.ends_with('.'))
    return wrong("Message (user) attribute name must not end with character '.'.");
  if (name.find("..") != string_view::npos)
    return wrong("Message (user) attribute name must not have successive '.' characters.");
  return {};
}

// A decimal with optional sign, fraction and exponent, of at most 38 significant digits and a
// magnitude between 10^-128 and 10^126.
bool is_number(string_view text) {
  std::size_t i = 0;
  const auto digits = [&](std::string& into) {
    const std::size_t from = i;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') into.push_back(text[i++]);
    return i > from;
  };
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  std::string whole, fraction, exponent;
  const bool has_whole = digits(whole);
  bool has_fraction = false;
  if (i < text.size() && text[i] == '.') {
    ++i;
    has_fraction = digits(fraction);
  }
  if (!has_whole && !has_fraction) return false;
  int power = 0;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    const bool negative = i < text.size() && text[i] == '-';
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    if (!digits(exponent) || exponent.size() > 4) return false;
    power = std::stoi(exponent) * (negative ? -1 : 1);
  }
  if (i != text.size()) return false;
  const std::string all = whole + fraction;
  const std::size_t first = all.find_first_not_of('0');
  if (first == std::string::npos) return true;
  const std::size_t last = all.find_last_not_of('0');
  const int magnitude = static_cast<int>(whole.size()) - static_cast<int>(first) - 1 + power;
  return last - first + 1 <= 38 && magnitude >= -128 && magnitude <= 126;
}

// "Number" from "Number.bigint"; empty if it is not one of the three types.
string_view base_type(string_view type) {
  const string_view base = type.substr(0, type.find('.'));
  const bool known = base == "String" || base == "Number" || base == "Binary";
  return known ? base : string_view();
}

Answer<void> check_value(const MessageAttribute& a, string_view base) {
  const bool binary = base == "Binary";
  if (a.string_value && a.binary_value)
    return wrong(fmt::format("Message (user) attribute '{}' must have a single value.", a.name));
  if (binary ? a.string_value.has_value() : a.binary_value.has_value())
    return wrong(fmt::format("Message (user) attribute '{}' with type '{}' must use field '{}'.",
                             a.name, *a.data_type, binary ? "Binary" : "String"));
  const std::string& value = binary ? *a.binary_value : *a.string_value;
  if (value.empty())
    return wrong(
        fmt::format("Message (user) attribute '{}' must contain a non-empty value of type '{}'.",
                    a.name, binary ? "Binary" : "String"));
  if (!binary && find_forbidden_character(value))
    return wrong(fmt::format(
        "Message (user) attribute '{}' contains a character that is not allowed.", a.name));
  if (base == "Number" && !is_number(value))
    return wrong(
        fmt::format("Can't cast the value of message (user) attribute '{}' to a number.", a.name));
  return {};
}

Answer<AttributeView> check_attribute(const MessageAttribute& a) {
  if (const auto name = check_attribute_name(a.name); !name) return std::unexpected(name.error());
  if (a.has_list_value)
    return refuse(ErrorCode::kUnsupportedOperation,
                  "Message attribute list values in SendMessage operation are not supported.");
  if (!a.data_type || a.data_type->empty())
    return wrong(fmt::format(
        "The message (user) attribute '{}' must contain a non-empty message attribute type.",
        a.name));
  const string_view base = base_type(*a.data_type);
  if (base.empty())
    return wrong(
        fmt::format("The type of message (user) attribute '{}' is invalid. You must use only the "
                    "following supported type prefixes: Binary, Number, String.",
                    a.name));
  if (a.data_type->size() > limits::kAttributeTypeSizeMax)
    return wrong("Message (user) attribute type must be shorter than 256 bytes.");
  if (find_forbidden_character(*a.data_type))
    return wrong(fmt::format(
        "The type of message (user) attribute '{}' contains a character that is not allowed.",
        a.name));
  if (!a.string_value && !a.binary_value)
    return wrong(fmt::format(
        "The message (user) attribute '{}' must contain a non-empty message attribute value.",
        a.name));
  if (const auto value = check_value(a, base); !value) return std::unexpected(value.error());
  const bool binary = base == "Binary";
  return AttributeView{a.name, *a.data_type, binary ? ValueKind::kBinary : ValueKind::kString,
                       binary ? *a.binary_value : *a.string_value};
}

Answer<void> check_attributes(const OutgoingMessage& message, CheckedMessage& checked) {
  if (message.attributes.size() > limits::kMessageAttributesMax)
    return wrong(fmt::format("Number of message attributes [{}] exceeds the allowed maximum [{}].",
                             message.attributes.size(), limits::kMessageAttributesMax));
  std::set<string_view> names;
  for (const MessageAttribute& a : message.attributes) {
    const auto view = check_attribute(a);
    if (!view) return std::unexpected(view.error());
    if (!names.insert(a.name).second)
      return wrong(fmt::format("Message (user) attribute '{}' is given more than once.", a.name));
    checked.attributes.push_back(*view);
  }
  return {};
}

Answer<void> check_system_attributes(const OutgoingMessage& message, CheckedMessage& checked) {
  for (const MessageAttribute& a : message.system_attributes) {
    if (a.name != "AWSTraceHeader")
      return wrong(fmt::format("Message system attribute name '{}' is invalid.", a.name));
    if (a.data_type != "String" || !a.string_value || a.string_value->empty() || a.binary_value)
      return wrong(
          "Message system attribute 'AWSTraceHeader' must contain a non-empty value of "
          "type 'String'.");
    if (a.string_value->size() > limits::kTraceHeaderSizeMax ||
        find_forbidden_character(*a.string_value))
      return wrong(
          "Message system attribute 'AWSTraceHeader' is too long or contains a character "
          "that is not allowed.");
    checked.trace_header = *a.string_value;
    checked.system_attributes = {{a.name, *a.data_type, ValueKind::kString, *a.string_value}};
  }
  return {};
}

Answer<void> check_body(const OutgoingMessage& message, const QueueAttributes& queue) {
  if (!message.body || message.body->empty()) return std::unexpected(missing("MessageBody"));
  if (size_of(message) > static_cast<std::size_t>(queue.message_size_max))
    return wrong(fmt::format(
        "One or more parameters are invalid. Reason: Message must be shorter than {} bytes.",
        queue.message_size_max));
  if (const auto bad = find_forbidden_character(*message.body))
    return refuse(ErrorCode::kInvalidMessageContents,
                  fmt::format("Invalid binary character '#x{:X}' was found in the message body, "
                              "the set of allowed characters is #x9 | #xA | #xD | "
                              "[#x20-#xD7FF] | [#xE000-#xFFFD] | [#x10000-#x10FFFF].",
                              *bad));
  return {};
}

Answer<void> check_delay(const OutgoingMessage& message, const QueueAttributes& queue,
                         CheckedMessage& checked) {
  checked.delay_seconds = message.delay_seconds.value_or(queue.delay_seconds);
  if (!message.delay_seconds) return {};
  const std::int64_t delay = *message.delay_seconds;
  if (delay < 0 || delay > limits::kDelaySecondsMax)
    return std::unexpected(invalid_value(
        fmt::to_string(delay), "DelaySeconds",
        fmt::format("DelaySeconds must be >= 0 and <= {}.", limits::kDelaySecondsMax)));
  if (!queue.fifo) return {};
  if (delay != 0)
    return std::unexpected(
        invalid_value(fmt::to_string(delay), "DelaySeconds",
                      "The request include parameter that is not valid for this queue type."));
  // An explicit zero does not let a message overtake the delayed messages of its queue.
  checked.delay_seconds = queue.delay_seconds;
  return {};
}

Answer<void> check_ids(const OutgoingMessage& message, const QueueAttributes& queue,
                       CheckedMessage& checked) {
  if (queue.fifo && !message.group_id) return std::unexpected(missing("MessageGroupId"));
  if (message.group_id) {
    if (const auto ok = check_token("MessageGroupId", *message.group_id); !ok) return ok;
    checked.group = *message.group_id;
  }
  if (!queue.fifo) {
    if (message.deduplication_id)
      return wrong(
          "The request include parameter MessageDeduplicationId which is not valid for this queue "
          "type");
    return {};
  }
  if (const auto& id = message.deduplication_id) {
    if (const auto ok = check_token("MessageDeduplicationId", *id); !ok) return ok;
    checked.deduplication_id = *id;
  } else if (queue.content_based_deduplication) {
    checked.deduplication_id = to_hex(as_text(sha256(*message.body)));
  } else {
    return wrong(
        "The queue should either have ContentBasedDeduplication enabled or "
        "MessageDeduplicationId provided explicitly");
  }
  checked.deduplication_key = DeduplicationWindow::key_of(queue.deduplication_scope, checked.group,
                                                          checked.deduplication_id);
  return {};
}

// Counts characters, not bytes: continuation bytes of UTF-8 are not counted.
std::size_t characters_of(string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool valid_batch_id(string_view id) {
  return !id.empty() && id.size() <= limits::kBatchIdSizeMax &&
         std::ranges::all_of(id, [](char c) { return is_alphanumeric(c) || c == '-' || c == '_'; });
}

}  // namespace

Error missing(string_view parameter) {
  return {ErrorCode::kMissingParameter,
          fmt::format("The request must contain the parameter {}.", parameter)};
}

Error invalid_value(string_view value, string_view parameter, string_view reason) {
  return {
      ErrorCode::kInvalidParameterValue,
      fmt::format("Value {} for parameter {} is invalid. Reason: {}", value, parameter, reason)};
}

std::size_t size_of(const OutgoingMessage& message) {
  std::size_t size = message.body ? message.body->size() : 0;
  for (const MessageAttribute& a : message.attributes) {
    size += a.name.size();
    for (const auto* part : {&a.data_type, &a.string_value, &a.binary_value})
      if (*part) size += (*part)->size();
  }
  return size;
}

Answer<void> check_token(string_view parameter, string_view value) {
  const bool valid = !value.empty() && value.size() <= limits::kGroupIdSizeMax &&
                     std::ranges::all_of(value, [](char c) { return c > 0x20 && c < 0x7F; });
  if (valid) return {};
  return std::unexpected(invalid_value(
      value, parameter,
      fmt::format("{} can only include alphanumeric and punctuation characters. 1 to 128 in "
                  "length.",
                  parameter)));
}

Answer<CheckedMessage> check_message(const OutgoingMessage& message, const QueueAttributes& queue) {
  CheckedMessage checked;
  if (const auto ok = check_body(message, queue); !ok) return std::unexpected(ok.error());
  checked.body = *message.body;
  if (const auto ok = check_delay(message, queue, checked); !ok) return std::unexpected(ok.error());
  if (const auto ok = check_attributes(message, checked); !ok) return std::unexpected(ok.error());
  if (const auto ok = check_system_attributes(message, checked); !ok)
    return std::unexpected(ok.error());
  if (const auto ok = check_ids(message, queue, checked); !ok) return std::unexpected(ok.error());
  return checked;
}

Answer<void> check_batch_ids(const std::vector<const std::optional<std::string>*>& ids,
                             string_view entry_name) {
  if (ids.empty())
    return refuse(ErrorCode::kEmptyBatchRequest,
                  fmt::format("There should be at least one {} in the request.", entry_name));
  if (ids.size() > limits::kBatchEntriesMax)
    return refuse(ErrorCode::kTooManyEntriesInBatchRequest,
                  fmt::format("Maximum number of entries per request are {}. You have sent {}.",
                              limits::kBatchEntriesMax, ids.size()));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto& id = *ids[i];
    if (!id) return std::unexpected(missing(fmt::format("{}.{}.Id", entry_name, i + 1)));
    if (!valid_batch_id(*id))
      return refuse(ErrorCode::kInvalidBatchEntryId,
                    "A batch entry id can only contain alphanumeric characters, hyphens and "
                    "underscores. It can be at most 80 letters long.");
    for (std::size_t k = 0; k < i; ++k)
      if (*ids[k] == *id)
        return refuse(ErrorCode::kBatchEntryIdsNotDistinct, fmt::format("Id {} repeated.", *id));
  }
  return {};
}

Answer<void> check_tags(const StringMap& tags) {
  for (const auto& [key, value] : tags) {
    if (key.empty() || characters_of(key) > limits::kTagKeySizeMax)
      return wrong("Tag keys must be between 1 and 128 characters in length.");
    if (characters_of(value) > limits::kTagValueSizeMax)
      return wrong("Tag values must be between 0 and 256 characters in length.");
    if (to_lower_ascii(key).starts_with("aws:"))
      return wrong("Tag keys must not begin with the reserved prefix 'aws:'.");
    if (find_forbidden_character(key) || find_forbidden_character(value))
      return wrong("Tag keys and values must be valid Unicode text.");
  }
  return {};
}

Answer<void> check_system_attribute_names(const std::vector<std::string>& names) {
  static constexpr std::array<string_view, 10> kKnown{"All",
                                                      "SenderId",
                                                      "SentTimestamp",
                                                      "ApproximateReceiveCount",
                                                      "SequenceNumber",
                                                      "ApproximateFirstReceiveTimestamp",
                                                      "MessageGroupId",
                                                      "MessageDeduplicationId",
                                                      "AWSTraceHeader",
                                                      "DeadLetterQueueSourceArn"};
  for (const std::string& name : names)
    if (std::ranges::find(kKnown, name) == kKnown.end())
      return refuse(ErrorCode::kInvalidAttributeName, fmt::format("Unknown Attribute {}.", name));
  return {};
}

}  // namespace stanchion::engine
