#include "policy/warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "model/ids.h"
#include "policy/keys.h"

namespace stanchion::policy {
namespace {

constexpr std::size_t kShownMax = 200;  // Bytes of what a policy says.

std::string shown(std::string_view text) {
  if (text.size() <= kShownMax) return std::string(text);
  std::size_t end = kShownMax;
  const auto continues = [](char byte) { return (byte & 0xC0) == 0x80; };
  while (end > 0 && continues(text[end])) --end;  // Not in the middle of a character.
  return std::string(text.substr(0, end)) + "…";
}

// A batch needs the permission for the single action, and has none of its own.
bool is_a_permission(const std::string& pattern) {
  return std::ranges::any_of(kActionNames, [&](std::string_view name) {
    return matches_wildcards(pattern, "sqs:" + to_lower_ascii(permission_of(*find_action(name))));
  });
}

class Reader {
 public:
  Reader(std::string_view queue_arn, std::vector<std::string>& out)
      : queue_arn_(queue_arn), out_(out) {}

  void read(const PolicyStatement& statement, std::size_t number) {
    name_ = statement.sid.empty() ? fmt::format("statement {}", number)
                                  : fmt::format("statement {}", shown(statement.sid));
    allow_ = statement.allow;
    look_at_resources(statement);
    for (const std::string& action : statement.actions)
      if (!is_a_permission(action)) add("{} is no permission of SQS", shown(action));
    for (const PolicyCondition& condition : statement.conditions) {
      look_at_key(condition);
      look_at_values(condition);
    }
    if (statement.not_principals) look_at_spared(statement.principals);
  }

 private:
  template <class... Parts>
  void add(fmt::format_string<Parts...> format, Parts&&... parts) {
    out_.push_back(name_ + ": " + fmt::format(format, std::forward<Parts>(parts)...));
  }

  void look_at_resources(const PolicyStatement& statement) {
    const auto& resources = statement.resources;
    look_at_variables(resources, statement.not_resources ? "the statement applies" : "");
    if (std::ranges::any_of(resources, [&](const PolicyText& resource) {
          return matches(resource.any_value(), queue_arn_);
        }))
      return;
    add("{} is not this queue, {}, so that the statement {} applies",
        shown(resources.front().as_written()), queue_arn_,
        statement.not_resources ? "always" : "never");
  }

  // A condition on a key without a value is decided by its operator alone.
  void look_at_key(const PolicyCondition& condition) {
    const KeyKind kind = kind_of_key(condition.key);
    if (kind == KeyKind::kForeign)
      add("{} never has a value for a queue, so that {}", shown(condition.key),
          holds(condition, {}) ? "the condition on it always holds"
                               : "the statement never applies");
    if (kind == KeyKind::kUnknown) add_unknown(condition.key);
  }

  void add_unknown(std::string_view key) {
    add("{} is no key that is known here, so that the statement {}", shown(key),
        allow_ ? "allows nothing" : "denies whatever its value is");
  }

  void look_at_values(const PolicyCondition& condition) {
    const bool nothing_is_enough =
        condition.op.negated && condition.op.quantifier != Quantifier::kForAnyValue;
    look_at_variables(condition.values,
                      nothing_is_enough
                          ? fmt::format("the condition on {} always holds", shown(condition.key))
                          : "");
    for (const PolicyText& value : condition.values) {
      const std::string& text = value.as_written();
      if (condition.op.test == ConditionTest::kArnLike && !value.has_variables() &&
          text.find('*') == std::string::npos && !looks_like_arn(text))
        add("{}, with which {} is compared, is no ARN", shown(text), shown(condition.key));
    }
  }

  // `follows` from a part that matches nothing; empty: that it does not hold.
  void look_at_variables(const std::vector<PolicyText>& texts, std::string_view follows) {
    const bool all_match_nothing = std::ranges::all_of(texts, matches_nothing);
    for (const PolicyText& text : texts) {
      const auto keys = text.keys(), needed = text.needed_keys();
      for (const std::string_view key : std::set(keys.begin(), keys.end()))
        if (kind_of_key(key) == KeyKind::kUnknown) add_unknown(key);
      for (const std::string_view key : std::set(needed.begin(), needed.end()))
        if (never_has_value(key))
          add("{} never has a value for a queue, so that nothing matches {}{}{}", shown(key),
              shown(text.as_written()), all_match_nothing && !follows.empty() ? ", and " : "",
              all_match_nothing ? follows : "");
    }
  }

  static bool never_has_value(std::string_view key) {
    return kind_of_key(key) == KeyKind::kForeign || is_multivalued(key);
  }

  static bool matches_nothing(const PolicyText& text) {
    return std::ranges::any_of(text.needed_keys(), never_has_value);
  }

  // A Deny for a user's account applies to the user.
  void look_at_spared(const PolicyPrincipals& principals) {
    for (const std::string& arn : principals.arns)
      if (!names_account_of(principals, arn))
        add("NotPrincipal names {} without its account, so that it does not spare it", shown(arn));
  }

  static bool names_account_of(const PolicyPrincipals& principals, std::string_view arn) {
    const std::string_view account = arn.substr(5, 12);  // Behind "iam::" or "sts::".
    return std::ranges::find(principals.accounts, account) != principals.accounts.end();
  }

  const std::string_view queue_arn_;
  std::vector<std::string>& out_;
  std::string name_;
  bool allow_ = false;
};

}  // namespace

std::string summary_of(std::vector<std::string> warnings) {
  constexpr std::size_t kExamplesMax = 3;
  const std::size_t more = warnings.size() - std::min(warnings.size(), kExamplesMax);
  warnings.resize(warnings.size() - more);
  return fmt::format("{}{}", fmt::join(warnings, "; "),
                     more > 0 ? fmt::format("; and {} more", more) : "");
}

std::vector<std::string> warnings_about(const Policy& policy, std::string_view queue_arn) {
  std::vector<std::string> out;
  Reader reader(queue_arn, out);
  std::size_t number = 0;
  for (const PolicyStatement& statement : policy.statements) reader.read(statement, ++number);
  return out;
}

}  // namespace stanchion::policy
