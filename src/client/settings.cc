#include "client/settings.h"

#include <fmt/format.h>

#include <cstdlib>

#include "client/credential_chain.h"
#include "client/profile.h"
#include "client/retry.h"

namespace stanchion::client {
namespace {

// For servers with a single region, whatever it is called.
constexpr const char* kLocalRegion = "us-east-1";

Error wrong(std::string message) {
  return local_error(code::kInvalidSettings, std::move(message));
}

std::string first_of(std::initializer_list<std::optional<std::string>> candidates) {
  for (const auto& candidate : candidates)
    if (candidate && !candidate->empty()) return *candidate;
  return {};
}

bool is_true(const std::optional<std::string>& value) {
  return value && (*value == "true" || *value == "True" || *value == "TRUE" || *value == "1");
}

// A region is a part of host names and of signatures.
bool is_region(const std::string& text) {
  return !text.empty() && text.size() <= 64 &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

}  // namespace

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
}

std::string endpoint_of_region(const std::string& region) {
  return fmt::format("https://sqs.{}.amazonaws.com{}", region,
                     region.starts_with("cn-") ? ".cn" : "");
}

Options with_endpoint_of_queue(Options options, const std::string& queue_url) {
  return with_endpoint_of_queue(std::move(options), queue_url, process_environment());
}

Options with_endpoint_of_queue(Options options, const std::string& queue_url,
                               const Environment& environment) {
  const auto url = net::parse_url(queue_url);
  if (!options.endpoint.empty() || !url || url->port.empty() ||
      environment("AWS_ENDPOINT_URL_SQS") || environment("AWS_ENDPOINT_URL"))
    return options;
  options.endpoint = fmt::format("{}://{}", url->tls ? "https" : "http", url->authority());
  // "sqs.eu-west-1.amazonaws.com", and the older "eu-west-1.queue.amazonaws.com".
  static constexpr std::string_view kBefore = "sqs.";
  const std::string_view host = url->host;
  const std::size_t aws = host.find(".amazonaws.com");
  if (aws == std::string_view::npos) return options;
  std::string_view region = host.substr(0, aws);
  if (region.starts_with(kBefore))
    region.remove_prefix(kBefore.size());
  else if (region.ends_with(".queue"))
    region.remove_suffix(std::string_view(".queue").size());
  else if (region == "queue")
    region = "us-east-1";
  if (is_region(std::string(region))) options.region = region;
  return options;
}

bool is_local(const net::Url& url) {
  return url.port.empty() || url.host == "localhost" || url.host == "::1" ||
         (url.host.starts_with("127.") &&
          url.host.find_first_not_of("0123456789.") == std::string::npos);
}

Outcome<Settings> read_settings(const Options& options, const Environment& environment) {
  const auto profile = load_profile(options.profile, environment);
  if (!profile) return wrong(profile.error().message);
  Settings settings;
  const bool ignores = is_true(environment("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")) ||
                       is_true(profile->get("ignore_configured_endpoint_urls"));
  settings.endpoint = options.endpoint;
  if (settings.endpoint.empty() && !ignores)
    settings.endpoint =
        first_of({environment("AWS_ENDPOINT_URL_SQS"), environment("AWS_ENDPOINT_URL"),
                  profile->sqs_endpoint_url, profile->get("endpoint_url")});
  settings.region = first_of({options.region, environment("AWS_REGION"),
                              environment("AWS_DEFAULT_REGION"), profile->get("region")});
  if (settings.region.empty() && settings.endpoint.empty())
    return wrong(
        "no region is set: set Options::region or $AWS_REGION, or an endpoint by "
        "Options::endpoint or $AWS_ENDPOINT_URL_SQS");
  if (settings.region.empty()) settings.region = kLocalRegion;
  if (!is_region(settings.region))
    return wrong(fmt::format("\"{}\" is no region", settings.region));
  if (settings.endpoint.empty()) settings.endpoint = endpoint_of_region(settings.region);
  auto url = net::parse_url(settings.endpoint);
  if (!url) return wrong(url.error().message);
  settings.url = *std::move(url);
  settings.ca_file = first_of({options.tls.ca_file, environment("AWS_CA_BUNDLE")});
  settings.credentials =
      options.credentials
          ? options.credentials
          : standard_chain({.profile = options.profile, .local = is_local(settings.url)},
                           environment);
  return settings;
}

}  // namespace stanchion::client
