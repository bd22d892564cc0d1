#include "console/sessions.h"

#include <array>
#include <utility>

#include "base/digest.h"
#include "base/text.h"

namespace stanchion::console {
namespace {

constexpr std::size_t kTokenBytes = 32;

std::string key_of(std::string_view token) {
  return std::string(as_text(sha256(token)));
}

}  // namespace

std::string ConsoleSessions::begin(service::SignedIn who, Now now) {
  std::array<std::uint8_t, kTokenBytes> bytes{};
  entropy_.fill(bytes);
  std::string token = to_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const std::lock_guard lock(mutex_);
  std::erase_if(sessions_, [&](const auto& entry) { return entry.second.ends <= now; });
  std::size_t count = 0;
  auto first = sessions_.end();
  for (auto it = sessions_.begin(); it != sessions_.end(); ++it) {
    if (it->second.who.account != who.account) continue;
    ++count;
    if (first == sessions_.end() || it->second.ends < first->second.ends) first = it;
  }
  if (count >= kPerAccountMax) sessions_.erase(first);
  sessions_[key_of(token)] = {std::move(who), now + kLasts};
  return token;
}

std::optional<service::SignedIn> ConsoleSessions::find(std::string_view token, Now now) {
  const std::string key = key_of(token);
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(key);
  if (found == sessions_.end() || found->second.ends <= now) return std::nullopt;
  return found->second.who;
}

void ConsoleSessions::end(std::string_view token) {
  const std::string key = key_of(token);
  const std::lock_guard lock(mutex_);
  sessions_.erase(key);
}

}  // namespace stanchion::console
