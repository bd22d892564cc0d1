// The memory that queues take before anything is in them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/engine_test_kit.h"

namespace stanchion::engine {
namespace {

TEST(QueueSettings, TakeTheMemoryOfTheirTexts) {
  TestWorld world;
  const QueueRef queue = TestWorld::ref("q");
  ASSERT_TRUE(world.ask(CreateQueue{queue, {}, {}}));
  const std::size_t empty = world.engine().find(queue)->settings_bytes();
  EXPECT_GT(empty, 1'500U);
  EXPECT_LT(empty, 2'500U);
  std::string smile;
  for (int i = 0; i < 256; ++i) smile += "\xF0\x9F\x98\x80";
  StringMap tags;
  for (int i = 0; i < 50; ++i) tags.emplace(fmt::format("tag-{}", i), smile);
  ASSERT_TRUE(world.ask(TagQueue{queue, tags}));
  EXPECT_GT(world.engine().find(queue)->settings_bytes(), empty + 50 * 1'024);
  EXPECT_LT(world.engine().find(queue)->settings_bytes(), empty + 50 * 1'200);
}

}  // namespace
}  // namespace stanchion::engine
