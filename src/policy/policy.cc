#include "policy/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <boost/json/error.hpp>
#include <set>

#include "base/json_members.h"
#include "base/text.h"
#include "model/limits.h"
#include "policy/keys.h"
#include "policy/limits.h"

namespace stanchion::policy {
namespace {

namespace json = boost::json;

constexpr std::string_view kAnything = "*";
constexpr std::string_view kServicePrefix = "sqs:";

std::string_view view_of(const json::string& text) {
  return {text.data(), text.size()};
}

// "iam::111111111111:user/ann" from "arn:aws:iam::111111111111:user/ann", empty if it is not an
// ARN. A server is in one partition, whatever a policy calls it.
std::string_view without_partition(std::string_view arn) {
  constexpr std::string_view kArn = "arn:";
  if (!arn.starts_with(kArn)) return {};
  const std::size_t colon = arn.find(':', kArn.size());
  return colon == std::string_view::npos ? std::string_view() : arn.substr(colon + 1);
}

bool is_account(std::string_view text) {
  return text.size() == 12 && parse_decimal(text).has_value();
}

// "111122223333" from "1111-2222-3333", a form in which AWS has written account numbers.
std::string without_hyphens(std::string_view text) {
  std::string digits(text);
  if (text.size() == 14 && text[4] == '-' && text[9] == '-') std::erase(digits, '-');
  return digits;
}

// Parses a policy; the first mistake is kept and ends the parsing.
class Parser {
 public:
  Answer<Policy> parse(std::string_view text) {
    if (text.size() > limits::kPolicySizeMax) return invalid("It is longer than 8192 bytes.");
    json::parse_options options;
    options.max_depth = kPolicyDepthMax;
    json::error_code problem;
    const json::value document = json::parse({text.data(), text.size()}, problem, {}, options);
    if (problem || !document.is_object()) return invalid("It is not a JSON object.");
    if (repeats_a_member(text)) return invalid("An object in it has the same member twice.");
    Policy policy;
    top(document.get_object(), policy);
    if (error_) return std::unexpected(*std::move(error_));
    return policy;
  }

 private:
  static std::unexpected<Error> invalid(std::string_view reason) {
    return refuse(ErrorCode::kInvalidAttributeValue,
                  fmt::format("Invalid value for the parameter Policy. Reason: {}", reason));
  }

  void bad(std::string_view reason) {
    if (!error_) error_ = invalid(reason).error();
  }

  void at_most(std::size_t count, std::size_t allowed, std::string_view what) {
    if (count <= allowed || error_) return;
    error_ = Error{ErrorCode::kOverLimit,
                   fmt::format("{} {} were found, maximum allowed is {}.", count, what, allowed)};
  }

  void top(const json::object& object, Policy& policy) {
    const json::value* statements = nullptr;
    for (const auto& member : object) {
      const json::value& value = member.value();
      if (member.key() == "Statement") {
        statements = &value;
      } else if (member.key() == "Version") {
        const bool known = value.is_string() && (value.get_string() == "2012-10-17" ||
                                                 value.get_string() == "2008-10-17");
        if (!known) bad("Version must be 2012-10-17 or 2008-10-17.");
        has_variables_ = known && value.get_string() == "2012-10-17";
      } else if (member.key() == "Id") {
        if (!value.is_string()) bad("Id must be a string.");
      } else {
        bad(fmt::format("Unknown element {}.", view_of_key(member)));
      }
    }
    if (statements == nullptr) return bad("Statement is missing.");
    const json::array one{*statements};
    const json::array& all = statements->is_array() ? statements->get_array() : one;
    if (all.empty()) return bad("Statement is empty.");
    at_most(all.size(), limits::kPolicyStatementsMax, "Statements");
    std::set<std::string> sids;
    for (const json::value& value : all) {
      if (error_) return;
      PolicyStatement& parsed = policy.statements.emplace_back();
      if (!value.is_object()) return bad("A statement must be an object.");
      statement(value.get_object(), parsed);
      if (!parsed.sid.empty() && !sids.insert(parsed.sid).second)
        return bad("Each Sid must be unique.");
    }
  }

