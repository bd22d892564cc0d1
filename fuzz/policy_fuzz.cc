// Any bytes as a queue policy: it is refused, or it can be evaluated and be warned about; a policy
// that only denies allows nothing, and one that only allows denies nothing.
#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "fuzz/fuzz.h"
#include "policy/policy.h"
#include "policy/warnings.h"

namespace stanchion::fuzz {
namespace {

using namespace stanchion::policy;

void evaluate_for_everybody(const Policy& policy) {
  const bool allows_something = std::ranges::any_of(policy.statements, &PolicyStatement::allow);
  const bool denies_something = !std::ranges::all_of(policy.statements, &PolicyStatement::allow);
  PolicyRequest request{"111111111111",
                        "arn:aws:sts::111111111111:assumed-role/R/s",
                        "",
                        "SendMessage",
                        "arn:aws:sqs:us-east-1:000000000000:q",
                        {{"aws:sourceip", {"10.0.0.1"}},
                         {"aws:currenttime", {"2026-08-01T12:00:00Z"}},
                         {"aws:sourcearn", {"arn:aws:sns:us-east-1:000000000000:t"}},
                         {"aws:username", {"q"}},
                         {"aws:useragent", {"*?${aws:username}"}},
                         {"aws:tagkeys", {"a", "b"}}}};
  for (int who = 0; who < 3; ++who) {
    if (who == 1) request.account = request.arn = "";
    if (who == 2) request.service = "sns.amazonaws.com";
    const Verdict verdict = evaluate(policy, request);
    CHECK(verdict != Verdict::kAllow || allows_something, "only an Allow allows");
    CHECK(verdict != Verdict::kDeny || denies_something, "only a Deny denies");
  }
  for (const std::string& warning : warnings_about(policy, request.queue_arn))
    CHECK(is_utf8(warning), "a warning can be printed");
}

}  // namespace

std::vector<std::string> seeds() {
  return {
      R"({"Version":"2012-10-17","Id":"i","Statement":[{"Sid":"s","Effect":"Allow","Principal":)"
      R"({"AWS":["111111111111","arn:aws:iam::111111111111:role/R"],)"
      R"("Service":"sns.amazonaws.com"},)"
      R"("Action":["sqs:Send*","SQS:?"],"Resource":"arn:aws:sqs:*:*:q","Condition":{"ArnLike":)"
      R"({"aws:SourceArn":"arn:*:sns:*:*:*"},)"
      R"("ForAnyValue:StringNotLikeIfExists":{"aws:TagKeys":["a*"]}}}]})",
      R"({"Statement":{"Effect":"Deny","NotPrincipal":{"AWS":["111111111111",)"
      R"("arn:aws:iam::111111111111:role/R"]},"NotAction":"*","NotResource":"*",)"
      R"("Condition":)"
      R"({"IpAddress":{"aws:SourceIp":["10.0.0.0/8","::1/128"]},"Null":{"aws:username":true},)"
      R"("DateLessThan":{"aws:CurrentTime":"2026-08-01T12:00:00.5Z"},"NumericEquals":{"aws:EpochTime":1e3}}}})",
      R"({"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":"*","Action":"*",)"
      R"("Resource":"arn:aws:sqs:*:*:${aws:username}","Condition":{"StringLike":)"
      R"({"aws:UserAgent":"${*}${?}${aws:Sped, '${$}'}*","aws:Sped":"x","s3:prefix":"x"},)"
      R"("ArnNotLike":{"aws:SourceArn":"arn:aws:sns:*:*:${aws:PrincipalTag/a}"},)"
      R"("BinaryEquals":{"aws:username":"cQ=="},"DateNotEquals":)"
      R"({"aws:CurrentTime":["2026-08","2026-08-01T12:00+02:00"]}}}})",
  };
}

}  // namespace stanchion::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stanchion;
  const auto policy = policy::parse_policy({reinterpret_cast<const char*>(data), size});
  if (policy) fuzz::evaluate_for_everybody(*policy);
  return 0;
}
