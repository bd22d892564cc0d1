// The MD5 of bodies and attributes, compared with what the server says of them.
#pragma once

#include <optional>
#include <string>

#include "client/types.h"

namespace stanchion::client {

std::string md5_of(const std::string& body);
// nullopt where there are no attributes.
std::optional<std::string> md5_of(const MessageAttributes& attributes);

// What does not fit: "MD5OfMessageBody"; nullptr if all does. Entry: SendMessageRequest or an entry
// of a batch.
template <class Sent, class Answer>
const char* find_mismatch(const Sent& sent, const Answer& answer) {
  if (md5_of(sent.message_body) != answer.md5_of_message_body) return "MD5OfMessageBody";
  if (md5_of(sent.message_attributes) != answer.md5_of_message_attributes)
    return "MD5OfMessageAttributes";
  // Servers that leave it out are taken at their word.
  if (answer.md5_of_message_system_attributes &&
      md5_of(sent.message_system_attributes) != answer.md5_of_message_system_attributes)
    return "MD5OfMessageSystemAttributes";
  return nullptr;
}

bool is_intact(const Message& message);

}  // namespace stanchion::client