  static std::string_view view_of_key(const json::key_value_pair& member) {
    return {member.key().data(), member.key().size()};
  }

  void statement(const json::object& object, PolicyStatement& parsed) {
    bool has_effect = false;
    int principals = 0, actions = 0, resources = 0;
    for (const auto& member : object) {
      const std::string_view key = view_of_key(member);
      const json::value& value = member.value();
      if (key == "Sid") {
        if (value.is_string())
          parsed.sid = view_of(value.get_string());
        else
          bad("Sid must be a string.");
      } else if (key == "Effect") {
        has_effect = effect(value, parsed);
      } else if (key == "Principal" || key == "NotPrincipal") {
        ++principals;
        parsed.not_principals = key == "NotPrincipal";
        principal(value, parsed.principals);
      } else if (key == "Action" || key == "NotAction") {
        ++actions;
        parsed.not_actions = key == "NotAction";
        action(value, parsed.actions);
      } else if (key == "Resource" || key == "NotResource") {
        ++resources;
        parsed.not_resources = key == "NotResource";
        resource(value, key, parsed.resources);
        parsed.resource_names_unknown_key = names_unknown_key(parsed.resources);
      } else if (key == "Condition") {
        conditions(value, parsed.conditions);
      } else {
        bad(fmt::format("Unknown element {}.", key));
      }
    }
    if (!has_effect) bad("A statement must have an Effect.");
    if (principals != 1) bad("A statement must have either Principal or NotPrincipal.");
    if (actions != 1) bad("A statement must have either Action or NotAction.");
    if (resources != 1) bad("A statement must have either Resource or NotResource.");
    if (parsed.not_principals) not_principal(parsed);
  }

  bool effect(const json::value& value, PolicyStatement& parsed) {
    const bool is_text = value.is_string();
    parsed.allow = is_text && value.get_string() == "Allow";
    const bool known = parsed.allow || (is_text && value.get_string() == "Deny");
    if (!known) bad("Effect must be Allow or Deny.");
    return known;
  }

  void principal(const json::value& value, PolicyPrincipals& parsed) {
    if (value.is_string()) {
      if (value.get_string() != "*") return bad("Principal must be \"*\" or an object.");
      parsed.everyone = true;
      return;
    }
    if (!value.is_object()) return bad("Principal must be \"*\" or an object.");
    for (const auto& member : value.get_object()) {
      const std::string_view kind = view_of_key(member);
      strings(member.value(), kind, [&](std::string_view one) {
        ++parsed.count;
        if (kind == "AWS")
          aws_principal(one, parsed);
        else if (kind == "Service")
          parsed.services.emplace_back(one);
        else if (kind != "Federated")
          bad(fmt::format("Unknown principal {}.", kind));
      });
    }
    if (parsed.count == 0) bad("Principal names nobody.");
    at_most(parsed.count, kPolicyPrincipalsMax, "Principals");
  }

  void aws_principal(std::string_view one, PolicyPrincipals& parsed) {
    if (one == kAnything) {
      parsed.everyone = true;
    } else if (std::string digits = without_hyphens(one); is_account(digits)) {
      parsed.accounts.push_back(std::move(digits));
    } else {
      principal_arn(one, parsed);
    }
  }

