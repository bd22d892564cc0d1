#include "service/authorizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "base/text.h"
#include "wire/policy.h"

namespace stanchion::service {
namespace {

// Policies are parsed once per thread and text; the bound is far above what one machine's queues
// use at a time, and reaching it only means parsing again.
constexpr std::size_t kPolicyCacheMax = 1'024;

std::shared_ptr<const wire::Policy> parsed(const std::string& text) {
  thread_local std::unordered_map<std::string, std::shared_ptr<const wire::Policy>> cache;
  if (const auto found = cache.find(text); found != cache.end()) return found->second;
  auto policy = wire::parse_policy(text);
  if (!policy) return nullptr;
  if (cache.size() >= kPolicyCacheMax) cache.clear();
  auto shared = std::make_shared<const wire::Policy>(std::move(*policy));
  cache.emplace(text, shared);
  return shared;
}

wire::PolicyContext context_of(const Caller& caller, const broker::GuardedQueue& queue,
                               Instant now) {
  wire::PolicyContext context;
  const std::int64_t seconds = to_seconds(now);
  context["aws:currenttime"] = {fmt::to_string(seconds)};
  context["aws:epochtime"] = {fmt::to_string(seconds)};
  context["aws:securetransport"] = {caller.secure ? "true" : "false"};
  context["aws:sourceip"] = {caller.source_ip};
  context["aws:sourceaccount"] = {caller.account};
  context["aws:principalarn"] = {caller.arn};
  context["aws:principalaccount"] = {caller.account};
  if (!caller.user_agent.empty()) context["aws:useragent"] = {caller.user_agent};
  for (const auto& [key, value] : queue.tags)
    context["aws:resourcetag/" + to_lower_ascii(key)] = {value};
  return context;
}

Error denied(const Caller& caller, Action action, std::string_view arn, std::string_view because) {
  const std::string permission = to_lower_ascii(wire::permission_of(action));
  return {ErrorCode::kAccessDenied,
          fmt::format("User: {} is not authorized to perform: sqs:{} on resource: {} {}",
                      caller.arn, permission, arn, because)};
}

Error no_such_queue() {
  return {ErrorCode::kQueueDoesNotExist,
          "The specified queue does not exist or you do not have access to it."};
}

}  // namespace

std::optional<Error> authorize_by_account(const Caller& caller, Action action,
                                          const std::optional<QueueRef>& queue) {
  if (!queue || queue->account == caller.account || !wire::is_owner_only(action))
    return std::nullopt;
  return denied(caller, action, queue->arn(),
                "because no resource-based policy allows the action: it is the owner's alone");
}

std::optional<Error> authorize_destination(const Caller& caller, const Request& request) {
  const auto* start = std::get_if<StartMessageMoveTask>(&request);
  if (start == nullptr || !start->destination_arn) return std::nullopt;
  const auto destination = parse_queue_arn(*start->destination_arn);
  if (!destination || destination->account == caller.account) return std::nullopt;
  return denied(caller, Action::kSendMessage, *start->destination_arn,
                "because messages are moved within an account only");
}

std::optional<Error> authorize_by_policy(const Caller& caller, Action action, const QueueRef& queue,
                                         const broker::GuardedQueue* found, Instant now) {
  const bool own = queue.account == caller.account;
  if (found == nullptr) return own ? std::nullopt : std::optional(no_such_queue());
  const auto policy = found->policy.empty() ? nullptr : parsed(found->policy);
  auto verdict = wire::Verdict::kNoMatch;
  if (policy) {
    verdict = wire::evaluate(*policy, {.account = caller.account,
                                       .arn = caller.arn,
                                       .service = {},
                                       .action = wire::permission_of(action),
                                       .queue_arn = found->arn,
                                       .context = context_of(caller, *found, now)});
  }
  if (verdict == wire::Verdict::kDeny)
    return denied(caller, action, found->arn, "with an explicit deny in a resource-based policy");
  if (own || verdict == wire::Verdict::kAllow) return std::nullopt;
  if (action == Action::kGetQueueUrl) return no_such_queue();
  return denied(caller, action, found->arn,
                fmt::format("because no resource-based policy allows the sqs:{} action",
                            to_lower_ascii(wire::permission_of(action))));
}

std::optional<Error> check_new_policy(const Request& request) {
  const StringMap* attributes = nullptr;
  if (const auto* create = std::get_if<CreateQueue>(&request)) attributes = &create->attributes;
  if (const auto* set = std::get_if<SetQueueAttributes>(&request)) attributes = &set->attributes;
  if (attributes == nullptr) return std::nullopt;
  const auto policy = attributes->find("Policy");
  if (policy == attributes->end() || policy->second.empty()) return std::nullopt;
  const auto checked = wire::parse_policy(policy->second);
  return checked ? std::nullopt : std::optional(checked.error());
}

}  // namespace stanchion::service
