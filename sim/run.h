// One world from beginning to end: clients and faults for a while, then a time without faults, then
// every queue is emptied and what comes out is compared with what must.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/auditor.h"
#include "sim/cuts.h"
#include "sim/server.h"

namespace stanchion::sim {

struct Outcome {
  std::uint64_t seed = 0;
  Cuts cuts;
  std::uint64_t hash = 0;  // Of everything that happened: equal for equal seeds.
  std::uint64_t requests = 0;
  std::uint64_t events = 0;
  Auditor::Statistics audit;
  Server::Statistics server;
  std::uint64_t clock_jumps = 0;
  std::optional<std::string> violation;
  std::vector<std::string> last_lines;  // Of the trace, if there is a violation.
};

Outcome run_world(std::uint64_t seed, bool verbose = false, const Cuts& cuts = {});

// What kind of world it is, for a person.
std::string describe_world(std::uint64_t seed, const Cuts& cuts);

// The numbers of many worlds.
struct Totals {
  std::uint64_t worlds = 0;
  Outcome sum;

  void add(const Outcome& outcome);
  std::string text() const;
};

// A violation as it is printed: the sentence, how to repeat it, and the last lines that name the
// message concerned.
std::string report(const Outcome& outcome);

// A failed check ends the process; this makes it print the seed, and how to see that world again.
void name_seed_on_abort();
// That is from now on this world; `options` are those of simulate.
void name_on_abort(std::uint64_t seed, std::string_view options);

}  // namespace stanchion::sim
