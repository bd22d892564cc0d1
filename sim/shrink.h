// Makes a world smaller that breaks a promise: without one kind of fault, feature or queue after
// the other, and with fewer requests, as long as the same promise breaks.
//
// Worlds are played in processes of their own, so that a check of ours that fails, which ends its
// process, is a failure like any other.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "sim/cuts.h"

namespace stanchion::sim {

struct Failing {
  Cuts cuts;
  int requests = 0;     // That were made until it failed.
  std::string failure;  // The sentence.
};

// Plays the world under `salts` salts, beginning with that of the cuts, until it fails in the same
// way: for a promise its name, for a check the whole line. An empty kind takes any failure.
std::optional<Failing> first_failing(std::uint64_t seed, Cuts cuts, std::uint64_t salts,
                                     const std::string& kind);

// Nothing if the world does not fail. Takes at most about so long.
std::optional<Failing> shrink(std::uint64_t seed, std::chrono::seconds most);

}  // namespace stanchion::sim
