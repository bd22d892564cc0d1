// Encodes results and errors of CloudWatch in the protocol of the call.
#pragma once

#include <string>
#include <string_view>

#include "model/cloudwatch.h"
#include "model/error.h"
#include "wire/cloudwatch_decode.h"
#include "wire/http_call.h"

namespace stanchion::wire {

// What an answer in RPC v2 CBOR has to carry besides.
inline constexpr std::string_view kSmithyProtocolHeader = "smithy-protocol";
inline constexpr std::string_view kSmithyCbor = "rpc-v2-cbor";

HttpAnswer encode_cloudwatch(const cloudwatch::Result& result, std::string_view action,
                             CloudwatchProtocol protocol, std::string_view request_id);

HttpAnswer encode_cloudwatch_error(const Error& error, CloudwatchProtocol protocol,
                                   std::string_view request_id);

}  // namespace stanchion::wire