  // A user, a role, or a session, of one account. Anything else can never call, so a Deny for it
  // would deny nobody.
  void principal_arn(std::string_view arn, PolicyPrincipals& parsed) {
    if (arn.find_first_of("*?${}") != std::string_view::npos)
      return bad("An AWS principal has neither wildcards nor variables, except \"*\" alone.");
    std::string_view rest = without_partition(arn);
    const std::string_view name = rest;
    const bool is_iam = rest.starts_with("iam::"), is_sts = rest.starts_with("sts::");
    rest.remove_prefix(is_iam || is_sts ? 5 : 0);
    const std::string_view account = rest.substr(0, rest.find(':'));
    const bool whole = rest.size() > account.size() && is_account(account);
    const std::string_view who = whole ? rest.substr(account.size() + 1) : std::string_view();
    const auto is_kind = [&](std::string_view kind) {
      return who.starts_with(kind) && who.size() > kind.size();
    };
    if (is_iam && who == "root")
      parsed.accounts.emplace_back(account);
    else if ((is_iam && (is_kind("user/") || is_kind("role/"))) ||
             (is_sts && (is_kind("assumed-role/") || is_kind("federated-user/"))))
      parsed.arns.emplace_back(name);
    else
      bad("An AWS principal must be \"*\", an account number, or the ARN of a user, role or "
          "session.");
  }

  void not_principal(const PolicyStatement& parsed) {
    if (parsed.allow) return bad("NotPrincipal must be used with the Effect Deny.");
    if (parsed.principals.everyone) bad("NotPrincipal must not name everybody.");
  }

  void action(const json::value& value, std::vector<std::string>& parsed) {
    strings(value, "Action", [&](std::string_view one) {
      std::string lower = to_lower_ascii(one);
      if (lower != kAnything && !lower.starts_with(kServicePrefix))
        bad("Policy statement action out of service scope!");
      if (lower.find_first_not_of("abcdefghijklmnopqrstuvwxyz:*?") != std::string::npos)
        bad(fmt::format("{} is not an action.", one));
      parsed.push_back(std::move(lower));
    });
    at_most(parsed.size(), limits::kPermissionActionsMax, "Actions");
  }

  // Any text is taken, as AWS does; one that is no ARN is no queue's (warnings_about() says so), nor
  // may it become one by a variable.
  void resource(const json::value& value, std::string_view name, std::vector<PolicyText>& parsed) {
    if (value.is_array()) parsed.reserve(value.get_array().size());
    strings(value, name, [&](std::string_view one) {
      const bool may_be_arn =
          one.starts_with("arn:") || one.find_first_of("*?") != std::string_view::npos;
      parsed.push_back(may_be_arn ? with_variables(one) : PolicyText(one));
      constexpr int kColonsOfAnArn = 5;
      if (parsed.back().has_variables() &&
          std::ranges::count(parsed.back().beginning(), u':') < kColonsOfAnArn)
        bad("Variables (${...}) may stand only behind the fifth colon of a Resource.");
    });
  }

  static bool names_unknown_key(const std::vector<PolicyText>& texts) {
    return std::ranges::any_of(texts, [](const PolicyText& text) {
      return std::ranges::count(text.keys(), KeyKind::kUnknown, kind_of_key) > 0;
    });
  }

  // Only the later version of the policy language has variables; in the earlier one they are plain
  // text.
  PolicyText with_variables(std::string_view text) {
    if (!has_variables_) return PolicyText(text);
    auto parsed = PolicyText::with_variables(text);
    if (parsed) return *std::move(parsed);
    bad(parsed.error());
    return PolicyText(text);
  }

  void conditions(const json::value& value, std::vector<PolicyCondition>& parsed) {
    if (!value.is_object()) return bad("Condition must be an object.");
    for (const auto& block : value.get_object()) {
      const auto op = parse_operator(view_of_key(block));
      if (!op) return bad(fmt::format("Unknown condition {}.", view_of_key(block)));
      if (!block.value().is_object()) return bad("A condition must be an object.");
      std::set<std::string> keys;  // Their names are case-insensitive.
      for (const auto& member : block.value().get_object()) {
        PolicyCondition& condition = parsed.emplace_back();
        condition.op = *op;
        condition.key = to_lower_ascii(view_of_key(member));
        if (!keys.insert(condition.key).second)
          return bad(fmt::format("A condition has the key {} twice.", view_of_key(member)));
        condition_values(member.value(), condition);
        condition.names_unknown_key =
            kind_of_key(condition.key) == KeyKind::kUnknown || names_unknown_key(condition.values);
      }
    }
    at_most(parsed.size(), kPolicyConditionsMax, "Conditions");
  }

