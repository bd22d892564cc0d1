// The machine's random bytes: the only place that is not a function of its input.
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

// getrandom(2). A kernel that cannot give random bytes ends the process: nothing that we hand out
// would be safe.
class SystemEntropy final : public Entropy {
 public:
  void fill(std::span<std::uint8_t> bytes) override;
};

}  // namespace stanchion::os
