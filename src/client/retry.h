// What the end of an attempt means: which error it is, and whether and when the call is repeated.
//
// Pure: the answer, the settings and the random number are arguments.
#pragma once

#include <chrono>
#include <string_view>

#include "base/result.h"
#include "client/options.h"
#include "client/outcome.h"
#include "net/http_client.h"

namespace stanchion::client {

// Whether a request may be repeated although it may have been executed.
enum class Repetition {
  kHarmless,  // Repeating it has no further effect.
  kDoubles,   // A send without a deduplication id: it may arrive twice.
};

// REQUIRES: the status is not 200.
Error error_of(const net::ClientResponse& response);

// No complete answer came. `sent`: the request or a part of it may have reached the server.
Error error_of(const Failure& failure, bool sent);

// A failure of the client, before anything was sent.
Error local_error(const char* code, std::string message);

// Whether the credentials were refused: others may work.
bool refuses_credentials(const Error& error);

// Whether another attempt may succeed, and does no harm.
bool may_repeat(const Error& error, Repetition repetition, const RetryOptions& options);

// How long to wait before the next attempt, after `attempts` of them; `random` is from 0 to 1.
std::chrono::milliseconds delay_before_next(const Error& error, int attempts, double random,
                                            const RetryOptions& options);

}  // namespace stanchion::client
