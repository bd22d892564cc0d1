#include "client/credential_keeper.h"

#include <algorithm>
#include <utility>

namespace stanchion::client {
namespace {

using namespace std::chrono_literals;

// How long before their expiry credentials are fetched again, and how long after a failure.
constexpr Duration kEarly = 5min;
constexpr Duration kAgainAfter = 10s;
// Nothing is signed with credentials that could expire under way.
constexpr Duration kReserve = 10s;

Instant expiry_of(const Credentials& credentials) {
  if (!credentials.expires) return kNever;
  return Instant(std::chrono::duration_cast<Duration>(credentials.expires->time_since_epoch()));
}

}  // namespace

CredentialsSource static_credentials(Credentials credentials) {
  return [credentials = std::move(credentials)]() -> Outcome<Credentials> { return credentials; };
}

CredentialsSource anonymous_credentials() {
  return static_credentials({});
}

CredentialKeeper::CredentialKeeper(CredentialsSource source, Post post, Told told)
    : source_(std::move(source)), post_(std::move(post)), told_(std::move(told)) {}

void CredentialKeeper::stop() {
  if (thread_.joinable()) thread_.join();
}

bool CredentialKeeper::is_good(Instant now) const {
  return credentials_ && now < expiry_of(*credentials_) - kReserve;
}

const Credentials* CredentialKeeper::get(Instant now) {
  now_ = now;
  if (is_good(now)) {
    if (now >= next_fetch_) fetch();
    return &*credentials_;
  }
  awaited_ = true;
  fetch();
  return nullptr;
}

void CredentialKeeper::refuse(std::uint64_t generation) {
  if (generation == generation_) credentials_.reset();
}

void CredentialKeeper::fetch() {
  if (std::exchange(fetching_, true)) return;
  if (thread_.joinable()) thread_.join();  // It has posted its last result.
  thread_ = std::thread(
      [this] { post_([this, fetched = source_()]() mutable { take(std::move(fetched)); }); });
}

void CredentialKeeper::take(Outcome<Credentials> fetched) {
  fetching_ = false;
  if (fetched && now_ >= expiry_of(*fetched) - kReserve)
    fetched = Error{.code = code::kNoCredentials,
                    .message = "the credentials that were found have expired",
                    .fault = Fault::kLocal};
  if (fetched) {
    credentials_ = *fetched;
    ++generation_;
    const Instant expiry = expiry_of(*credentials_);
    next_fetch_ = expiry == kNever ? kNever : std::max(expiry - kEarly, now_ + kAgainAfter);
  } else {
    next_fetch_ = now_ + kAgainAfter;
  }
  if (!std::exchange(awaited_, false)) return;
  if (fetched) return told_(nullptr);
  told_(&fetched.error());
}

}  // namespace stanchion::client
