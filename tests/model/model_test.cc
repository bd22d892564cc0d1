// Random operations on the engine against the reference model.
//
// The seeds of the normal run are fixed. For a soak with fresh ones:
//
//   STANCHION_MODEL_SEED=$RANDOM STANCHION_MODEL_OPS=50000000 model_test
//
// A failure is printed as a minimal sequence of operations, one line each.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>

#include "tests/model/generator.h"
#include "tests/model/isolate.h"
#include "tests/model/player.h"
#include "tests/model/shrink.h"

namespace stanchion::reference {
namespace {

// Sanitizers make everything about ten times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kOperationsDefault = 100'000;
#else
constexpr std::uint64_t kOperationsDefault = 1'000'000;
#endif
constexpr std::uint64_t kOperationsForCoverage = 200'000;
constexpr int kShrinkBudget = 3'000;
// A sequence takes milliseconds; after this many seconds it is considered hung.
constexpr unsigned kPatience = 120;
constexpr unsigned kPatienceWhileShrinking = 10;
constexpr std::chrono::seconds kShrinkTimeMax{120};

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// A generator that no longer reaches what it should is as bad as no test.
std::optional<std::string> missing_coverage() {
  static constexpr std::uint64_t kTimesMin = 20;
  for (const char* what : {"a message expired",
                           "a new delay counts for waiting messages",
                           "a repetition was dropped",
                           "a message was received again",
                           "a message stayed because its dead-letter queue is gone",
                           "a newcomer was served",
                           "a fair queue chose",
                           "a receive attempt was repeated",
                           "a group went to the back of the line",
                           "a message was received though a later one was in flight",
                           "a message was deleted",
                           "a message was deleted with a stale receipt",
                           "a message was given back",
                           "a visibility timeout was changed",
                           "a visibility timeout was changed with an old receipt",
                           "a transfer was handed over again",
                           "a transfer was refused",
                           "a FIFO dead letter arrived",
                           "a dead letter arrived",
                           "a dead letter was handed out once more",
                           "a receive met more dead letters than one decision moves",
                           "a decision moved as many as one may",
                           "a FIFO message was brought back",
                           "a message was brought back",
                           "a move task completed",
                           "a move task was cancelled",
                           "a move task met a message without a source",
                           "a move task lost its destination",
                           "a restart",
                           "a checkpoint",
                           "messages left memory",
                           "a read from the store",
                           "a request waited for the store",
                           "a peek",
                           "a peek of some states",
                           "a peek that searched",
                           "a peek page by page",
                           "a chosen message was received",
                           "a chosen message was not the first",
                           "a chosen message could not be received",
                           "a chosen message was a dead letter",
                           "time passed in steps"})
    if (coverage()[what] < kTimesMin) return std::string("too rarely: ") + what;
  return std::nullopt;
}

struct Shape {
  int operations;
  int check_every;
};

void play_many(std::uint64_t first_seed, std::uint64_t operations, const Shape& shape) {
  const std::uint64_t sequences = operations / static_cast<std::uint64_t>(shape.operations) + 1;
  SharedNumber current;
  auto failure = isolated(
      [&]() -> std::optional<std::string> {
        for (*current = first_seed; *current < first_seed + sequences; ++*current) {
          live_on(kPatience);
          const Sequence sequence = generate(*current, shape.operations, shape.check_every);
          if (auto wrong = Player(sequence).play()) return wrong;
        }
        for (const auto& [what, times] : coverage()) std::cout << times << " × " << what << "\n";
        return operations < kOperationsForCoverage ? std::nullopt : missing_coverage();
      },
      kPatience);
  if (!failure) {
    std::cout << sequences * static_cast<std::uint64_t>(shape.operations) << " operations in "
              << sequences << " sequences from seed " << first_seed << std::endl;
    return;
  }

  if (*current == first_seed + sequences) {
    ADD_FAILURE() << *failure;
    return;
  }
  const auto play = [](const Sequence& sequence) {
    return isolated([&] { return Player(sequence).play(); }, kPatienceWhileShrinking);
  };
  const auto enough = std::chrono::steady_clock::now() + kShrinkTimeMax;
  const auto fails = [&](const Sequence& sequence) {
    return std::chrono::steady_clock::now() < enough && play(sequence).has_value();
  };
  Sequence sequence = generate(*current, shape.operations, 1);
  if (fails(sequence)) {
    sequence = shrink(std::move(sequence), fails, kShrinkBudget);
    failure = play(sequence);
  }
  ADD_FAILURE() << "seed " << *current << ", " << sequence.operations.size()
                << " operations after shrinking:\n\n"
                << sequence.describe() << "\n"
                << failure.value_or("");
}

std::uint64_t seed() {
  return from_environment("STANCHION_MODEL_SEED", 1) * 1'000'000'000;
}
std::uint64_t operations() {
  return from_environment("STANCHION_MODEL_OPS", kOperationsDefault);
}

TEST(Model, ShortSequencesDoWhatSqsDoes) {
  play_many(seed(), operations() * 5 / 10, {.operations = 60, .check_every = 1});
}

TEST(Model, MiddlingSequencesDoWhatSqsDoes) {
  play_many(seed() + 300'000'000, operations() * 3 / 10, {.operations = 400, .check_every = 10});
}

TEST(Model, LongSequencesDoWhatSqsDoes) {
  play_many(seed() + 600'000'000, operations() * 2 / 10, {.operations = 5'000, .check_every = 100});
}

}  // namespace
}  // namespace stanchion::reference
