// What an attempt's end means: which error it is, and whether and when the call is made again.
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

// Whether a request may be made again although it may have been done.
enum class Repetition {
  kHarmless,  // Done twice it does what it does once.
  kDoubles,   // A send without a deduplication id: it may be there twice.
};

// REQUIRES: the status is not 200.
Error error_of(const net::ClientResponse& response);

// No whole answer came. `sent`: the request or a part of it may have reached the server.
Error error_of(const Failure& failure, bool sent);

// A failure of ours, before anything was sent.
Error local_error(const char* code, std::string message);

// The credentials are what was refused: others may do.
bool refuses_credentials(const Error& error);

// Whether another attempt may come to something, and does no harm.
bool may_repeat(const Error& error, Repetition repetition, const RetryOptions& options);

// How long to wait before the next attempt, of which there have been `attempts`; `random` is from 0
// to 1.
std::chrono::milliseconds delay_before_next(const Error& error, int attempts, double random,
                                            const RetryOptions& options);

}  // namespace stanchion::client
