#include "client/checksums.h"

#include <vector>

#include "base/digest.h"
#include "base/text.h"
#include "model/content.h"

namespace stanchion::client {

std::string md5_of(const std::string& body) {
  return to_hex(as_text(md5(body)));
}

std::optional<std::string> md5_of(const MessageAttributes& attributes) {
  if (attributes.empty()) return std::nullopt;
  std::vector<AttributeView> views;
  for (const auto& [name, attribute] : attributes) {
    const bool binary = attribute.binary_value.has_value();
    views.push_back({name, attribute.data_type, binary ? ValueKind::kBinary : ValueKind::kString,
                     binary                   ? std::string_view(*attribute.binary_value)
                     : attribute.string_value ? std::string_view(*attribute.string_value)
                                              : std::string_view()});
  }
  return to_hex(as_text(md5_of_attributes(std::move(views))));
}

bool is_intact(const Message& message) {
  return md5_of(message.body) == message.md5_of_body &&
         md5_of(message.message_attributes) == message.md5_of_message_attributes;
}

}  // namespace stanchion::client
