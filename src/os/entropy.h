// The machine's random bytes: the only source of values that are not a function of inputs.
#pragma once

#include <cstdint>
#include <span>

namespace stanchion::os {

// Any thread may call fill(). The bytes are fit for keys and identifiers that nobody may guess.
class Entropy {
 public:
  virtual ~Entropy() = default;

  virtual void fill(std::span<std::uint8_t> bytes) = 0;

  std::uint64_t u64();
};

// getrandom(2). If the kernel cannot give random bytes, the process ends: no id or key that we hand
// out would be safe.
class SystemEntropy final : public Entropy {
 public:
  void fill(std::span<std::uint8_t> bytes) override;
};

}  // namespace stanchion::os
