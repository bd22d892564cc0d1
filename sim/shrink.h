// Shrinks a world that breaks a promise: removes one kind of fault, feature or queue after the
// other, and requests, as long as the same promise breaks.
//
// Worlds are played in separate processes, so that a failed check, which ends its process, is a
// failure like any other.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "sim/cuts.h"

namespace stanchion::sim {

struct Failing {
  Cuts cuts;
  int requests = 0;     // Made until it failed.
  std::string failure;  // The sentence.
};

// Plays the world under `salts` salts, beginning with that of the cuts, until it fails in the same
// way: for a promise, the same name; for a check, the same line. An empty kind accepts any failure.
std::optional<Failing> first_failing(std::uint64_t seed, Cuts cuts, std::uint64_t salts,
                                     const std::string& kind);

// nullopt if the world does not fail. Takes at most about this long.
std::optional<Failing> shrink(std::uint64_t seed, std::chrono::seconds most);

}  // namespace stanchion::sim
