// Random bits for decisions: fetched from the operating system a few kilobytes at a time, because a
// system call per message would cost more than the message. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "engine/decision.h"
#include "os/entropy.h"

namespace stanchion::broker {

class EntropyPool {
 public:
  explicit EntropyPool(os::Entropy& source) : source_(source) {}

  engine::Entropy next() {
    if (used_ == pool_.size()) {
      source_.fill(pool_);
      used_ = 0;
    }
    engine::Entropy entropy;
    std::memcpy(&entropy, pool_.data() + used_, sizeof entropy);
    used_ += sizeof entropy;
    return entropy;
  }

 private:
  os::Entropy& source_;
  std::array<std::uint8_t, 4096> pool_{};
  std::size_t used_ = pool_.size();
  static_assert(sizeof(engine::Entropy) == 16 && 4096 % sizeof(engine::Entropy) == 0);
};

}  // namespace stanchion::broker
