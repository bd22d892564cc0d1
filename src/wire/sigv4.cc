#include "wire/sigv4.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "wire/limits.h"
#include "wire/query_parameters.h"
#include "wire/sigv4_canonical.h"

namespace stanchion::wire {
namespace {

constexpr std::string_view kMismatch =
    "The request signature we calculated does not match the signature you provided. Check your AWS "
    "Secret Access Key and signing method. Consult the service documentation for details.";
constexpr std::string_view kInvalidToken = "The security token included in the request is invalid.";
constexpr std::string_view kExpiredToken = "The security token included in the request is expired";

std::unexpected<Error> incomplete(std::string message) {
  return refuse(ErrorCode::kIncompleteSignature, std::move(message));
}

std::unexpected<Error> mismatch(std::string_view message = kMismatch) {
  return refuse(ErrorCode::kSignatureDoesNotMatch, std::string(message));
}

// A signature as the call states it, from a header or the query. Refers to the call and
// `parameters`.
struct Claim {
  std::string_view credential;
  std::string_view signed_headers;
  std::string_view signature;
  std::string_view timestamp;
  std::string_view session_token;
  std::optional<std::int64_t> expires_seconds;  // Presigned only.

  // The parts of the credential.
  std::string_view access_key_id;
  std::string_view scope;  // date/region/service/aws4_request
  std::string_view date, region, service;

