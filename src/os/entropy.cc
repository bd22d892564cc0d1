#include "os/entropy.h"

#include <sys/random.h>

#include <array>
#include <bit>
#include <cerrno>
#include <thread>

#include "base/check.h"

namespace stanchion::os {

std::uint64_t Entropy::u64() {
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  fill(bytes);
  return std::bit_cast<std::uint64_t>(bytes);
}

void SystemEntropy::fill(std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    // EAGAIN is meant for calls that do not want to block, which ours do. If it comes all the same,
    // from a filter of system calls perhaps, the next call may succeed.
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      std::this_thread::yield();
      continue;
    }
    CHECK(got > 0, "the kernel gives no random bytes");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace stanchion::os
