// Queue policies: who, besides its owner, may do what with a queue.
//
// A Policy is parsed once, when it is set, and evaluated for each request of a caller whom only the
// policy can allow. Immutable after parsing: any thread may evaluate it.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/action.h"
#include "model/error.h"
#include "policy/condition.h"
#include "policy/text.h"

namespace stanchion::policy {

struct PolicyPrincipals {
  bool everyone = false;
  std::vector<std::string> accounts;  // Whole accounts, by their number.
  std::vector<std::string> arns;      // Users, roles and sessions: "iam::111111111111:user/ann".
  std::vector<std::string> services;  // sns.amazonaws.com
  std::size_t count = 0;              // All that were named, also of kinds that never call us.
};

struct PolicyStatement {
  std::string sid;
  bool allow = false;
  PolicyPrincipals principals;
  bool not_principals = false;
  std::vector<std::string> actions;  // Lower case: "sqs:sendmessage", "sqs:*", "*".
  bool not_actions = false;
  std::vector<PolicyText> resources;
  bool not_resources = false;
  bool resource_names_unknown_key = false;  // In a variable.
  std::vector<PolicyCondition> conditions;
};

struct Policy {
  std::vector<PolicyStatement> statements;
};

// InvalidAttributeValue "Invalid value for the parameter Policy." with a reason, or OverLimit where
// there is too much of something. Elements that could not be evaluated as AWS does are refused
// here, because the policy would look stricter than it is. What AWS accepts though it looks wrong is
// accepted; warnings_about() (policy_warnings.h) names it.
Answer<Policy> parse_policy(std::string_view text);

// Bytes that it takes, but for what the allocator rounds up: many times those of its text, if that has
// many short values.
std::size_t footprint(const Policy& policy);

struct PolicyRequest {
  // The caller. Anonymous: all three are empty. A service has only its name.
  std::string_view account;
  std::string_view arn;
  std::string_view service;

  std::string_view action;  // "SendMessage", as permission_of() names it.
  std::string_view queue_arn;
  PolicyContext context;
  // Those of its keys of which only that they have a value is known, and not which.
  std::set<std::string, std::less<>> unknown = {};

  // Whether the caller may mend a policy: a Deny that applies only because a key or its value is not
  // known does not apply to this call.
  bool may_mend = false;
};

enum class Verdict { kAllow, kDeny, kNoMatch };

// kDeny if any statement that applies denies, else kAllow if one allows.
//
// What AWS would find for a key that is not known here (KeyKind::kUnknown) nobody can say, so an
// Allow that names one in a condition or variable never applies, and a Deny applies as if what names
// it held. The same is true of `unknown` keys, except that the operator Null knows enough of them,
// and of conditions that would take too long for a thread that others wait for.
Verdict evaluate(const Policy& policy, const PolicyRequest& request);

// The name that policies use for an action: batches have no name of their own.
std::string_view permission_of(Action action);

// Actions that are never open to another account, whatever a policy says.
bool is_owner_only(Action action);

}  // namespace stanchion::policy
