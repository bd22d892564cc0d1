#include "console/sign_in_guard.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

namespace stanchion::console {

std::string network_of(std::string_view address) {
  in6_addr parsed{};
  if (inet_pton(AF_INET6, std::string(address).c_str(), &parsed) != 1) return std::string(address);
  if (IN6_IS_ADDR_V4MAPPED(&parsed)) {
    char dotted[INET_ADDRSTRLEN];
    return inet_ntop(AF_INET, &parsed.s6_addr[12], dotted, sizeof dotted);
  }
  return {reinterpret_cast<const char*>(parsed.s6_addr), sizeof parsed.s6_addr / 2};
}

SignInGuard::Seconds SignInGuard::wait_of_address(std::string_view address, Now now) const {
  const std::string network = network_of(address);
  const std::lock_guard lock(mutex_);
  return wait_of(addresses_, network, kPerAddress, now);
}

SignInGuard::Seconds SignInGuard::wait_of_key(std::string_view access_key_id,
                                              std::string_view address, Now now) const {
  const std::string network = network_of(address);
  const std::lock_guard lock(mutex_);
  const auto failed = addresses_.by_who.find(network);
  if (failed == addresses_.by_who.end() || failed->second <= now) return Seconds(0);
  return wait_of(keys_, std::string(access_key_id), kPerKey, now);
}

void SignInGuard::note_failure(std::string_view address, std::string_view access_key_id, Now now) {
  const std::lock_guard lock(mutex_);
  add(addresses_, network_of(address), kPerAddress, now);
  if (!access_key_id.empty()) add(keys_, std::string(access_key_id), kPerKey, now);
}

std::size_t SignInGuard::remembered() const {
  const std::lock_guard lock(mutex_);
  return addresses_.by_who.size();
}

// Failures that are not forgiven yet take a while each; there may be `at_once` of them.
SignInGuard::Seconds SignInGuard::wait_of(const Failures& failures, const std::string& who,
                                          const Limit& limit, Now now) {
  const auto found = failures.by_who.find(who);
  if (found == failures.by_who.end()) return Seconds(0);
  const auto room_again = found->second - (limit.at_once - 1) * limit.forgiven_after;
  return std::max(Seconds(0), std::chrono::ceil<Seconds>(room_again - now));
}

void SignInGuard::add(Failures& failures, std::string who, const Limit& limit, Now now) {
  auto& [by_who, by_time] = failures;
  Now& forgiven = by_who[who];
  by_time.erase({forgiven, who});
  forgiven = std::max(forgiven, now) + limit.forgiven_after;
  by_time.emplace(forgiven, std::move(who));
  // Where there are too many, those go that will be forgiven first: they have failed least.
  while (by_time.begin()->first <= now || by_time.size() > kRemembered) {
    by_who.erase(by_time.begin()->second);
    by_time.erase(by_time.begin());
  }
}

}  // namespace stanchion::console
