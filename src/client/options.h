// The settings of a client. Empty ones are taken from the same places as in the AWS SDKs.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "client/credentials.h"

namespace stanchion::client {

struct RetryOptions {
  int attempts_max = 4;  // Including the first one; 1: nothing is repeated.
  // The n-th repetition waits for a random time between nothing and base × 2ⁿ⁻¹, at most `delay_max`.
  std::chrono::milliseconds delay_base{50};
  std::chrono::milliseconds throttled_delay_base{500};
  std::chrono::milliseconds delay_max{20'000};
  // Also repeats a send that may have succeeded and has no deduplication id: the message may then
  // be sent twice, and CallInfo::may_be_duplicated says so. Without this option such a send fails,
  // with Error::may_have_happened.
  bool repeat_ambiguous_sends = false;
};

struct TlsOptions {
  // False: whoever answers is accepted as the server. For tests only.
  bool verify = true;
  // PEM: certificates to trust instead of the system's. Empty: $AWS_CA_BUNDLE, else the system's.
  std::string ca_file = {};
  // The name that the certificate must be for. Empty: the endpoint's.
  std::string server_name = {};
};

// Runs a completion on a loop of the caller's. It is called on the client's thread, must not run
// the task itself but pass it on, and must outlive the client.
using Executor = std::function<void(std::function<void()> task)>;

struct Options {
  // "eu-central-1". Empty: $AWS_REGION, $AWS_DEFAULT_REGION, the profile's `region`.
  std::string region = {};
  // "http://127.0.0.1:9324", "https://…" or "unix:/path". Empty: $AWS_ENDPOINT_URL_SQS,
  // $AWS_ENDPOINT_URL, the profile's `endpoint_url`, else AWS's endpoint of the region.
  std::string endpoint = {};
  // Empty: $AWS_PROFILE, else "default".
  std::string profile = {};
  // Empty: the standard chain. An endpoint on this machine for which the environment and the profile
  // have no credentials is called without a signature.
  CredentialsSource credentials = {};

  std::chrono::milliseconds connect_timeout{3'000};
  // From the beginning of an attempt to the end of its answer. For a receive, the time that it may
  // wait for messages is added.
  std::chrono::milliseconds request_timeout{15'000};
  RetryOptions retry = {};
  TlsOptions tls = {};

  // Calls on the wire at the same time, each on its own connection. Long polls count.
  std::size_t connections_max = 64;
  // Calls that have not ended, including those that wait for a connection.
  std::size_t calls_max = 100'000;
  std::chrono::milliseconds idle_time{20'000};  // How long an unused connection is kept.

  bool verify_md5 = true;
  // Empty: completions run on the client's own thread.
  Executor executor = {};
  // Added to the User-Agent header: "billing/1.2".
  std::string user_agent = {};
};

// For a program that knows a queue's URL and no endpoint: if neither the options nor the
// environment name an endpoint, it is the server in the URL, and the region the one that an AWS URL
// names. An invalid URL changes nothing.
Options with_endpoint_of_queue(Options options, const std::string& queue_url);

}  // namespace stanchion::client
