// The keys that conditions and variables of policies may name, as AWS documents them.
//
// A condition on a key without a value looks strict and is not: a Deny on it denies nobody. So it
// matters whether AWS would have found nothing, too, or whether that is not known here.
#pragma once

#include <string_view>

namespace stanchion::policy {

enum class KeyKind {
  kDocumented,  // It has a value here wherever it would have one on AWS.
  kForeign,     // Of another service, or of none: AWS gives it no value in calls of SQS either.
  kUnknown,     // It looks like a key for SQS: misspelt, or newer than this release.
};

// `key` in lower case.
KeyKind kind_of_key(std::string_view key);

// Whether AWS documents it as a list of values, however many there are. `key` in lower case.
bool is_multivalued(std::string_view key);

}  // namespace stanchion::policy
