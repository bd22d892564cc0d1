#include "client/credential_chain.h"

#include <fmt/format.h>

#include "client/profile.h"
#include "client/remote_credentials.h"
#include "client/retry.h"

namespace stanchion::client {
namespace {

Error none(std::string message) {
  return local_error(code::kNoCredentials, std::move(message));
}

std::optional<Outcome<Credentials>> from_environment(const Environment& environment) {
  const auto id = environment("AWS_ACCESS_KEY_ID");
  const auto secret = environment("AWS_SECRET_ACCESS_KEY");
  if (!id && !secret) return std::nullopt;
  if (!id || !secret)
    return none(fmt::format("${} is set, but ${} is not",
                            id ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                            id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID"));
  return Credentials{*id, *secret, environment("AWS_SESSION_TOKEN").value_or(""), {}};
}

std::optional<Outcome<Credentials>> from_profile(const std::string& name,
                                                 const Environment& environment) {
  const auto profile = load_profile(name, environment);
  if (!profile) return none(profile.error().message);
  const auto id = profile->get("aws_access_key_id");
  const auto secret = profile->get("aws_secret_access_key");
  if (id && secret)
    return Credentials{*id, *secret, profile->get("aws_session_token").value_or(""), {}};
  if (id || secret)
    return none(fmt::format("the profile {} has {} but no {}", profile->name,
                            id ? "aws_access_key_id" : "aws_secret_access_key",
                            id ? "aws_secret_access_key" : "aws_access_key_id"));
  for (const char* other : {"role_arn", "sso_session", "sso_start_url", "credential_process",
                            "web_identity_token_file", "login_session"})
    if (profile->get(other))
      return none(
          fmt::format("the profile {} gets its credentials by {}, which this client does not know. "
                      "Put the keys into the environment, as `aws configure export-credentials "
                      "--format env` prints them, or give the client a CredentialsSource",
                      profile->name, other));
  return std::nullopt;
}

}  // namespace

CredentialsSource standard_chain(ChainOptions options, Environment environment) {
  return [options = std::move(options),
          environment = std::move(environment)]() -> Outcome<Credentials> {
    // A profile that was requested by name comes before the environment.
    if (options.profile.empty())
      if (auto found = from_environment(environment)) return *std::move(found);
    if (auto found = from_profile(options.profile, environment)) return *std::move(found);
    if (auto found = from_container(environment)) return *std::move(found);
    if (options.local) return Credentials{};
    if (auto found = from_instance(environment)) return *std::move(found);
    return none(
        "no credentials were found: not in $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY, not in "
        "the profile of ~/.aws/credentials or ~/.aws/config, and neither a container nor an "
        "instance offers any");
  };
}

}  // namespace stanchion::client
