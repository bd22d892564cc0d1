#include "policy/keys.h"

#include <algorithm>
#include <array>

namespace stanchion::policy {
namespace {

// The evaluating code gives these keys a value wherever AWS would.
constexpr std::array<std::string_view, 20> kFilled{
    "aws:currenttime",      "aws:epochtime",       "aws:multifactorauthpresent",
    "aws:principalaccount", "aws:principalarn",    "aws:principalisawsservice",
    "aws:principaltype",    "aws:referer",         "aws:requestedregion",
    "aws:resourceaccount",  "aws:securetransport", "aws:sourceip",
    "aws:tagkeys",          "aws:tokenage",        "aws:tokenissuetime",
    "aws:useragent",        "aws:userid",          "aws:username",
    "aws:viaawsmcpservice", "aws:viaawsservice",
};

// On AWS these keys have a value only for members of an organisation, for calls made by a service,
// through a VPC, with a second factor, or with the role of a machine, a function or a federated
// user. None of these exist here, so the keys are absent, as they would be on AWS.
constexpr std::array<std::string_view, 40> kAbsent{
    "aws:assumedroot",
    "aws:calledvia",
    "aws:calledviaawsmcp",
    "aws:calledviafirst",
    "aws:calledvialast",
    "aws:chatbotsourcearn",
    "aws:ec2instancesourceprivateipv4",
    "aws:ec2instancesourcevpc",
    "aws:federatedprovider",
    "aws:ismcpserviceaction",
    "aws:multifactorauthage",
    "aws:principalorgid",
    "aws:principalorgpaths",
    "aws:principalservicename",
    "aws:principalservicenameslist",
    "aws:resourceorgid",
    "aws:resourceorgpaths",
    "aws:signinsessionarn",
    "aws:sourceaccount",
    "aws:sourcearn",
    "aws:sourceidentity",
    "aws:sourceorgid",
    "aws:sourceorgpaths",
    "aws:sourceowner",
    "aws:sourcevpc",
    "aws:sourcevpcarn",
    "aws:sourcevpce",
    "aws:vpceaccount",
    "aws:vpceorgid",
    "aws:vpceorgpaths",
    "aws:vpcsourceip",
    "codebuild:buildarn",
    "codebuild:projectarn",
    "ec2:roledelivery",
    "ec2:sourceinstancearn",
    "glue:credentialissuingservice",
    "glue:roleassumedby",
    "identitystore:userid",
    "lambda:sourcefunctionarn",
    "ssm:sourceinstancearn",
};

constexpr std::array<std::string_view, 7> kMultivalued{
    "aws:calledvia",        "aws:principalorgpaths", "aws:principalservicenameslist",
    "aws:resourceorgpaths", "aws:sourceorgpaths",    "aws:tagkeys",
    "aws:vpceorgpaths",
};

// Followed by the key of a tag. Callers have no tags.
constexpr std::array<std::string_view, 3> kTags{"aws:principaltag/", "aws:requesttag/",
                                                "aws:resourcetag/"};

bool is_documented(std::string_view key) {
  return std::ranges::binary_search(kFilled, key) || std::ranges::binary_search(kAbsent, key) ||
         std::ranges::any_of(kTags, [&](std::string_view prefix) {
           return key.starts_with(prefix) && key.size() > prefix.size();
         });
}

static_assert(std::ranges::is_sorted(kFilled) && std::ranges::is_sorted(kAbsent));

}  // namespace

KeyKind kind_of_key(std::string_view key) {
  if (is_documented(key)) return KeyKind::kDocumented;
  return key.starts_with("aws:") || key.starts_with("sqs:") ? KeyKind::kUnknown : KeyKind::kForeign;
}

bool is_multivalued(std::string_view key) {
  return std::ranges::find(kMultivalued, key) != kMultivalued.end();
}

}  // namespace stanchion::policy
