#include "client/remote_credentials.h"

#include <fmt/format.h>

#include "base/text.h"
#include "client/credential_chain.h"
#include "client/json.h"
#include "client/retry.h"
#include "client/small_file.h"
#include "net/http_client.h"

namespace stanchion::client {

// The part of the answer that both endpoints have in common.
struct CredentialsBody {
  std::optional<std::string> code;
  std::optional<std::string> message;
  std::optional<std::string> access_key_id;
  std::optional<std::string> secret_access_key;
  std::optional<std::string> token;
  std::optional<std::string> expiration;
};

template <>
struct Members<CredentialsBody> {
  using T = CredentialsBody;
  static constexpr auto list = std::tuple(
      member("Code", &T::code), member("Message", &T::message),
      member("AccessKeyId", &T::access_key_id), member("SecretAccessKey", &T::secret_access_key),
      member("Token", &T::token), member("Expiration", &T::expiration));
};

namespace {

using std::chrono::milliseconds;

constexpr const char* kContainerHost = "http://169.254.170.2";
constexpr const char* kInstanceHost = "http://169.254.169.254";
constexpr const char* kRolesPath = "/latest/meta-data/iam/security-credentials/";
constexpr milliseconds kContainerTimeout{5'000};
constexpr milliseconds kInstanceTimeout{2'000};
// Short, because a machine that is not an EC2 instance is recognised by this timeout.
constexpr milliseconds kInstanceConnectTimeout{1'000};
constexpr std::size_t kTokenBytesMax = 16'384;
constexpr net::ResponseLimits kAnswerLimits{.head_bytes = 16 * 1024, .body_bytes = 64 * 1024};
constexpr int kAttempts = 3;

Error none(std::string message) {
  return local_error(code::kNoCredentials, std::move(message));
}

// Repeats the request while there is no answer, or one that says that the server is at fault.
Result<net::ClientResponse> ask(net::HttpClient& client, const net::ClientRequest& request,
                                int attempts) {
  for (int attempt = 1;; ++attempt) {
    auto response = client.call(request);
    if (attempt == attempts || (response && response->status < 500)) return response;
  }
}

// Tokens and secrets are sent over plain HTTP only where nobody can listen.
bool may_be_plain(const net::Url& url) {
  return is_local(url) || url.host == "169.254.170.2" || url.host == "169.254.170.23" ||
         url.host == "fd00:ec2::23";
}

Outcome<std::string> container_token(const Environment& environment) {
  std::string token = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or("");
  if (const auto path = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")) {
    auto read = read_small_file(*path, kTokenBytesMax);
    if (!read || !*read)
      return none(fmt::format("$AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: {}",
                              read ? fmt::format("there is no {}", *path) : read.error().message));
    token = **std::move(read);
  }
  if (token.size() > kTokenBytesMax) return none("the container's authorization token is too long");
  while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
  if (token.find_first_of("\r\n") != std::string::npos)
    return none("the container's authorization token has more than one line");
  return token;
}

Outcome<net::Url> container_url(const Environment& environment) {
  const auto relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  // Without the slash it would continue the host's name, and somebody else would be asked.
  if (relative && !relative->starts_with('/'))
    return none(fmt::format(
        "$AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is \"{}\", which is no path: it must begin with /",
        *relative));
  const std::string text = relative
                               ? kContainerHost + *relative
                               : environment("AWS_CONTAINER_CREDENTIALS_FULL_URI").value_or("");
  auto url = net::parse_url(text);
  if (!url) return none("the container's credentials: " + url.error().message);
  if (!url->tls && !may_be_plain(*url))
    return none(
        fmt::format("$AWS_CONTAINER_CREDENTIALS_FULL_URI is {}; without https only this "
                    "machine and the addresses of ECS and EKS are asked",
                    text));
  return *std::move(url);
}

// "2026-11-16T09:00:00Z", perhaps with a fraction of the second.
std::optional<std::chrono::system_clock::time_point> parse_expiration(const std::string& text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (text.size() < 20 || text.back() != 'Z' ||
      std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d", &year, &month, &day, &hour, &minute,
                  &second) != 6)
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second);
}

}  // namespace

Outcome<Credentials> parse_credentials(std::string_view json) {
  const auto body = ResultJson::read<CredentialsBody>(json);
  if (!body)
    return none("the answer with credentials is not what it should be: " + body.error().message);
  if (body->code && *body->code != "Success")
    return none(fmt::format("the endpoint of credentials says {}: {}", *body->code,
                            body->message.value_or("")));
  if (!body->access_key_id || !body->secret_access_key || body->access_key_id->empty())
    return none("the answer with credentials has no AccessKeyId or no SecretAccessKey");
  Credentials credentials{
      *body->access_key_id, *body->secret_access_key, body->token.value_or(""), {}};
  if (body->expiration) {
    credentials.expires = parse_expiration(*body->expiration);
    if (!credentials.expires)
      return none(fmt::format("\"{}\" is no time at which credentials expire", *body->expiration));
  }
  return credentials;
}

std::optional<Outcome<Credentials>> from_container(const Environment& environment) {
  if (!environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") &&
      !environment("AWS_CONTAINER_CREDENTIALS_FULL_URI"))
    return std::nullopt;
  auto url = container_url(environment);
  if (!url) return url.error();
  auto token = container_token(environment);
  if (!token) return token.error();
  net::HttpClient client({.request_timeout = kContainerTimeout, .limits = kAnswerLimits});
  net::ClientRequest request{
      .url = *url, .headers = {{"Accept", "application/json"}}, .repeatable = true};
  if (!token->empty()) request.headers.emplace_back("Authorization", *token);
  const auto response = ask(client, request, kAttempts);
  if (!response)
    return none("the container's endpoint of credentials: " + response.error().message);
  if (response->status != 200)
    return none(
        fmt::format("the container's endpoint of credentials answers with {}", response->status));
  return parse_credentials(response->body);
}

std::optional<Outcome<Credentials>> from_instance(const Environment& environment) {
  const auto disabled = environment("AWS_EC2_METADATA_DISABLED");
  if (disabled && equals_ignoring_ascii_case(*disabled, "true")) return std::nullopt;
  std::string host = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or(kInstanceHost);
  while (host.ends_with('/')) host.pop_back();
  auto url = net::parse_url(host);
  if (!url) return none("$AWS_EC2_METADATA_SERVICE_ENDPOINT: " + url.error().message);
  net::HttpClient client({.connect_timeout = kInstanceConnectTimeout,
                          .request_timeout = kInstanceTimeout,
                          .limits = kAnswerLimits});
  const auto get = [&](std::string method, std::string path, net::Headers headers, int attempts) {
    url->path = std::move(path);
    return ask(client,
               {.method = std::move(method),
                .url = *url,
                .headers = std::move(headers),
                .repeatable = true},
               attempts);
  };
  const auto token =
      get("PUT", "/latest/api/token", {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}}, 1);
  // Nobody answers: this is not an EC2 instance.
  if (!token) return std::nullopt;
  if (token->status != 200)
    return none(fmt::format("the instance's metadata gives no token but {}", token->status));
  const net::Headers with_token{{"X-aws-ec2-metadata-token", token->body}};
  const auto role = get("GET", kRolesPath, with_token, kAttempts);
  if (!role) return none("the instance's metadata: " + role.error().message);
  if (role->status == 404) return none("the instance has no role, and so no credentials");
  const std::string name = role->body.substr(0, role->body.find_first_of("\r\n"));
  if (role->status != 200 || name.empty() || name.find_first_of(" /?#") != std::string::npos)
    return none(
        fmt::format("the instance's metadata does not name its role (HTTP {})", role->status));
  const auto credentials = get("GET", kRolesPath + name, with_token, kAttempts);
  if (!credentials) return none("the instance's metadata: " + credentials.error().message);
  if (credentials->status != 200)
    return none(
        fmt::format("the instance's metadata gives no credentials but {}", credentials->status));
  return parse_credentials(credentials->body);
}

}  // namespace stanchion::client
