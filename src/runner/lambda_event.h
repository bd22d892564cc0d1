// The event with which Lambda's event source mapping invokes a function for messages of SQS, and
// what the function's answer says about each message. Pure.
#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/http_client.h"
#include "worker/task.h"

namespace stanchion::runner {

// One element of "Records".
boost::json::object lambda_record(const worker::TaskInformation& task);

// The same with the body as JSON if it is JSON, for patterns.
boost::json::value record_for_filter(boost::json::object record);

std::string lambda_event(const std::vector<std::string>& records);

// The ids of the messages that failed, or why the invocation as a whole did. `partial`: the answer
// may name the messages that failed; otherwise any answer without an error counts as success.
Result<std::set<std::string>> failed_messages(const net::ClientResponse& response, bool partial,
                                              const std::set<std::string>& sent);

}  // namespace stanchion::runner
