// The canonical form of a call, from which Signature Version 4 is computed. Shared by verifying and
// signing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/time.h"
#include "wire/http_call.h"

namespace stanchion::wire {

inline constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
inline constexpr std::string_view kTerminator = "aws4_request";
inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";
inline constexpr std::string_view kDateHeader = "X-Amz-Date";
inline constexpr std::string_view kTokenHeader = "X-Amz-Security-Token";
inline constexpr std::string_view kPayloadHeader = "X-Amz-Content-Sha256";
inline constexpr std::string_view kSignatureParameter = "X-Amz-Signature";

// Encodes everything except A-Z a-z 0-9 - _ . ~ as %XX.
void append_percent_encoded(std::string& out, std::string_view text);

// The path without dot segments and doubled slashes, each segment percent-encoded once more.
std::string canonical_path(std::string_view path);

// The parameters except X-Amz-Signature, encoded, sorted, each with an equals sign. nullopt if the
// query is not percent-encoded properly.
std::optional<std::string> canonical_query(std::string_view query);

// `signed_headers` are lower-case names. A missing header has an empty value.
std::string canonical_request(const HttpCall& call, std::string_view query,
                              const std::vector<std::string_view>& signed_headers,
                              std::string_view payload_hash);

// `scope` is date/region/service/aws4_request.
std::string string_to_sign(std::string_view timestamp, std::string_view scope,
                           std::string_view canonical);

// REQUIRES: scope has four parts.
Sha256 derive_signing_key(std::string_view secret, std::string_view scope);

// YYYYMMDDTHHMMSSZ
std::string format_timestamp(Instant instant);
std::optional<Instant> parse_timestamp(std::string_view text);

// Sun, 06 Nov 1994 08:49:37 GMT
std::optional<Instant> parse_http_date(std::string_view text);

std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace stanchion::wire
