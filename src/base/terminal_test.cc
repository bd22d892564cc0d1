#include "base/terminal.h"

#include <gtest/gtest.h>

#include <string>

namespace stanchion {
namespace {

TEST(Terminal, ShowsWhatWasTypedWithoutHarm) {
  EXPECT_EQ(shown("--naïve"), "--naïve");
  EXPECT_EQ(shown("a\x1b[2J\n"), "a\\x1b[2J\\x0a");
  EXPECT_EQ(shown("\xff"), "\\xff");
  EXPECT_EQ(shown("\u009b2J\u202e"), "\\u009b2J\\u202e");
  EXPECT_EQ(shown(std::string(1000, 'x')), std::string(80, 'x') + "…");
  EXPECT_EQ(shown("é" + std::string(78, 'x') + "é" + "y"), "é" + std::string(78, 'x') + "…");
}

}  // namespace
}  // namespace stanchion
