// How often somebody may be wrong about a secret: so many failures at once, and then one at a time,
// for each address and for each access key. Who has failed too often is not listened to.
//
// Any thread may call. What is remembered has a bound; an entry is forgotten when its failures are.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace stanchion::console {

class SignInGuard {
 public:
  using Now = std::chrono::steady_clock::time_point;
  using Seconds = std::chrono::seconds;

  struct Limit {
    int at_once;
    Seconds forgiven_after;  // One failure, and then the next.
  };
  static constexpr Limit kPerAddress{10, Seconds(30)};
  // Others than the owner of a key may fail with it, so that it has to be more.
  static constexpr Limit kPerKey{50, Seconds(6)};
  static constexpr std::size_t kRemembered = 10'000;  // Addresses; and as many keys.

  // How long the caller has to wait before its next try is listened to; 0: it need not.
  Seconds wait_of_address(std::string_view address, Now now) const;
  // The limit of a key is for addresses with a failure, with whatever key, that is not forgiven yet.
  // So nobody who fails with the key of another locks out its owner.
  Seconds wait_of_key(std::string_view access_key_id, std::string_view address, Now now) const;

  // `access_key_id` is empty if there is no such key: then the address alone is to blame.
  void note_failure(std::string_view address, std::string_view access_key_id, Now now);

  // How many addresses, to be below the bound.
  std::size_t remembered() const;

 private:
  // When the last failure of each will be forgiven.
  struct Failures {
    std::map<std::string, Now> by_who;
    std::set<std::pair<Now, std::string>> by_time;  // The same.
  };
  static Seconds wait_of(const Failures& failures, const std::string& who, const Limit& limit,
                         Now now);
  static void add(Failures& failures, std::string who, const Limit& limit, Now now);

  mutable std::mutex mutex_;
  // Guarded by mutex_:
  Failures addresses_;
  Failures keys_;
};

// Whom an address stands for: of IPv6 a /64, because one client has all of it. An address of IPv4 that
// is written as one of IPv6 is that of IPv4.
std::string network_of(std::string_view address);

}  // namespace stanchion::console
