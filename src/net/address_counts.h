// Counts connections per address. Any thread; used when a connection is accepted and when it
// closes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace stanchion::net {

// An IPv4 address, or the first half of an IPv6 address, because one client owns a whole /64. 0
// means no address, as for a Unix socket, and is not counted.
using Network = std::uint64_t;

class AddressCounts {
 public:
  // Returns the number of connections from the address, including this one.
  std::size_t add(Network network) {
    if (network == 0) return 0;
    const std::lock_guard lock(mutex_);
    return ++counts_[network];
  }

  void remove(Network network) {
    if (network == 0) return;
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(network);
    if (found != counts_.end() && --found->second == 0) counts_.erase(found);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<Network, std::size_t> counts_;
};

}  // namespace stanchion::net
