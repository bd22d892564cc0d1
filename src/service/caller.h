// Who calls, as far as it is known: what authentication finds out and authorization asks for.
#pragma once

#include <memory>
#include <string>

#include "service/key_ring.h"

namespace stanchion::service {

struct Caller {
  std::string account;    // Whose queues "my queues" are.
  std::string arn;        // arn:aws:iam::<account>:root or …:user/<name>; empty: anonymous.
  std::string sender_id;  // What messages say of their sender.
  std::string region;     // The space of queues that the call is about.
  // By a signature. Without accounts nobody is, and everybody may do anything.
  bool verified = false;

  // Of the key that signed.
  std::string user;           // Empty: the account itself.
  std::string access_key_id;  // In `keys`, as they were when the call arrived.
  std::shared_ptr<const KeyRing> keys;

  // Of the connection.
  std::string source_ip;
  bool secure = false;
  std::string user_agent;
  std::string referer;

  // Of a verified caller.
  const KeyOwner& key() const { return *keys->find(access_key_id); }
};

}  // namespace stanchion::service
