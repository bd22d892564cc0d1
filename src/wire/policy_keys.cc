#include "wire/policy_keys.h"

#include <algorithm>
#include <array>

namespace stanchion::wire {
namespace {

// Whoever evaluates a policy gives these a value wherever AWS would.
constexpr std::array<std::string_view, 16> kFilled{
    "aws:currenttime",      "aws:epochtime",       "aws:multifactorauthpresent",
    "aws:principalaccount", "aws:principalarn",    "aws:principalisawsservice",
    "aws:principaltype",    "aws:referer",         "aws:requestedregion",
    "aws:resourceaccount",  "aws:securetransport", "aws:sourceip",
    "aws:tagkeys",          "aws:useragent",       "aws:username",
    "aws:viaawsservice",
};

// In AWS these have a value only for members of an organisation, for calls that a service makes,
// by way of a VPC, or with a second factor. There is nothing of that kind here, and they are absent
// as they would be there.
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
