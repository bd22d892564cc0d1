// Finds out who calls: verifies the signature against the key ring, or, while there is no key at
// all, takes every program as the default account. Pages in browsers are no programs.
//
// identify() is called on reactors; each uses its own verifier. set_keys() may come from any
// thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/error.h"
#include "net/http_message.h"
#include "os/clock.h"
#include "service/caller.h"
#include "service/key_ring.h"
#include "service/page_guard.h"
#include "wire/http_call.h"
#include "wire/sigv4.h"

namespace stanchion::service {

struct AuthenticatorOptions {
  std::string account = "000000000000";  // Of callers that nobody asks who they are.
  std::string region = "us-east-1";
  bool separate_regions = false;  // Each region a space of its own, by signature or host name.
  bool trust_forwarded =
      false;  // A proxy in front says with X-Forwarded-Proto what it was called by.
  PageGuard pages = PageGuard();  // Asked while there are no keys.
};

class Authenticator {
 public:
  Authenticator(AuthenticatorOptions options, std::size_t reactors, os::Clock& clock);

  void set_keys(std::shared_ptr<const KeyRing> keys);

  // Whether calls must be signed.
  bool has_keys() const { return has_keys_.load(std::memory_order_acquire); }

  Answer<Caller> identify(const wire::HttpCall& call, const net::HttpRequest& http,
                          std::size_t reactor);

  // What stands against a caller that was let in a while ago and still waits: its key may have been
  // taken away, changed or given to somebody else, or its time may be over. Any thread.
  std::optional<Error> recheck(const Caller& caller) const;

 private:
  std::string region_for(const wire::HttpCall& call, std::string_view signed_region) const;
  std::shared_ptr<const KeyRing> keys() const { return keys_.load(); }

  const AuthenticatorOptions options_;
  os::Clock& clock_;
  std::atomic<bool> has_keys_{false};  // Whether the ring has any, without taking hold of it.
  std::atomic<std::shared_ptr<const KeyRing>> keys_;
  std::vector<std::unique_ptr<wire::Verifier>> verifiers_;  // One per reactor.
};

// The region in the credential scope of an Authorization header or presigned query, verified or
// not; empty if there is none.
std::string claimed_region(const wire::HttpCall& call);

// "eu-west-1" of "sqs.eu-west-1.example.com:9324" and of the older "eu-west-1.queue.example.com";
// empty if the host has no such form.
std::string_view region_of_host(std::string_view host);

}  // namespace stanchion::service
