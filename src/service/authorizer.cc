#include "service/authorizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "model/limits.h"
#include "policy/policy.h"
#include "policy/warnings.h"
#include "service/remembered_policies.h"

namespace stanchion::service {
namespace {

// Of all threads together.
constexpr std::size_t kRememberedPolicyBytesMax = std::size_t{8} << 20;

std::shared_ptr<const policy::Policy> parsed(const std::string& text) {
  static RememberedPolicies remembered(kRememberedPolicyBytesMax);
  return remembered.parsed(text);
}

// AWS gives these keys a value for temporary keys only. When one was issued is not known here.
void add_keys_of_session(policy::PolicyRequest& request) {
  request.context["aws:multifactorauthpresent"] = {"false"};
  for (const char* key : {"aws:tokenissuetime", "aws:tokenage"}) {
    request.context[key] = {""};
    request.unknown.insert(key);
  }
}

// Tags may differ in case only, and keys of policies do not: which of two is meant is not known.
void add_tags(std::string_view prefix, const StringMap& tags, policy::PolicyRequest& request) {
  for (const auto& [key, value] : tags) {
    std::string name = fmt::format("{}{}", prefix, to_lower_ascii(key));
    if (request.context.contains(name)) request.unknown.insert(name);
    request.context[std::move(name)] = {value};
  }
}

// The documented keys that have a value here (wire/policy_keys.h). Callers call directly, not
// through a service, so aws:SourceAccount and similar keys are absent.
void add_context(const GuardedCall& call, const broker::GuardedQueue& queue, Instant now,
                 policy::PolicyRequest& request) {
  const Caller& caller = call.caller;
  policy::PolicyContext& context = request.context;
  const std::int64_t seconds = to_seconds(now);
  context["aws:currenttime"] = {fmt::to_string(seconds)};
  context["aws:epochtime"] = {fmt::to_string(seconds)};
  context["aws:securetransport"] = {caller.secure ? "true" : "false"};
  context["aws:sourceip"] = {caller.source_ip};
  context["aws:principalarn"] = {caller.arn};
  context["aws:principalaccount"] = {caller.account};
  context["aws:userid"] = {caller.sender_id};
  context["aws:principaltype"] = {caller.user.empty() ? "Account" : "User"};
  context["aws:principalisawsservice"] = {"false"};
  context["aws:viaawsservice"] = {"false"};
  context["aws:viaawsmcpservice"] = {"false"};
  context["aws:requestedregion"] = {caller.region};
  context["aws:resourceaccount"] = {call.queue.account};
  if (!caller.user.empty())  // Without its path: npos + 1 is 0.
    context["aws:username"] = {caller.user.substr(caller.user.rfind('/') + 1)};
  if (caller.key().key.session_token) add_keys_of_session(request);
  if (!caller.user_agent.empty()) context["aws:useragent"] = {caller.user_agent};
  if (!caller.referer.empty()) context["aws:referer"] = {caller.referer};
  if (!call.tag_keys.empty()) context["aws:tagkeys"] = call.tag_keys;
  add_tags("aws:requesttag/", call.tags, request);
  add_tags("aws:resourcetag/", queue.tags, request);
}

Error denied(const Caller& caller, Action action, std::string_view arn, std::string_view because) {
  const std::string permission = to_lower_ascii(policy::permission_of(action));
  return {ErrorCode::kAccessDenied,
          fmt::format("User: {} is not authorized to perform: sqs:{} on resource: {} {}",
                      caller.arn, permission, arn, because)};
}

// To callers whom its policy does not let in, another account's queue looks as if it did not exist:
// the answer does not reveal whether it does.
Error no_access(const GuardedCall& call) {
  if (call.action == Action::kGetQueueUrl)
    return {ErrorCode::kQueueDoesNotExist,
            "The specified queue does not exist or you do not have access to it."};
  return denied(call.caller, call.action, call.queue.arn(),
                fmt::format("because no resource-based policy allows the sqs:{} action",
                            to_lower_ascii(policy::permission_of(call.action))));
}

// A policy stored by an earlier release may contain what is refused today. Nobody knows what it
// would deny, so it denies everything, except reading and replacing it. The same holds for a Deny
// by a key that is not known here, or whose value is not, as of a tag in two spellings: whoever may set
// tags must not lock out the owner.
bool may_mend(const Caller& caller, Action action) {
  return caller.user.empty() &&
         (action == Action::kGetQueueAttributes || action == Action::kSetQueueAttributes);
}

// Policies see the tags of a request before the engine refuses those that are too long, however long
// they are. What is cut is still too long to be a tag.
std::string cut(std::string_view text, std::size_t characters_max) {
  constexpr std::size_t kCharacterSizeMax = 4;
  text = text.substr(0, kCharacterSizeMax * (characters_max + 1));
  const auto continues = [](char byte) { return (byte & 0xC0) == 0x80; };
  std::size_t end = 0;
  for (std::size_t characters = 0; end < text.size() && characters <= characters_max; ++characters)
    for (++end; end < text.size() && continues(text[end]);) ++end;
  return std::string(text.substr(0, end));
}

struct NewPolicy {
  const QueueRef& queue;
  const std::string& text;
};

// Nullopt if the request sets none, or takes it away.
std::optional<NewPolicy> new_policy_of(const Request& request) {
  const auto in = [](const auto& change) -> std::optional<NewPolicy> {
    const auto found = change.attributes.find("Policy");
    if (found == change.attributes.end() || found->second.empty()) return std::nullopt;
    return NewPolicy{change.queue, found->second};
  };
  if (const auto* create = std::get_if<CreateQueue>(&request)) return in(*create);
  if (const auto* set = std::get_if<SetQueueAttributes>(&request)) return in(*set);
  return std::nullopt;
}

}  // namespace

std::optional<Error> authorize_by_account(const Caller& caller, Action action,
                                          const std::optional<QueueRef>& queue) {
  if (!queue || queue->account == caller.account || !policy::is_owner_only(action))
    return std::nullopt;
  // As for a queue that does not exist, which the handle of a task may well name: whether it does is
  // nobody else's business.
  if (action == Action::kCancelMessageMoveTask)
    return Error{ErrorCode::kResourceNotFound,
                 "The resource that you specified for the SourceArn parameter doesn't exist."};
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

StringMap tags_of(const Request& request) {
  StringMap tags;
  if (const auto* tag = std::get_if<TagQueue>(&request))
    for (const auto& [key, value] : tag->tags)
      tags.emplace(cut(key, limits::kTagKeySizeMax), cut(value, limits::kTagValueSizeMax));
  return tags;
}

std::vector<std::string> tag_keys_of(const Request& request) {
  std::vector<std::string> keys;
  if (const auto* untag = std::get_if<UntagQueue>(&request))
    for (const std::string& key : untag->tag_keys) keys.push_back(cut(key, limits::kTagKeySizeMax));
  for (const auto& [key, value] : tags_of(request)) keys.push_back(key);
  return keys;
}

std::optional<Error> authorize_by_policy(const GuardedCall& call, const broker::GuardedQueue* found,
                                         Instant now) {
  const Caller& caller = call.caller;
  const Action action = call.action;
  const bool own = call.queue.account == caller.account;
  if (found == nullptr) return own ? std::nullopt : std::optional(no_access(call));
  const auto policy = found->policy.empty() ? nullptr : parsed(found->policy);
  if (!policy && !found->policy.empty() && !own) return no_access(call);
  if (!policy && !found->policy.empty() && !may_mend(caller, action))
    return denied(caller, action, found->arn,
                  "because its policy, which was set before, cannot be evaluated; the owner's key "
                  "without a user may set another");
  auto verdict = policy::Verdict::kNoMatch;
  if (policy) {
    policy::PolicyRequest request{
        .account = caller.account,
        .arn = caller.arn,
        .service = {},
        .action = policy::permission_of(action),
        .queue_arn = found->arn,
        .context = {},
        .may_mend = own && may_mend(caller, action) && !caller.key().key.session_token};
    add_context(call, *found, now, request);
    verdict = policy::evaluate(*policy, request);
  }
  if (verdict == policy::Verdict::kDeny)
    return denied(caller, action, found->arn, "with an explicit deny in a resource-based policy");
  if (own || verdict == policy::Verdict::kAllow) return std::nullopt;
  return no_access(call);
}

std::optional<Error> check_new_policy(const Request& request) {
  const auto policy = new_policy_of(request);
  if (!policy) return std::nullopt;
  const auto checked = policy::parse_policy(policy->text);
  return checked ? std::nullopt : std::optional(checked.error());
}

std::vector<std::string> warnings_about_new_policy(const Request& request) {
  const auto policy = new_policy_of(request);
  if (!policy) return {};
  const auto parsed = policy::parse_policy(policy->text);
  return parsed ? policy::warnings_about(*parsed, policy->queue.arn()) : std::vector<std::string>();
}

}  // namespace stanchion::service
