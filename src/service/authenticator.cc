#include "service/authenticator.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"
#include "base/text.h"
#include "service/forwarded.h"
#include "wire/query_parameters.h"

namespace stanchion::service {
namespace {

constexpr std::size_t kRegionSizeMax = 64;

bool is_region_name(std::string_view name) {
  return !name.empty() && name.size() <= kRegionSizeMax && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

// The third of the parts "key/date/region/service/aws4_request", which end at `end`.
std::string_view region_of_credential(std::string_view credential) {
  for (int part = 0; part < 2; ++part) {
    const std::size_t slash = credential.find('/');
    if (slash == std::string_view::npos) return {};
    credential.remove_prefix(slash + 1);
  }
  const std::string_view region = credential.substr(0, credential.find('/'));
  return is_region_name(region) ? region : std::string_view();
}

std::unexpected<Error> unknown_key() {
  return refuse(ErrorCode::kInvalidClientTokenId,
                "The security token included in the request is invalid.");
}

// A digest, so that no secret is kept for as long as a session lasts.
std::string fingerprint_of(const KeyOwner& owner) {
  std::string all;
  for (const std::string* part : {&owner.account, &owner.user, &owner.key.secret})
    all += fmt::format("{}:{}", part->size(), *part);
  if (owner.key.session_token) all += *owner.key.session_token;
  return std::string(as_text(sha256(all)));
}

// Null if the key is gone, has expired, or is not what it was when somebody signed in with it.
const KeyOwner* find_still(const KeyRing& ring, const SignedIn& who, Instant now) {
  const KeyOwner* owner = ring.find(who.access_key_id);
  if (owner == nullptr || now >= owner->key.expires || fingerprint_of(*owner) != who.fingerprint)
    return nullptr;
  return owner;
}

// Takes the part before the first dot, and the dot. Without a dot the rest is empty.
std::string_view take_label(std::string_view& host) {
  const std::string_view label = host.substr(0, host.find('.'));
  host.remove_prefix(std::min(label.size() + 1, host.size()));
  return label;
}

}  // namespace

std::string claimed_region(const wire::HttpCall& call) {
  static constexpr std::string_view kInHeader = "Credential=", kInQuery = "X-Amz-Credential=";
  const std::string_view authorization = call.header("Authorization");
  const std::size_t in_header = authorization.find(kInHeader);
  if (in_header != std::string_view::npos)
    return std::string(region_of_credential(authorization.substr(in_header + kInHeader.size())));
  const std::string_view query = call.query();
  const std::size_t in_query = query.find(kInQuery);
  if (in_query == std::string_view::npos) return {};
  const std::string_view encoded = query.substr(in_query + kInQuery.size());
  const auto credential = wire::percent_decode(encoded.substr(0, encoded.find('&')), true);
  return std::string(region_of_credential(credential.value_or("")));
}

std::string_view region_of_host(std::string_view host) {
  const std::string_view first = take_label(host);
  const std::string_view second = take_label(host);
  if (host.empty()) return {};
  const std::string_view region = first == "sqs" ? second : second == "queue" ? first : "";
  return is_region_name(region) && region.find('-') != std::string_view::npos ? region
                                                                              : std::string_view();
}

Authenticator::Authenticator(AuthenticatorOptions options, std::size_t reactors, os::Clock& clock)
    : options_(std::move(options)), clock_(clock), keys_(std::make_shared<KeyRing>()) {
  for (std::size_t i = 0; i < reactors; ++i) {
    verifiers_.push_back(std::make_unique<wire::Verifier>(
        [this](std::string_view id) -> std::optional<wire::AccessKey> {
          const auto ring = keys();
          const KeyOwner* owner = ring->find(id);
          return owner == nullptr ? std::nullopt : std::optional(owner->key);
        }));
  }
}

void Authenticator::set_keys(std::shared_ptr<const KeyRing> keys) {
  const bool any = !keys->empty();
  keys_.store(std::move(keys));
  has_keys_.store(any);
}

std::string Authenticator::region_for(const wire::HttpCall& call,
                                      std::string_view signed_region) const {
  if (!options_.separate_regions) return options_.region;
  const std::string_view by_host = region_of_host(call.header("Host"));
  if (!by_host.empty()) return std::string(by_host);
  return signed_region.empty() ? options_.region : std::string(signed_region);
}

std::optional<Error> Authenticator::identify(const wire::HttpCall& call,
                                             const net::HttpRequest& http, std::size_t reactor,
                                             Caller& caller, std::string_view service) {
  // For a caller to whom no policy applies, only what its queues and messages need is recorded.
  if (!has_keys()) {
    if (auto error = options_.pages.check_call(call)) return error;
    caller.account = options_.account;
    caller.sender_id = options_.account;
    caller.region =
        options_.separate_regions ? region_for(call, claimed_region(call)) : options_.region;
    return std::nullopt;
  }
  caller.keys = keys();
  caller.source_ip = http.peer.address;
  caller.secure = http.peer.tls;
  caller.user_agent = call.header("User-Agent");
  caller.referer = call.header("Referer");
  const bool behind_tls =
      http.peer.tls || (options_.trust_forwarded && forwarded_scheme(http) == "https");
  const wire::SignatureScope scope{
      .region = {}, .service = service, .unsigned_payload = behind_tls};
  auto signer = verifiers_[reactor]->verify(call, scope, clock_.now());
  if (!signer) return signer.error();
  const KeyOwner* owner = caller.keys->find(signer->access_key_id);
  // The key existed a moment ago: it was removed between the two lookups.
  if (owner == nullptr) return unknown_key().error();
  caller.region = region_for(call, signer->region);
  fill_in(caller, *owner, std::move(signer->access_key_id));
  return std::nullopt;
}

void Authenticator::fill_in(Caller& caller, const KeyOwner& owner, std::string access_key_id) {
  caller.verified = true;
  caller.account = owner.account;
  caller.user = owner.user;
  caller.arn = owner.user.empty()
                   ? fmt::format("arn:aws:iam::{}:root", owner.account)
                   : fmt::format("arn:aws:iam::{}:user/{}", owner.account, owner.user);
  caller.sender_id = owner.user.empty() ? owner.account : access_key_id;
  caller.access_key_id = std::move(access_key_id);
}

Caller Authenticator::caller_without_key() const {
  Caller caller;
  caller.account = options_.account;
  caller.sender_id = options_.account;
  caller.region = options_.region;
  return caller;
}

std::optional<Caller> Authenticator::caller_of(const SignedIn& who,
                                               const net::HttpRequest& http) const {
  Caller caller;
  caller.keys = keys();
  const KeyOwner* owner = find_still(*caller.keys, who, clock_.now());
  if (owner == nullptr) return std::nullopt;
  caller.source_ip = http.peer.address;
  caller.secure = http.peer.tls;
  caller.user_agent = http.header("User-Agent").value_or("");
  caller.referer = http.header("Referer").value_or("");
  caller.region = options_.region;
  fill_in(caller, *owner, who.access_key_id);
  return caller;
}

std::optional<SignedIn> Authenticator::sign_in(std::string_view access_key_id,
                                               std::string_view secret) const {
  const auto ring = keys();
  const KeyOwner* owner = ring->find(access_key_id);
  if (owner == nullptr || owner->key.session_token || clock_.now() >= owner->key.expires ||
      !equal_in_constant_time(owner->key.secret, secret))
    return std::nullopt;
  return SignedIn{std::string(access_key_id), owner->account, fingerprint_of(*owner)};
}

std::string Authenticator::describe_failure(std::string_view access_key_id) const {
  const auto ring = keys();
  const KeyOwner* owner = ring->find(access_key_id);
  if (owner == nullptr) return "an access key that does not exist";
  if (owner->key.session_token)
    return fmt::format("the access key {}, which has a session token", access_key_id);
  if (clock_.now() >= owner->key.expires)
    return fmt::format("the access key {}, which has expired", access_key_id);
  return fmt::format("a wrong secret for the access key {}", access_key_id);
}

bool Authenticator::is_still(const SignedIn& who) const {
  return find_still(*keys(), who, clock_.now()) != nullptr;
}

std::optional<Error> Authenticator::recheck(const Caller& caller) const {
  const auto ring = keys();
  const KeyOwner& then = caller.key();
  const KeyOwner* now = ring == caller.keys ? &then : ring->find(caller.access_key_id);
  const bool same = now != nullptr && now->account == then.account && now->user == then.user &&
                    now->key.secret == then.key.secret &&
                    now->key.session_token == then.key.session_token;
  if (!same) return unknown_key().error();
  if (clock_.now() >= now->key.expires)
    return Error{ErrorCode::kExpiredToken, "The security token included in the request is expired"};
  return std::nullopt;
}

}  // namespace stanchion::service
