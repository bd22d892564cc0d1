#include "base/time_text.h"

#include <gtest/gtest.h>

namespace stanchion {
namespace {

using namespace std::chrono_literals;

TEST(TimeText, SpansHaveTheTwoUnitsThatAPersonWouldUse) {
  EXPECT_EQ(format_span(0ms), "0.0 s");
  EXPECT_EQ(format_span(2'540ms), "2.5 s");
  EXPECT_EQ(format_span(-90s), "1 min 30 s");
  EXPECT_EQ(format_span(1h), "1 h");
  EXPECT_EQ(format_span(125min), "2 h 5 min");
  EXPECT_EQ(format_span(171h), "7 d 3 h");
}

}  // namespace
}  // namespace stanchion
