// Decides whether a caller may do what it asks with a queue: callers of the queue's own account
// may, unless the queue's policy denies it; others only if the policy allows it and the action is
// not reserved to the owner.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "broker/shard.h"
#include "model/action.h"
#include "model/error.h"
#include "model/request.h"
#include "service/caller.h"

namespace stanchion::service {

// What can be decided without looking at the queue; `queue` is the one that the request names, if
// any.
std::optional<Error> authorize_by_account(const Caller& caller, Action action,
                                          const std::optional<QueueRef>& queue);

// Messages are moved only within an account: a move task sends without evaluating the policy of the
// destination.
std::optional<Error> authorize_destination(const Caller& caller, const Request& request);

// The tags in a request, for conditions on them; those that are too long are cut to one character
// more than a tag may have.
StringMap tags_of(const Request& request);
std::vector<std::string> tag_keys_of(const Request& request);

// A call as policies see it.
struct GuardedCall {
  const Caller& caller;
  Action action;
  const QueueRef& queue;
  const StringMap& tags;                     // From tags_of().
  const std::vector<std::string>& tag_keys;  // From tag_keys_of().
};

// REQUIRES: authorize_by_account did not refuse. Runs on the thread of the queue's shard; `found`
// is null if there is no such queue.
std::optional<Error> authorize_by_policy(const GuardedCall& call, const broker::GuardedQueue* found,
                                         Instant now);

// Validates a new policy; the engine only checks that it is JSON.
std::optional<Error> check_new_policy(const Request& request);
// What looks wrong about a new policy that is accepted all the same.
std::vector<std::string> warnings_about_new_policy(const Request& request);

}  // namespace stanchion::service
