// Runs simulated worlds: one of them readably, or one after the other until a promise breaks.
//
//   simulate --seed N [--verbose]
//   simulate --soak [--seconds N] [--from SEED]
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/text.h"
#include "os/entropy.h"
#include "sim/run.h"

namespace stanchion::sim {
namespace {

constexpr int kBroken = 1;
constexpr int kWrongUsage = 2;

struct Wishes {
  std::optional<std::uint64_t> seed;
  std::optional<std::uint64_t> from;
  std::uint64_t seconds = ~std::uint64_t{0};
  bool soak = false;
  bool verbose = false;
};

std::optional<Wishes> parse(int argc, char** argv) {
  Wishes wishes;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--soak") {
      wishes.soak = true;
    } else if (word == "--verbose") {
      wishes.verbose = true;
    } else if ((word == "--seed" || word == "--seconds" || word == "--from") && i + 1 < argc) {
      const auto number = parse_decimal(argv[++i]);
      if (!number) return std::nullopt;
      if (word == "--seed") wishes.seed = number;
      if (word == "--from") wishes.from = number;
      if (word == "--seconds") wishes.seconds = *number;
    } else {
      return std::nullopt;
    }
  }
  if (wishes.soak == wishes.seed.has_value()) return std::nullopt;
  return wishes;
}

int run_one(const Wishes& wishes) {
  const Outcome outcome = run_world(*wishes.seed, wishes.verbose);
  Totals totals;
  totals.add(outcome);
  fmt::print("{}\nhash {:016x}\n", totals.text(), outcome.hash);
  if (!outcome.violation) return 0;
  fmt::print("{}", report(outcome));
  return kBroken;
}

int soak(const Wishes& wishes) {
  using Clock = std::chrono::steady_clock;
  os::SystemEntropy entropy;
  std::uint64_t seed = wishes.from.value_or(entropy.u64() >> 16);
  const auto begin = Clock::now();
  auto shown = begin;
  Totals totals;
  const auto seconds_since = [](Clock::time_point then) {
    return std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - then).count();
  };
  while (static_cast<std::uint64_t>(seconds_since(begin)) < wishes.seconds) {
    const Outcome outcome = run_world(seed++);
    totals.add(outcome);
    if (outcome.violation) {
      fmt::print("{}\n{}", totals.text(), report(outcome));
      return kBroken;
    }
    if (seconds_since(shown) < 5) continue;
    shown = Clock::now();
    fmt::print("{} s: {} worlds, {} requests, {} power cuts, last seed {}\n", seconds_since(begin),
               totals.worlds, totals.sum.requests, totals.sum.server.crashes, seed - 1);
    std::fflush(stdout);
  }
  fmt::print("{}\n", totals.text());
  return 0;
}

}  // namespace
}  // namespace stanchion::sim

int main(int argc, char** argv) {
  using namespace stanchion::sim;
  const auto wishes = parse(argc, argv);
  if (!wishes) {
    std::fputs(
        "usage: simulate --seed N [--verbose]\n"
        "       simulate --soak [--seconds N] [--from SEED]\n",
        stderr);
    return kWrongUsage;
  }
  name_seed_on_abort();
  return wishes->soak ? soak(*wishes) : run_one(*wishes);
}
