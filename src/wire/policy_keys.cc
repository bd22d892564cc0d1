#include "wire/policy_keys.h"

#include <algorithm>
#include <array>

namespace stanchion::wire {
namespace {

// The evaluating code gives these keys a value wherever AWS would.
constexpr std::array<std::string_view, 16> kFilled{
    "aws:currenttime",      "aws:epochtime",       "aws:multifactorauthpresent",
    "aws:principalaccount", "aws:principalarn",    "aws:principalisawsservice",
    "aws:principaltype",    "aws:referer",         "aws:requestedregion",
    "aws:resourceaccount",  "aws:securetransport", "aws:sourceip",
    "aws:tagkeys",          "aws:useragent",       "aws:username",
    "aws:viaawsservice",
};

// On AWS these keys have a value only for members of an organisation, for calls made by a service,
// through a VPC, or with a second factor. None of these exist here, so the keys are absent, as they
// would be on AWS.
constexpr std::array<std::string_view, 24> kAbsent{
    "aws:calledvia",
    "aws:calledviafirst",
    "aws:calledvialast",
    "aws:federatedprovider",
    "aws:multifactorauthage",
    "aws:principalorgid",
    "aws:principalorgpaths",
    "aws:principalservicename",
    "aws:principalservicenameslist",
    "aws:resourceorgid",
    "aws:resourceorgpaths",
    "aws:sourceaccount",
    "aws:sourcearn",
    "aws:sourceidentity",
    "aws:sourceorgid",
    "aws:sourceorgpaths",
    "aws:sourceowner",
    "aws:sourcevpc",
    "aws:sourcevpcarn",
    "aws:sourcevpce",
    "aws:vpcsourceip",
    "aws:vpceaccount",
    "aws:vpceorgid",
    "aws:vpceorgpaths",
};

// Followed by the key of a tag. Callers have no tags.
constexpr std::array<std::string_view, 3> kTags{"aws:principaltag/", "aws:requesttag/",
                                                "aws:resourcetag/"};

}  // namespace

bool is_condition_key(std::string_view key) {
  return std::ranges::find(kFilled, key) != kFilled.end() ||
         std::ranges::find(kAbsent, key) != kAbsent.end() ||
         std::ranges::any_of(kTags, [&](std::string_view prefix) {
           return key.starts_with(prefix) && key.size() > prefix.size();
         });
}

}  // namespace stanchion::wire