  Instant signed_at;
};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Answer<Claim> claim_of_header(const HttpCall& call) {
  std::string_view rest = trimmed(call.header("Authorization"));
  const std::string_view algorithm = rest.substr(0, rest.find(' '));
  if (algorithm != kAlgorithm)
    return incomplete(fmt::format("Unsupported AWS 'algorithm': '{}'.", algorithm));
  rest.remove_prefix(algorithm.size());
  Claim claim;
  for (const std::string_view part : split(rest, ',')) {
    const std::string_view pair = trimmed(part);
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view name = pair.substr(0, equals);
    const std::string_view value = pair.substr(std::min(equals + 1, pair.size()));
    if (name == "Credential") claim.credential = value;
    if (name == "SignedHeaders") claim.signed_headers = value;
    if (name == "Signature") claim.signature = value;
  }
  std::string missing;
  const auto require = [&](std::string_view name, std::string_view value) {
    if (value.empty())
      missing += fmt::format("Authorization header requires '{}' parameter. ", name);
  };
  require("Credential", claim.credential);
  require("Signature", claim.signature);
  require("SignedHeaders", claim.signed_headers);
  claim.timestamp = trimmed(call.header(kDateHeader));
  claim.session_token = trimmed(call.header(kTokenHeader));
  if (claim.timestamp.empty() && call.header("Date").empty())
    missing +=
        "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. ";
  if (missing.empty()) return claim;
  missing.pop_back();
  return incomplete(std::move(missing));
}

Answer<Claim> claim_of_query(const QueryParameters& parameters) {
  const auto get = [&](std::string_view name) {
    const std::string* value = parameters.find(name);
    return value != nullptr ? std::string_view(*value) : std::string_view();
  };
  if (get("X-Amz-Algorithm") != kAlgorithm)
    return incomplete(fmt::format("Unsupported AWS 'algorithm': '{}'.", get("X-Amz-Algorithm")));
  for (const std::string_view name : {"X-Amz-Credential", "X-Amz-Signature", "X-Amz-SignedHeaders",
                                      "X-Amz-Date", "X-Amz-Expires"})
    if (get(name).empty())
      return incomplete(fmt::format("AWS query-string parameters must include '{}'.", name));
  const auto seconds = parse_decimal(get("X-Amz-Expires"));
  if (!seconds || *seconds < 1 || *seconds > static_cast<std::uint64_t>(kPresignedSecondsMax))
    return incomplete(fmt::format("X-Amz-Expires must be a number between 1 and {} seconds.",
                                  kPresignedSecondsMax));
  Claim claim;
  claim.credential = get("X-Amz-Credential");
  claim.signature = get(kSignatureParameter);
  claim.signed_headers = get("X-Amz-SignedHeaders");
  claim.timestamp = get(kDateHeader);
  claim.session_token = get(kTokenHeader);
  claim.expires_seconds = static_cast<std::int64_t>(*seconds);
  return claim;
}

Answer<void> take_credential_apart(Claim& claim) {
  const auto parts = split(claim.credential, '/');
  if (parts.size() != 5)
    return incomplete(
        fmt::format("Credential must have exactly 5 slash-delimited elements, e.g. "
                    "keyid/date/region/service/term, got '{}'.",
                    claim.credential));
  claim.access_key_id = parts[0];
  claim.scope = claim.credential.substr(parts[0].size() + 1);
  claim.date = parts[1];
  claim.region = parts[2];
  claim.service = parts[3];
  if (parts[4] == kTerminator) return {};
  return mismatch(
      fmt::format("Credential should be scoped with a valid terminator: '{}', not '{}'.",
                  kTerminator, parts[4]));
}

// Finds out when the call was signed. A Date header is converted into `written_date`, in the form
// that the string to sign has.
Answer<void> take_date(const HttpCall& call, Claim& claim, std::string& written_date) {
  std::optional<Instant> at;
  if (!claim.timestamp.empty()) {
    at = parse_timestamp(claim.timestamp);
    if (!at)
      return incomplete(
          fmt::format("Date must be in ISO-8601 'basic format'. Got '{}'.", claim.timestamp));
  } else {
    const std::string_view date = trimmed(call.header("Date"));
    at = parse_http_date(date);
    if (!at) at = parse_timestamp(date);
    if (!at) return incomplete(fmt::format("Date header is not a date: '{}'.", date));
    written_date = format_timestamp(*at);
    claim.timestamp = written_date;
  }
  claim.signed_at = *at;
  if (claim.timestamp.starts_with(claim.date) && claim.date.size() == 8) return {};
  return mismatch(
      fmt::format("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date "
                  "from HTTP: '{}' != '{}', from '{}'.",
                  claim.date, claim.timestamp.substr(0, 8), claim.timestamp));
}

Answer<void> check_scope(const Claim& claim, const SignatureScope& scope) {
  if (!scope.region.empty() && claim.region != scope.region)
    return mismatch(
        fmt::format("Credential should be scoped to a valid region, not '{}'.", claim.region));
  if (!scope.service.empty() && claim.service != scope.service)
    return mismatch(
        fmt::format("Credential should be scoped to correct service: '{}'.", scope.service));
  return {};
}

Answer<void> check_time(const Claim& claim, Instant now) {
  const auto skew = std::chrono::seconds(kClockSkewSecondsMax);
  const auto age_max = claim.expires_seconds ? std::chrono::seconds(*claim.expires_seconds) : skew;
  const std::string allowed =
      claim.expires_seconds ? fmt::format("{} sec.", age_max.count()) : std::string("15 min.");
  // SQS and the timestamps have a resolution of one second.
  const Instant second = from_millis(to_seconds(now) * 1000);
  if (claim.signed_at < second - age_max)
    return mismatch(fmt::format("Signature expired: {} is now earlier than {} ({} - {})",
                                claim.timestamp, format_timestamp(second - age_max),
                                format_timestamp(second), allowed));
  if (claim.signed_at > second + skew)
    return mismatch(
        fmt::format("Signature not yet current: {} is still later than {} ({} + 15 min.)",
                    claim.timestamp, format_timestamp(second + skew), format_timestamp(second)));
  return {};
}

Answer<void> check_token(const Claim& claim, const AccessKey& key, Instant now) {
  if (!equal_in_constant_time(claim.session_token, key.session_token.value_or("")))
    return refuse(ErrorCode::kInvalidClientTokenId, std::string(kInvalidToken));
  if (now >= key.expires) return refuse(ErrorCode::kExpiredToken, std::string(kExpiredToken));
  return {};
}

// The hash in the canonical request. What the client says about its payload must be true.
Answer<std::string> payload_hash(const HttpCall& call, const Claim& claim,
                                 const SignatureScope& scope) {
  const std::string_view claimed = trimmed(call.header(kPayloadHeader));
  if (claimed == kUnsignedPayload) {
    const bool presigned = claim.expires_seconds.has_value();
    if (presigned ? !call.body.empty() : !scope.unsigned_payload)
      return refuse(ErrorCode::kInvalidSecurity,
                    presigned ? "The payload of a presigned URL must be signed with it."
                              : "A payload that is not signed (UNSIGNED-PAYLOAD) is accepted over "
                                "HTTPS only.");
    return std::string(claimed);
  }
  std::string actual = to_hex(as_text(sha256(call.body)));
  if (!claimed.empty() && claimed != actual)
    return mismatch("The provided 'x-amz-content-sha256' header does not match what was computed.");
  return actual;
}

// Names must be lower case, and Host must be among them. So must X-Amz-Target: it names the action,
// and unsigned it could be replaced by another.
Answer<std::vector<std::string_view>> signed_header_names(const HttpCall& call,
                                                          const Claim& claim) {
  std::vector<std::string_view> names = split(claim.signed_headers, ';');
  if (names.size() > kSignedHeadersMax)
    return incomplete(fmt::format("More than {} headers are signed.", kSignedHeadersMax));
  const auto has = [&](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  if (!has("host"))
    return mismatch("'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.");
  if (!call.header("X-Amz-Target").empty() && !has("x-amz-target"))
    return mismatch("'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization.");
  return names;
}

std::string scope_of(const SigningIdentity& identity, std::string_view timestamp) {
  return fmt::format("{}/{}/{}/{}", timestamp.substr(0, 8), identity.region, identity.service,
                     kTerminator);
}

// The signature of `call` over these header names, joined as in SignedHeaders.
std::string signature_of(const HttpCall& call, std::string_view query,
                         const std::vector<std::string_view>& names, const Sha256& key,
                         std::string_view timestamp, std::string_view scope,
                         std::string_view payload) {
  const std::string canonical = canonical_request(call, query, names, payload);
  return to_hex(as_text(hmac_sha256(as_text(key), string_to_sign(timestamp, scope, canonical))));
}

std::string payload_to_sign(const HttpCall& call) {
  const std::string_view given = trimmed(call.header(kPayloadHeader));
  return given.empty() ? to_hex(as_text(sha256(call.body))) : std::string(given);
}

// Sorted, lower case, without duplicates; `storage` owns the text.
std::vector<std::string_view> names_to_sign(const HttpCall& call,
                                            std::vector<std::string>& storage) {
  for (const auto& [name, value] : call.headers) storage.push_back(to_lower_ascii(name));
  std::ranges::sort(storage);
  storage.erase(std::ranges::unique(storage).begin(), storage.end());
  return {storage.begin(), storage.end()};
}

std::string joined(const std::vector<std::string_view>& names) {
  return fmt::format("{}", fmt::join(names, ";"));
}

bool is_presigned(const HttpCall& call) {
  return call.query().find("X-Amz-Signature=") != std::string_view::npos ||
         call.query().find("X-Amz-Algorithm=") != std::string_view::npos;
}

}  // namespace

bool is_signed(const HttpCall& call) {
  return !call.header("Authorization").empty() || is_presigned(call);
}

const Sha256& Verifier::signing_key(std::string_view secret, std::string_view access_key_id,
                                    std::string_view scope) {
  std::string id = fmt::format("{}/{}", access_key_id, scope);
  const auto found = keys_.find(id);
  if (found != keys_.end() && found->second.secret == secret) return found->second.key;
  // Scopes come from outside, so the cache is bounded. Clearing it costs little: entries are
  // outdated after a day anyway.
  if (keys_.size() >= kSigningKeysMax) keys_.clear();
  CachedKey derived{std::string(secret), derive_signing_key(secret, scope)};
  return keys_.insert_or_assign(std::move(id), std::move(derived)).first->second.key;
}

Answer<Signer> Verifier::verify(const HttpCall& call, const SignatureScope& scope, Instant now) {
  if (!is_signed(call))
    return refuse(ErrorCode::kMissingAuthenticationToken,
                  "Request is missing Authentication Token");
  const auto query = canonical_query(call.query());
  auto parameters = QueryParameters::parse(call.query(), "");
  if (!query || !parameters) return incomplete("The query of the URL is not percent-encoded.");
  auto claimed =
      call.header("Authorization").empty() ? claim_of_query(*parameters) : claim_of_header(call);
  if (!claimed) return std::unexpected(std::move(claimed).error());
  Claim& claim = *claimed;
  std::string written_date;
  if (auto good = take_credential_apart(claim); !good) return std::unexpected(good.error());
  if (auto good = take_date(call, claim, written_date); !good) return std::unexpected(good.error());

  const auto key = lookup_(claim.access_key_id);
  if (!key) return refuse(ErrorCode::kInvalidClientTokenId, std::string(kInvalidToken));
  if (auto good = check_token(claim, *key, now); !good) return std::unexpected(good.error());
  if (auto good = check_scope(claim, scope); !good) return std::unexpected(good.error());
  if (auto good = check_time(claim, now); !good) return std::unexpected(good.error());
  const auto names = signed_header_names(call, claim);
  if (!names) return std::unexpected(names.error());
  const auto payload = payload_hash(call, claim, scope);
  if (!payload) return std::unexpected(payload.error());

  const std::string expected =
      signature_of(call, *query, *names, signing_key(key->secret, claim.access_key_id, claim.scope),
                   claim.timestamp, claim.scope, *payload);
  if (!equal_in_constant_time(expected, claim.signature)) return mismatch();
  return Signer{std::string(claim.access_key_id), std::string(claim.region),
                std::string(claim.service), std::string(claim.session_token)};
}

OwnedHeaders sign(const HttpCall& call, const SigningIdentity& identity, Instant now) {
  OwnedHeaders added;
  const std::string timestamp = format_timestamp(now);
  added.emplace_back(kDateHeader, timestamp);
  if (!identity.session_token.empty()) added.emplace_back(kTokenHeader, identity.session_token);

  std::vector<HeaderView> headers(call.headers.begin(), call.headers.end());
  headers.insert(headers.end(), added.begin(), added.end());
  HttpCall whole = call;
  whole.headers = headers;
  std::vector<std::string> storage;
  const auto names = names_to_sign(whole, storage);
  const std::string scope = scope_of(identity, timestamp);
  const std::string signature = signature_of(whole, canonical_query(call.query()).value_or(""),
                                             names, derive_signing_key(identity.secret, scope),
                                             timestamp, scope, payload_to_sign(call));
  added.emplace_back("Authorization",
                     fmt::format("{} Credential={}/{}, SignedHeaders={}, Signature={}", kAlgorithm,
                                 identity.access_key_id, scope, joined(names), signature));
  return added;
}

std::string presign(const HttpCall& call, const SigningIdentity& identity, Instant now,
                    std::int64_t seconds) {
  const std::string timestamp = format_timestamp(now);
  const std::string scope = scope_of(identity, timestamp);
  std::vector<std::string> storage;
  const auto names = names_to_sign(call, storage);
  std::string query(call.query());
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!query.empty()) query += '&';
    query.append(name).append("=");
    append_percent_encoded(query, value);
  };
  add("X-Amz-Algorithm", kAlgorithm);
  add("X-Amz-Credential", fmt::format("{}/{}", identity.access_key_id, scope));
  add(kDateHeader, timestamp);
  add("X-Amz-Expires", std::to_string(seconds));
  add("X-Amz-SignedHeaders", joined(names));
  if (!identity.session_token.empty()) add(kTokenHeader, identity.session_token);
  const std::string signature = signature_of(call, canonical_query(query).value_or(""), names,
                                             derive_signing_key(identity.secret, scope), timestamp,
                                             scope, payload_to_sign(call));
  add(kSignatureParameter, signature);
  return fmt::format("{}?{}", call.path(), query);
}

}  // namespace stanchion::wire
