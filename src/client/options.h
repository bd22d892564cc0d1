// The settings of a client. What is left empty comes from where the AWS SDKs take it.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "client/credentials.h"

namespace stanchion::client {

struct RetryOptions {
  int attempts_max = 4;  // The first one included; 1: nothing is repeated.
  // The n-th repetition waits for a random time between nothing and base × 2ⁿ⁻¹, at most `delay_max`.
  std::chrono::milliseconds delay_base{50};
  std::chrono::milliseconds throttled_delay_base{500};
  std::chrono::milliseconds delay_max{20'000};
  // Also repeats a send that may have happened and has no deduplication id: the message may then be
  // there twice, and CallInfo::may_be_duplicated says so. Without it such a send fails, with
  // Error::may_have_happened.
  bool repeat_ambiguous_sends = false;
};

struct TlsOptions {
  // False: whoever answers is taken for the server. For tests only.
  bool verify = true;
  // PEM: certificates to trust in place of the system's. Empty: $AWS_CA_BUNDLE, else the system's.
  std::string ca_file = {};
  // The name that the certificate must be for. Empty: the endpoint's.
  std::string server_name = {};
};

// Runs a completion on a loop of the caller's. It is called on the client's thread, must not run
// the task itself but pass it on, and outlives the client.
using Executor = std::function<void(std::function<void()> task)>;

struct Options {
  // "eu-central-1". Empty: $AWS_REGION, $AWS_DEFAULT_REGION, the profile's `region`.
  std::string region = {};
  // "http://127.0.0.1:9324", "https://…" or "unix:/path". Empty: $AWS_ENDPOINT_URL_SQS,
  // $AWS_ENDPOINT_URL, the profile's `endpoint_url`, else that of AWS in the region.
  std::string endpoint = {};
  // Empty: $AWS_PROFILE, else "default".
  std::string profile = {};
  // Empty: the standard chain. An endpoint on this machine for which the environment and the profile
  // have no credentials is called without a signature.
  CredentialsSource credentials = {};

  std::chrono::milliseconds connect_timeout{3'000};
  // From the beginning of an attempt to the end of its answer. A receive has the time that it may
  // wait for messages on top.
  std::chrono::milliseconds request_timeout{15'000};
  RetryOptions retry = {};
  TlsOptions tls = {};

  // Calls on the wire at the same time, each on a connection of its own. Long polls count.
  std::size_t connections_max = 64;
  // Calls in hand, those that wait for a connection included.
  std::size_t calls_max = 100'000;
  std::chrono::milliseconds idle_time{20'000};  // How long a connection is kept without use.

  bool verify_md5 = true;
  // Empty: completions run on the client's own thread.
  Executor executor = {};
  // Added to the User-Agent header: "billing/1.2".
  std::string user_agent = {};
};

}  // namespace stanchion::client
