// The caller: what authentication finds out and authorization uses.
#pragma once

#include <memory>
#include <string>

#include "service/key_ring.h"

namespace stanchion::service {

struct Caller {
  std::string account;    // The account whose queues are "my queues".
  std::string arn;        // arn:aws:iam::<account>:root or …:user/<name>; empty: anonymous.
  std::string sender_id;  // The sender id of the caller's messages.
  std::string region;     // The region whose queues the call concerns.
  // By a signature. Without accounts no caller is verified, and everybody may do anything.
  bool verified = false;

  // Of the key that signed.
  std::string user;           // Empty: the account itself.
  std::string access_key_id;  // Index in `keys`, as they were when the call arrived.
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