  void condition_values(const json::value& value, PolicyCondition& condition) {
    const json::array one{value};
    const json::array& all = value.is_array() ? value.get_array() : one;
    condition.values.reserve(all.size());
    for (const json::value& item : all) {
      if (item.is_structured() || item.is_null()) return bad("A condition's value must be text.");
      const std::string text = item.is_string() ? std::string(view_of(item.get_string()))
                                                : std::string(json::serialize(item));
      if (!takes_value(condition.op.test, text))
        return bad(fmt::format("The condition on {} has an unsuitable value.", condition.key));
      condition.values.push_back(takes_variables(condition.op.test) ? with_variables(text)
                                                                    : PolicyText(text));
    }
    if (condition.values.empty()) bad("A condition has no value.");
  }

  // A string, or a non-empty list of strings.
  template <class Each>
  void strings(const json::value& value, std::string_view name, const Each& each) {
    if (value.is_string()) return each(view_of(value.get_string()));
    if (!value.is_array() || value.get_array().empty())
      return bad(fmt::format("{} must be a string or a list of strings.", name));
    for (const json::value& item : value.get_array()) {
      if (!item.is_string())
        return bad(fmt::format("{} must be a string or a list of strings.", name));
      each(view_of(item.get_string()));
    }
  }

  std::optional<Error> error_;
  bool has_variables_ = false;
};

// A session of an assumed role acts as the role: arn:aws:sts::1:assumed-role/R/s belongs to
// arn:aws:iam::1:role/R.
std::string role_of_session(std::string_view arn) {
  constexpr std::string_view kSts = ":sts::", kAssumed = ":assumed-role/";
  const std::size_t sts = arn.find(kSts), assumed = arn.find(kAssumed);
  if (sts == std::string_view::npos || assumed == std::string_view::npos || assumed < sts)
    return {};
  const std::size_t account = sts + kSts.size();
  if (assumed < account) return {};
  const std::string_view role = arn.substr(assumed + kAssumed.size());
  return fmt::format("{}:iam::{}:role/{}", arn.substr(0, sts),
                     arn.substr(account, assumed - account), role.substr(0, role.find('/')));
}

bool has(const std::vector<std::string>& list, std::string_view wanted) {
  return !wanted.empty() && std::ranges::find(list, wanted) != list.end();
}

bool names_caller(const PolicyPrincipals& principals, const PolicyRequest& request) {
  return principals.everyone || has(principals.accounts, request.account) ||
         has(principals.arns, without_partition(request.arn)) ||
         has(principals.services, request.service) ||
         has(principals.arns, without_partition(role_of_session(request.arn)));
}

// Whether NotPrincipal exempts the caller. A user or session must be named itself: its account
// alone means only the account's own keys.
bool spares_caller(const PolicyPrincipals& principals, const PolicyRequest& request) {
  if (!request.service.empty()) return has(principals.services, request.service);
  return has(principals.accounts, request.account) &&
         (request.arn.ends_with(":root") || has(principals.arns, without_partition(request.arn)));
}

bool concerns_caller(const PolicyStatement& statement, const PolicyRequest& request) {
  return statement.not_principals ? !spares_caller(statement.principals, request)
                                  : names_caller(statement.principals, request);
}

bool concerns_action(const PolicyStatement& statement, std::string_view lower_action) {
  return statement.not_actions !=
         std::ranges::any_of(statement.actions, [&](std::string_view pattern) {
           return matches_wildcards(pattern, lower_action);
         });
}

// What a part comes to that cannot be decided: whatever AWS would find, no more is allowed.
bool undecided(const PolicyStatement& statement, const PolicyRequest& request) {
  return !statement.allow && !request.may_mend;
}

bool need_unknown_value(const std::vector<PolicyText>& texts, const PolicyRequest& request) {
  return !request.unknown.empty() && std::ranges::any_of(texts, [&](const PolicyText& text) {
    return std::ranges::any_of(text.keys(),
                               [&](std::string_view key) { return request.unknown.contains(key); });
  });
}

bool concerns_queue(const PolicyStatement& statement, const PolicyRequest& request) {
  if (statement.resource_names_unknown_key || need_unknown_value(statement.resources, request))
    return undecided(statement, request);
  return statement.not_resources !=
         std::ranges::any_of(statement.resources, [&](const PolicyText& resource) {
           Pattern room;
           const Pattern* const pattern =
               resource.resolve(request.context, request.queue_arn.size(), room);
           return pattern != nullptr && matches(*pattern, request.queue_arn);
         });
}

// The steps that are left for the conditions of a request.
using Steps = std::size_t;

bool condition_met(const PolicyStatement& statement, const PolicyCondition& condition,
                   const PolicyRequest& request, Steps& left) {
  if (condition.names_unknown_key) return undecided(statement, request);
  if (condition.op.test != ConditionTest::kNull &&
      (request.unknown.contains(condition.key) || need_unknown_value(condition.values, request)))
    return undecided(statement, request);
  const Steps needed = steps_of(condition, request.context);
  if (needed > left) return !statement.allow;
  left -= needed;
  return holds(condition, request.context);
}

bool applies(const PolicyStatement& statement, const PolicyRequest& request,
             std::string_view lower_action, Steps& left) {
  return concerns_caller(statement, request) && concerns_action(statement, lower_action) &&
         concerns_queue(statement, request) &&
         std::ranges::all_of(statement.conditions, [&](const PolicyCondition& condition) {
           return condition_met(statement, condition, request, left);
         });
}

}  // namespace

Answer<Policy> parse_policy(std::string_view text) {
  return Parser().parse(text);
}

std::size_t footprint(const Policy& policy) {
  const auto of_strings = [](const std::vector<std::string>& all) {
    std::size_t bytes = all.capacity() * sizeof(std::string);
    for (const std::string& one : all) bytes += one.capacity();
    return bytes;
  };
  const auto of_texts = [](const std::vector<PolicyText>& all) {
    std::size_t bytes = (all.capacity() - all.size()) * sizeof(PolicyText);
    for (const PolicyText& one : all) bytes += one.footprint();
    return bytes;
  };
  std::size_t bytes = sizeof(Policy) + policy.statements.capacity() * sizeof(PolicyStatement);
  for (const PolicyStatement& statement : policy.statements) {
    const PolicyPrincipals& principals = statement.principals;
    bytes += statement.sid.capacity() + of_strings(principals.accounts) +
             of_strings(principals.arns) + of_strings(principals.services) +
             of_strings(statement.actions) + of_texts(statement.resources) +
             statement.conditions.capacity() * sizeof(PolicyCondition);
    for (const PolicyCondition& condition : statement.conditions)
      bytes += condition.key.capacity() + of_texts(condition.values);
  }
  return bytes;
}

Verdict evaluate(const Policy& policy, const PolicyRequest& request) {
  const std::string action = fmt::format("{}{}", kServicePrefix, to_lower_ascii(request.action));
  Verdict verdict = Verdict::kNoMatch;
  Steps left = kPolicyStepsMax;
  for (const PolicyStatement& statement : policy.statements) {
    if (!applies(statement, request, action, left)) continue;
    if (!statement.allow) return Verdict::kDeny;
    verdict = Verdict::kAllow;
  }
  return verdict;
}

// A batch needs the permission for the single action.
std::string_view permission_of(Action action) {
  // Who may receive a message may look at it, too.
  if (action == Action::kStanchionPeek || action == Action::kStanchionGroups)
    return name_of(Action::kReceiveMessage);
  constexpr std::string_view kBatch = "Batch";
  std::string_view name = name_of(action);
  if (name.ends_with(kBatch)) name.remove_suffix(kBatch.size());
  return name;
}

bool is_owner_only(Action action) {
  return traits_of(action).granted_to == GrantedTo::kOwner;
}

}  // namespace stanchion::policy
