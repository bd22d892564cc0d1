#include "sim/shrink.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/check.h"
#include "base/text.h"
#include "sim/run.h"

namespace stanchion::sim {
namespace {

constexpr int kRequestsMax = 700;  // Of any plan.

constexpr std::string_view kCheckFailed = "stanchion: check failed: ";

// How a failure is recognized.
std::string kind_of(const std::string& failure) {
  return failure.substr(0, failure.find(failure.starts_with(kCheckFailed) ? '\n' : ':'));
}

// In the child: prints a line for each salt, and the failure, if there is one.
[[noreturn]] void play(std::uint64_t seed, Cuts cuts, std::uint64_t salts,
                       const std::string& kind) {
  name_seed_on_abort();
  for (; salts > 0; --salts, ++cuts.salt) {
    fmt::print(stderr, "salt {}\n", cuts.salt);
    const Outcome outcome = run_world(seed, false, cuts);
    if (!outcome.violation) continue;
    if (!kind.empty() && kind_of(*outcome.violation) != kind) continue;
    fmt::print(stderr, "failure {} {}", outcome.requests, *outcome.violation);
    break;
  }
  std::fflush(nullptr);
  std::_Exit(0);
}

// Everything that the child prints.
std::string output_of(std::uint64_t seed, const Cuts& cuts, std::uint64_t salts,
                      const std::string& kind) {
  std::array<int, 2> ends{};
  CHECK(::pipe(ends.data()) == 0, "there is a pipe to be had");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  CHECK(child >= 0, "there is a process to be had");
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    play(seed, cuts, salts, kind);
  }
  ::close(ends[1]);
  std::string output;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = ::read(ends[0], buffer.data(), buffer.size())) > 0;)
    output.append(buffer.data(), static_cast<std::size_t>(got));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return output;
}

// The number after the last occurrence of a word at the beginning of a line.
std::uint64_t number_behind(const std::string& text, std::string_view word) {
  const std::size_t at = text.rfind(word);
  if (at == std::string::npos) return 0;
  const std::size_t begin = at + word.size();
  return parse_decimal(text.substr(begin, text.find_first_of(" \n", begin) - begin)).value_or(0);
}

}  // namespace

std::optional<Failing> first_failing(std::uint64_t seed, Cuts cuts, std::uint64_t salts,
                                     const std::string& kind) {
  while (salts > 0) {
    const std::string output = output_of(seed, cuts, salts, kind);
    const std::uint64_t salt = number_behind(output, "salt ");
    const std::size_t broken = output.find("\nfailure ");
    const std::size_t died = output.find(kCheckFailed);
    if (broken == std::string::npos && died == std::string::npos) return std::nullopt;
    Failing found{cuts, 0, {}};
    found.cuts.salt = salt;
    if (broken != std::string::npos) {
      found.requests = static_cast<int>(number_behind(output, "failure "));
      found.failure = output.substr(output.find(' ', broken + 9) + 1);
      return found;
    }
    found.requests = cuts.requests.value_or(0);
    found.failure = output.substr(died, output.find('\n', died) - died);
    if (kind.empty() || found.failure == kind) return found;
    // The child died of something else: the salts after this one are left.
    salts -= salt + 1 - cuts.salt;
    cuts.salt = salt + 1;
  }
  return std::nullopt;
}

std::optional<Failing> shrink(std::uint64_t seed, std::chrono::seconds most) {
  const auto until = std::chrono::steady_clock::now() + most;
  auto best = first_failing(seed, {}, 1, "");
  if (!best) return std::nullopt;
  const std::string kind = kind_of(best->failure);
  // A process that died did not report how many requests it made.
  if (best->requests == 0) best->cuts.requests = kRequestsMax;
  std::uint64_t next_salt = 1;
  std::uint64_t salts = 0;
  // The salts that failed last are tried first.
  const auto take = [&](Cuts cuts) {
    if (std::chrono::steady_clock::now() >= until) return false;
    auto found = first_failing(seed, cuts, 1, kind);
    if (!found) {
      cuts.salt = next_salt;
      next_salt += salts;
      found = first_failing(seed, cuts, salts, kind);
    }
    if (!found) return false;
    best = std::move(found);
    return true;
  };
  const auto fewer_requests = [&] {
    if (best->requests > 0) best->cuts.requests = best->requests;
    bool fewer = false;
    for (const int eighths : {1, 2, 4, 6, 7}) {
      Cuts cuts = best->cuts;
      if (!cuts.requests) return fewer;
      cuts.requests = *cuts.requests * eighths / 8;
      if (!take(cuts)) continue;
      if (best->requests > 0) best->cuts.requests = best->requests;
      fewer = true;
      break;
    }
    return fewer;
  };
  // What failed once in a hundred worlds of this kind fails more often when they are smaller.
  for (salts = 16; std::chrono::steady_clock::now() < until && salts <= 4096; salts *= 4) {
    bool smaller = false;
    while (fewer_requests()) smaller = true;
    for (const std::string& name : Cuts::all()) {
      if (best->cuts.names.contains(name)) continue;
      Cuts cuts = best->cuts;
      cuts.names.insert(name);
      smaller |= take(cuts);
    }
    while (fewer_requests()) smaller = true;
    if (smaller) salts /= 4;
  }
  return best;
}

}  // namespace stanchion::sim
