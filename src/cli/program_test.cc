#include "cli/program.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/exit_codes.h"
#include "cli/completion.h"
#include "cli/manual.h"

namespace stanchion::cli {
namespace {

// A program with one command that has every kind of flag.
struct Kit {
  Kit() : program({"1.2.3", "commit none\n"}) {
    Command command = program.add("juggle", "Keep things in the air", [this] {
      ++runs;
      return kExitOk;
    });
    command.option("DIR", directory, "Where they lie").required();
    command.option("--count", count, "How many; 'as many' as [you: like]")
        .with_default()
        .value("NUMBER");
    command.option("--with", with, "What").value("balls|clubs");
    command.flag("--fast", fast, "Quickly");
    command.notes(".dots begin this line, which goes on\nuntil here.\nExample:\n  stanchion \\ -x");
    program.add("rest", "Do nothing", [] { return kExitFailed; });
  }

  int run(std::vector<std::string> words) {
    words.insert(words.begin(), "stanchion");
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    return program.run(static_cast<int>(pointers.size()), pointers.data());
  }

  CommandText juggle() { return program.text().commands.at(0); }

  std::string directory;
  std::string with;
  int count = 3;
  bool fast = false;
  int runs = 0;
  Program program;
};

TEST(Program, RunsTheCommandThatIsNamedAndGivesItsStatus) {
  Kit kit;
  EXPECT_EQ(kit.run({"juggle", "--count", "5", "--fast", "here"}), kExitOk);
  EXPECT_EQ(kit.runs, 1);
  EXPECT_EQ(kit.directory, "here");
  EXPECT_EQ(kit.count, 5);
  EXPECT_TRUE(kit.fast);
  EXPECT_EQ(Kit().run({"rest"}), kExitFailed);
}

TEST(Program, RunsNothingIfTheCommandLineIsWrong) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {"jugle"},
                                                {"juggle"},
                                                {"juggle", "a", "b"},
                                                {"--fast", "juggle", "a"},
                                                {"juggle", "a", "--fats"},
                                                {"juggle", "a", "--count", "x"},
                                                {"juggle", "a", "--count"}}) {
    Kit kit;
    EXPECT_EQ(kit.run(words), kExitSettings);
    EXPECT_EQ(kit.runs, 0);
  }
}

TEST(CommandText, HasWhatTheCommandWasGiven) {
  const CommandText text = Kit().juggle();
  EXPECT_EQ(text.name, "juggle");
  ASSERT_EQ(text.arguments.size(), 1u);
  EXPECT_EQ(text.arguments[0].name, "DIR");
  EXPECT_TRUE(text.arguments[0].required);
  ASSERT_EQ(text.flags.size(), 4u);
  EXPECT_EQ(text.flags[0].name, "--count");
  EXPECT_EQ(text.flags[0].fallback, "3");
  EXPECT_EQ(choices_of(text.flags[1].value), (std::vector<std::string>{"balls", "clubs"}));
  EXPECT_EQ(text.flags[2].value, "");
  EXPECT_EQ(text.flags[3].name, "--help");
  EXPECT_TRUE(choices_of("FILE").empty());
}

TEST(CommandText, AnOverviewBeginsWithWhatTheProgramIs) {
  ProgramText program;
  program.name = "juggle";
  program.summary = "Keeps things in the air.";
  EXPECT_TRUE(to_overview(program).starts_with("Keeps things in the air.\n\nUsage: juggle "));
}

TEST(CommandText, HelpFlowsWhatIsProseAndKeepsWhatIsNot) {
  CommandText text = Kit().juggle();
  text.summary = "word";
  for (int i = 0; i < 40; ++i) text.summary += " word";
  const std::string help = to_help("stanchion", text);
  std::size_t longest = 0;
  for (std::size_t at = 0, end = 0; at < help.size(); at = end + 1) {
    end = std::min(help.find('\n', at), help.size());
    longest = std::max(longest, end - at);
  }
  EXPECT_LE(longest, 80u);
  EXPECT_NE(help.find("\nUsage: stanchion juggle DIR [FLAGS]\n"), std::string::npos);
  EXPECT_NE(help.find("  --count NUMBER\n      How many; 'as many' as [you: like] (default: 3)\n"),
            std::string::npos);
  EXPECT_NE(help.find("until here. Example:\n  stanchion \\ -x\n"), std::string::npos);
}

TEST(Manual, TakesNothingForAnOrderThatIsText) {
  const std::string page = to_manual(Kit().program.text(), "1.2.3");
  EXPECT_NE(page.find(".SS juggle DIR\nKeep things in the air.\n"), std::string::npos);
  EXPECT_NE(page.find(".TP\n\\fB\\-\\-with\\fR \\fIballs|clubs\\fR\nWhat.\n"), std::string::npos);
  EXPECT_NE(page.find("\n\\&.dots begin"), std::string::npos);
  EXPECT_NE(page.find(".nf\nstanchion \\e \\-x\n.fi\n"), std::string::npos);
}

TEST(Completion, QuotesWhatTheShellWouldTakeForItsOwn) {
  const ProgramText text = Kit().program.text();
  EXPECT_NE(to_zsh_completion(text).find(
                R"('--count=[How many; '\''as many'\'' as \[you\: like\]]:NUMBER:')"),
            std::string::npos);
  EXPECT_NE(to_fish_completion(text).find(R"(-d 'How many; \'as many\' as [you: like]')"),
            std::string::npos);
  EXPECT_NE(
      to_bash_completion(text).find("'juggle --with') _stanchion_words 'balls clubs'; return"),
      std::string::npos);
}

}  // namespace
}  // namespace stanchion::cli
