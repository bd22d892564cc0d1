#include "monitoring/discarder.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>

namespace stanchion::monitoring {
namespace {

class ManualBackground final : public broker::Background {
 public:
  void run(broker::Work, broker::Task task) override { tasks.push_back(std::move(task)); }

  std::deque<broker::Task> tasks;
};

struct Noted {
  explicit Noted(int& count) : freed(count) {}
  ~Noted() { ++freed; }
  int& freed;
};

TEST(Discarder, FreesInTheBackground) {
  int freed = 0;
  ManualBackground background;
  Discarder discarder(background);
  auto shared = discarder.share(std::make_unique<Noted>(freed));
  auto other = shared;
  shared = nullptr;
  EXPECT_TRUE(background.tasks.empty());
  other = nullptr;
  ASSERT_EQ(background.tasks.size(), 1u);
  EXPECT_EQ(freed, 0);
  background.tasks.front()();
  background.tasks.clear();
  EXPECT_EQ(freed, 1);
}

TEST(Discarder, WhatOutlivesTheBackgroundIsFreedAtOnce) {
  int freed = 0;
  std::optional<ManualBackground> background(std::in_place);
  std::optional<Discarder> discarder(std::in_place, *background);
  auto first = discarder->share(std::make_unique<Noted>(freed));
  auto second = discarder->share(std::make_unique<Noted>(freed));
  discarder->stop();
  background.reset();
  first = nullptr;
  EXPECT_EQ(freed, 1);
  discarder.reset();
  second = nullptr;
  EXPECT_EQ(freed, 2);
}

}  // namespace
}  // namespace stanchion::monitoring
