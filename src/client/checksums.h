// The MD5s of bodies and attributes, compared with those that the server returns.
#pragma once

#include <optional>
#include <string>

#include "client/types.h"

namespace stanchion::client {

std::string md5_of(const std::string& body);
// nullopt where there are no attributes.
std::optional<std::string> md5_of(const MessageAttributes& attributes);

// The name of the MD5 that differs, as "MD5OfMessageBody"; nullptr if all match. Entry:
// SendMessageRequest or an entry of a batch.
template <class Sent, class Answer>
const char* find_mismatch(const Sent& sent, const Answer& answer) {
  if (md5_of(sent.message_body) != answer.md5_of_message_body) return "MD5OfMessageBody";
  if (md5_of(sent.message_attributes) != answer.md5_of_message_attributes)
    return "MD5OfMessageAttributes";
  // A missing MD5 is not an error: some servers leave it out.
  if (answer.md5_of_message_system_attributes &&
      md5_of(sent.message_system_attributes) != answer.md5_of_message_system_attributes)
    return "MD5OfMessageSystemAttributes";
  return nullptr;
}

bool is_intact(const Message& message);

}  // namespace stanchion::client
