// Decodes an HTTP call of CloudWatch: AWS Query, AWS JSON 1.0 or RPC v2 CBOR.
#pragma once

#include <optional>
#include <string_view>

#include "model/cloudwatch.h"
#include "model/error.h"
#include "wire/http_call.h"

namespace stanchion::wire {

enum class CloudwatchProtocol { kQuery, kJson, kCbor };

inline constexpr std::string_view kCloudwatchTarget = "GraniteServiceVersion20100801.";
inline constexpr std::string_view kCloudwatchPath =
    "/service/GraniteServiceVersion20100801/operation/";

// Whether a call of the Query protocol is meant for CloudWatch: by its version, or by the service
// that it was signed for. `url` has the query.
bool is_cloudwatch_query(std::string_view url, std::string_view authorization,
                         std::string_view body);

// The protocol, if a call is meant for CloudWatch; header(name) is the value of a header, or empty.
// Costs calls of SQS little more than looking for one header.
template <class Header>
std::optional<CloudwatchProtocol> detect_cloudwatch(std::string_view url, const Header& header,
                                                    std::string_view body) {
  if (url.starts_with(kCloudwatchPath)) return CloudwatchProtocol::kCbor;
  const std::string_view target = header("X-Amz-Target");
  if (target.starts_with(kCloudwatchTarget)) return CloudwatchProtocol::kJson;
  if (!target.empty() || !is_cloudwatch_query(url, header("Authorization"), body))
    return std::nullopt;
  return CloudwatchProtocol::kQuery;
}

Answer<cloudwatch::Request> decode_cloudwatch(const HttpCall& call, CloudwatchProtocol protocol);

// The name of the action that the call asks for, known or not; empty if it names none.
std::string cloudwatch_action(const HttpCall& call, CloudwatchProtocol protocol);

}  // namespace stanchion::wire
