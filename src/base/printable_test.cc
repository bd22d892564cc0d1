#include "base/printable.h"

#include <gtest/gtest.h>

namespace stanchion {
namespace {

TEST(Printable, ShowsEveryScriptAsItIs) {
  for (const char* text : {"", "plain", "naïve", "日本語", "שלום", "𝄞 and €"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, ATerminalIsNotGivenCommands) {
  EXPECT_EQ(printable("a\x1b[2J\x07\n\x7f"), "a\\x1b[2J\\x07\\x0a\\x7f");
  // CSI and OSC of eight bits, in UTF-8, and the first and last of their kind.
  EXPECT_EQ(printable("\u009b2J \u009d0;t \u0080\u009f\u00a0"),
            "\\u009b2J \\u009d0;t \\u0080\\u009f\u00a0");
}

TEST(Printable, TheDirectionOfTextCannotBeTurned) {
  EXPECT_EQ(printable("a\u202eb\u2066c\u2069d\u061ce\u200ef\u200fg"),
            "a\\u202eb\\u2066c\\u2069d\\u061ce\\u200ef\\u200fg");
  EXPECT_EQ(printable("\u2027\u2028\u202a\u202f\u2065\u206a"),
            "\u2027\\u2028\\u202a\u202f\u2065\u206a");
}

TEST(Printable, BytesThatAreNotUtf8AreEachEscaped) {
  EXPECT_EQ(printable("é\xff\xc3"), "é\\xff\\xc3");
  EXPECT_EQ(printable("\xe2\x80"), "\\xe2\\x80");
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "\\x00x");
}

TEST(Printable, LinesStayIfTheyMay) {
  EXPECT_EQ(printable_lines("a\n\x1b\u009b\nb"), "a\n\\x1b\\u009b\nb");
}

TEST(Printable, JsonStaysTheSameDocument) {
  EXPECT_EQ(printable_json("{\"a\":\"\u009b\u202e é\x7f\"}\n"),
            "{\"a\":\"\\u009b\\u202e é\\u007f\"}\n");
}

}  // namespace
}  // namespace stanchion
