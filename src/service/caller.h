// Who calls, as far as it is known: what authentication finds out and authorization asks for.
#pragma once

#include <string>

namespace stanchion::service {

struct Caller {
  std::string account;    // Whose queues "my queues" are.
  std::string arn;        // arn:aws:iam::<account>:root or …:user/<name>; empty: anonymous.
  std::string sender_id;  // What messages say of their sender.
  std::string region;     // The space of queues that the call is about.
  bool verified =
      false;  // By a signature. Without accounts nobody is, and everybody may do anything.

  // Of the connection.
  std::string source_ip;
  bool secure = false;
  std::string user_agent;
};

}  // namespace stanchion::service
