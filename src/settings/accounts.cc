#include "settings/accounts.h"

#include "base/check.h"

namespace stanchion::settings {

std::shared_ptr<const service::KeyRing> make_key_ring(const Settings& settings) {
  auto ring = std::make_shared<service::KeyRing>();
  for (const AccountSettings& account : settings.accounts) {
    for (const KeySettings& key : account.keys) {
      const bool added = ring->add(key.id, {.key = {key.secret, key.session_token, key.expires},
                                            .account = account.id,
                                            .user = key.user});
      CHECK(added, "the file was refused if a key is in it twice");
    }
  }
  return ring;
}

}  // namespace stanchion::settings
