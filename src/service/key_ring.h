// The accounts that may call and the keys with which they sign. Immutable: a rotation makes a new
// ring and swaps it in, so that a call sees one consistent state from beginning to end.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/time.h"
#include "wire/sigv4.h"

namespace stanchion::service {

struct KeyOwner {
  wire::AccessKey key;
  std::string account;
  std::string user;  // Empty: the account itself.
};

class KeyRing {
 public:
  // False if the access key id is already there.
  bool add(std::string access_key_id, KeyOwner owner) {
    return owners_.emplace(std::move(access_key_id), std::move(owner)).second;
  }

  const KeyOwner* find(std::string_view access_key_id) const {
    const auto found = owners_.find(std::string(access_key_id));
    return found == owners_.end() ? nullptr : &found->second;
  }

  bool empty() const { return owners_.empty(); }
  std::size_t size() const { return owners_.size(); }

 private:
  std::unordered_map<std::string, KeyOwner> owners_;
};

}  // namespace stanchion::service
