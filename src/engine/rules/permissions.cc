#include "engine/rules/permissions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "engine/queue.h"
#include "engine/rules/validation.h"
#include "model/action.h"
#include "model/limits.h"

namespace stanchion::engine {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 9> kGrantable{"*",
                                                     "SendMessage",
                                                     "ReceiveMessage",
                                                     "DeleteMessage",
                                                     "ChangeMessageVisibility",
                                                     "GetQueueAttributes",
                                                     "GetQueueUrl",
                                                     "ListDeadLetterSourceQueues",
                                                     "PurgeQueue"};

json::object policy_of(const Queue& queue) {
  if (!queue.attributes().policy.empty()) {
    const json::value value = json::parse(queue.attributes().policy);
    return value.as_object();
  }
  return {{"Version", "2008-10-17"},
          {"Id", queue.arn + "/SQSDefaultPolicy"},
          {"Statement", json::array()}};
}

// The statements as an array, even if the policy has a single object there.
json::array statements_of(const json::object& policy) {
  const json::value* found = policy.if_contains("Statement");
  if (found == nullptr) return {};
  return found->is_array() ? found->as_array() : json::array{*found};
}

bool has_label(const json::value& statement, std::string_view label) {
  if (!statement.is_object()) return false;
  const json::value* sid = statement.as_object().if_contains("Sid");
  return sid != nullptr && sid->is_string() && sid->as_string() == label;
}

Answer<void> check_label(const std::optional<std::string>& label) {
  if (!label || label->empty()) return std::unexpected(missing("Label"));
  const bool valid =
      label->size() <= limits::kLabelSizeMax && std::ranges::all_of(*label, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_';
      });
  if (valid) return {};
  return std::unexpected(
      invalid_value(*label, "Label",
                    "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in "
                    "length."));
}

Answer<void> check_actions(const std::vector<std::string>& actions) {
  if (actions.empty()) return std::unexpected(missing("ActionName"));
  if (actions.size() > limits::kPermissionActionsMax)
    return refuse(ErrorCode::kOverLimit,
                  fmt::format("{} Actions were found, maximum allowed is {}.", actions.size(),
                              limits::kPermissionActionsMax));
  for (const std::string& action : actions) {
    if (std::ranges::find(kGrantable, action) != kGrantable.end()) continue;
    const bool owners_only = find_action(action) && !action.ends_with("Batch");
    return std::unexpected(invalid_value(
        "SQS:" + action, "ActionName",
        owners_only ? "Only the queue owner is allowed to invoke this action."
                    : "Please refer to the appropriate WSDL for a list of valid actions."));
  }
  return {};
}

Answer<void> check_accounts(const std::vector<std::string>& accounts) {
  if (accounts.empty()) return std::unexpected(missing("AWSAccountId"));
  if (accounts.size() > limits::kPermissionAccountsMax)
    return refuse(ErrorCode::kOverLimit,
                  fmt::format("{} Principals were found, maximum allowed is {}.", accounts.size(),
                              limits::kPermissionAccountsMax));
  for (const std::string& account : accounts) {
    const bool valid = account.size() == 12 &&
                       std::ranges::all_of(account, [](char c) { return c >= '0' && c <= '9'; });
    if (!valid)
      return std::unexpected(
          invalid_value(fmt::format("[{}]", account), "PrincipalId", "Unable to verify."));
  }
  return {};
}

// A single value stands alone, several are a list.
json::value one_or_many(const std::vector<std::string>& values) {
  if (values.size() == 1) return json::value(values.front());
  return json::array(values.begin(), values.end());
}

}  // namespace

Answer<std::string> policy_with_permission(const Queue& queue, const AddPermission& request) {
  if (const auto ok = check_label(request.label); !ok) return std::unexpected(ok.error());
  if (const auto ok = check_actions(request.actions); !ok) return std::unexpected(ok.error());
  if (const auto ok = check_accounts(request.account_ids); !ok) return std::unexpected(ok.error());
  json::object policy = policy_of(queue);
  json::array statements = statements_of(policy);
  if (std::ranges::any_of(statements, [&](const auto& s) { return has_label(s, *request.label); }))
    return std::unexpected(invalid_value(*request.label, "Label", "Already exists."));
  if (statements.size() >= limits::kPolicyStatementsMax)
    return refuse(ErrorCode::kOverLimit,
                  fmt::format("{} Statements were found, maximum allowed is {}.",
                              statements.size() + 1, limits::kPolicyStatementsMax));
  std::vector<std::string> principals, actions;
  for (const std::string& account : request.account_ids)
    principals.push_back(fmt::format("arn:aws:iam::{}:root", account));
  for (const std::string& action : request.actions) actions.push_back("SQS:" + action);
  statements.push_back(json::object{{"Sid", *request.label},
                                    {"Effect", "Allow"},
                                    {"Principal", json::object{{"AWS", one_or_many(principals)}}},
                                    {"Action", one_or_many(actions)},
                                    {"Resource", queue.arn}});
  policy["Statement"] = std::move(statements);
  std::string text = json::serialize(policy);
  if (text.size() > limits::kPolicySizeMax)
    return refuse(ErrorCode::kOverLimit,
                  fmt::format("The policy would be longer than {} bytes.", limits::kPolicySizeMax));
  return text;
}

Answer<std::string> policy_without_permission(const Queue& queue, const RemovePermission& request) {
  if (const auto ok = check_label(request.label); !ok) return std::unexpected(ok.error());
  json::object policy = policy_of(queue);
  json::array statements = statements_of(policy);
  const auto found =
      std::ranges::find_if(statements, [&](const auto& s) { return has_label(s, *request.label); });
  if (found == statements.end())
    return std::unexpected(invalid_value(*request.label, "Label",
                                         queue.attributes().policy.empty()
                                             ? "can't find label."
                                             : "can't find label on existing policy."));
  statements.erase(found);
  if (statements.empty()) return std::string();
  policy["Statement"] = std::move(statements);
  return json::serialize(policy);
}

}  // namespace stanchion::engine
