#include "cli/page_tokens.h"

#include <gtest/gtest.h>

namespace stanchion::cli {
namespace {

// The number of pages until a repetition is noticed, if `lead` tokens are followed by a cycle.
int pages_until_noticed(int lead, int cycle, int most) {
  PageTokens tokens;
  for (int page = 0; page < most; ++page) {
    const int token = page < lead ? page : lead + (page - lead) % cycle;
    if (tokens.repeats(std::to_string(token))) return page;
  }
  return -1;
}

TEST(PageTokens, ACycleOfAnyLengthIsNoticed) {
  EXPECT_EQ(pages_until_noticed(0, 1, 10), 1);
  for (int lead = 0; lead < 50; ++lead)
    for (int cycle = 1; cycle < 50; ++cycle) {
      const int noticed = pages_until_noticed(lead, cycle, 10'000);
      EXPECT_GE(noticed, lead + cycle);
      EXPECT_LE(noticed, 3 * (lead + cycle));
    }
}

TEST(PageTokens, PagesThatAllDifferAreFollowedToTheirEnd) {
  EXPECT_EQ(pages_until_noticed(100'000, 1, 100'000), -1);
}

TEST(PageTokens, EmptyPagesAreFollowedSoFarAndNotForEver) {
  PageTokens tokens;
  int token = 0;
  const auto next = [&](std::size_t items) {
    return tokens.endless(std::to_string(++token), items);
  };
  for (int round = 0; round < 2; ++round) {
    for (std::size_t page = 1; page < PageTokens::kEmptyMax; ++page) ASSERT_EQ(next(0), "");
    EXPECT_EQ(next(1), "") << "something was found, so that counting begins anew";
  }
  for (std::size_t page = 1; page < PageTokens::kEmptyMax; ++page) ASSERT_EQ(next(0), "");
  EXPECT_EQ(next(0), "the server gave 100000 pages in a row with nothing on them");
}

}  // namespace
}  // namespace stanchion::cli
