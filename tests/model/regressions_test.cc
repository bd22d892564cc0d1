// Sequences that once went wrong, as the shrinker left them.
#include <gtest/gtest.h>

#include "tests/model/player.h"

namespace stanchion::reference {
namespace {

using Kind = Operation::Kind;

constexpr int kPlain = 0;

void plays(std::vector<Operation> operations) {
  const Sequence sequence{.operations = std::move(operations)};
  const auto failure = Player(sequence).play();
  EXPECT_FALSE(failure) << sequence.describe() << *failure;
}

Operation create(int queue, std::vector<Setting> settings = {}) {
  return {.kind = Kind::kCreate, .queue = queue, .settings = std::move(settings)};
}
Operation send(int queue, Outgoing message) {
  return {.kind = Kind::kSend, .queue = queue, .messages = {message}};
}
Operation receive(int queue) {
  return {.kind = Kind::kReceive, .queue = queue};
}
Operation tick(std::int64_t millis) {
  return {.kind = Kind::kTick, .amount = millis};
}

// The lane of a tenant was dropped while its only message was delayed, and used when the message
// was due. A lane made in between is a second one of the same tenant, in the memory of the first.
TEST(Regression, TenantWhoseOnlyMessageIsDelayedKeepsItsLane) {
  plays({create(kPlain), send(kPlain, {.delay = 1, .group = 1}), tick(1'000), tick(0)});
  plays({create(kPlain), send(kPlain, {.delay = 1, .group = 1}), send(kPlain, {.group = 2}),
         send(kPlain, {.group = 1}), tick(1'000), receive(kPlain), receive(kPlain),
         receive(kPlain)});
  plays({create(kPlain), send(kPlain, {.body = 1, .delay = 1, .group = 1}),
         send(kPlain, {.body = 2, .delay = 1, .group = 2}), tick(1'000), receive(kPlain),
         receive(kPlain)});
}

}  // namespace
}  // namespace stanchion::reference
