// Finds out who calls: verifies the signature against the key ring, or, while there is no key at
// all, treats every program as the default account. Web pages in browsers do not count as programs.
//
// identify() is called on reactors; each uses its own verifier. Any thread may call set_keys().
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
  std::string account = "000000000000";  // The account of callers while there are no keys.
  std::string region = "us-east-1";
  bool separate_regions = false;  // Each region is a namespace, by signature or host name.
  bool trust_forwarded = false;   // A proxy reports the scheme of the call by X-Forwarded-Proto.
  PageGuard pages = PageGuard();  // Used while there are no keys.
};

// An access key as it was when somebody signed in with it.
struct SignedIn {
  std::string access_key_id;
  std::string account;
  // Of everything that makes the key what it is: its owner, its user and its secret.
  std::string fingerprint;

  friend bool operator==(const SignedIn&, const SignedIn&) = default;
};

class Authenticator {
 public:
  Authenticator(AuthenticatorOptions options, std::size_t reactors, os::Clock& clock);

  void set_keys(std::shared_ptr<const KeyRing> keys);

  // The ring as it is now. Any thread.
  std::shared_ptr<const KeyRing> keys() const { return keys_.load(); }

  // Whether calls must be signed.
  bool has_keys() const { return has_keys_.load(std::memory_order_acquire); }

  // Fills in `caller`, or says why the call is refused. (A Caller has eight strings: returning it
  // took 2 % of the instructions of a send.)
  std::optional<Error> identify(const wire::HttpCall& call, const net::HttpRequest& http,
                                std::size_t reactor, Caller& caller,
                                std::string_view service = "sqs");

  // For the console, which finds out by itself who calls: the caller while there are no keys, and
  // whoever signed in. Nullopt if the key is gone, has expired, or is no longer what it was then.
  Caller caller_without_key() const;
  std::optional<Caller> caller_of(const SignedIn& who, const net::HttpRequest& http) const;
  // Nullopt unless this is the secret of a key that can sign in: one without a session token.
  std::optional<SignedIn> sign_in(std::string_view access_key_id, std::string_view secret) const;
  // With what somebody failed to sign in, for the log; names no id that does not exist, because it
  // may be a secret in the wrong field.
  std::string describe_failure(std::string_view access_key_id) const;
  // Whether the key is still what it was, and has not expired.
  bool is_still(const SignedIn& who) const;

  // Why a caller that was let in a while ago, and still waits, must be refused now: its key may
  // have been removed, changed or given to somebody else, or it may have expired. Any thread.
  std::optional<Error> recheck(const Caller& caller) const;

 private:
  std::string region_for(const wire::HttpCall& call, std::string_view signed_region) const;
  static void fill_in(Caller& caller, const KeyOwner& owner, std::string access_key_id);

  const AuthenticatorOptions options_;
  os::Clock& clock_;
  std::atomic<bool> has_keys_{false};  // Whether the ring has any keys, without locking it.
  std::atomic<std::shared_ptr<const KeyRing>> keys_;
  std::vector<std::unique_ptr<wire::Verifier>> verifiers_;  // One per reactor.
};

// The region in the credential scope of an Authorization header or presigned query, verified or
// not; empty if there is none.
std::string claimed_region(const wire::HttpCall& call);

// "eu-west-1" from "sqs.eu-west-1.example.com:9324" and from the older
// "eu-west-1.queue.example.com"; empty if the host has neither form.
std::string_view region_of_host(std::string_view host);

}  // namespace stanchion::service
