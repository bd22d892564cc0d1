#include "base/nearest_word.h"

#include <gtest/gtest.h>

#include <string>

namespace stanchion {
namespace {

TEST(NearestWord, IsASlipAwayAndNoFurther) {
  EXPECT_EQ(nearest_word("memmory", {"listen", "memory"}), "memory");
  EXPECT_EQ(nearest_word("Listen", {"listen", "memory"}), "listen");
  EXPECT_EQ(nearest_word("kye", {"id", "key"}), "key");
  EXPECT_EQ(nearest_word("colour", {"listen", "memory"}), "");
  EXPECT_EQ(nearest_word(std::string(1000, 'x'), {"x"}), "");
}

}  // namespace
}  // namespace stanchion
