// Every *.txt beside this file is a test: its requests are run and the replies compared with those
// written below them. STANCHION_REGENERATE=1 writes the replies into the files instead, for a
// person to read the difference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/scenario/runner.h"

namespace stanchion::scenario {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> read_lines(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(std::move(line));
  return lines;
}

// The file as it would be if every reply were as expected. A file may hold several scenarios; each
// begins in an empty world with a line "=== name".
std::vector<std::string> play(const std::vector<std::string>& script) {
  std::vector<std::string> out;
  auto runner = std::make_unique<Runner>();
  for (const std::string& line : script) {
    if (line.starts_with("< ")) continue;
    out.push_back(line);
    if (line.starts_with("===")) runner = std::make_unique<Runner>();
    if (!line.starts_with("> ")) continue;
    try {
      for (const std::string& reply : runner->run(std::string_view(line).substr(2)))
        out.push_back("< " + reply);
    } catch (const std::exception& error) {
      out.push_back(fmt::format("< broken: {}", error.what()));
    }
  }
  return out;
}

// The first difference with a few lines around it.
std::string difference(const std::vector<std::string>& expected,
                       const std::vector<std::string>& actual) {
  std::size_t at = 0;
  while (at < expected.size() && at < actual.size() && expected[at] == actual[at]) ++at;
  std::string out = fmt::format("line {}:\n", at + 1);
  for (std::size_t i = at < 4 ? 0 : at - 4; i < at; ++i) out += "  " + expected[i] + "\n";
  for (std::size_t i = at; i < std::min(at + 3, expected.size()); ++i)
    out += "- " + expected[i] + "\n";
  for (std::size_t i = at; i < std::min(at + 3, actual.size()); ++i) out += "+ " + actual[i] + "\n";
  return out;
}

class Scenario : public testing::TestWithParam<fs::path> {};

TEST_P(Scenario, RepliesAreAsWritten) {
  const std::vector<std::string> expected = read_lines(GetParam());
  ASSERT_FALSE(expected.empty());
  const std::vector<std::string> actual = play(expected);
  for (const std::string& line : actual)
    ASSERT_FALSE(line.starts_with("< broken:")) << GetParam().filename() << " " << line;
  if (std::getenv("STANCHION_REGENERATE") != nullptr) {
    std::ofstream file(GetParam());
    for (const std::string& line : actual) file << line << '\n';
  } else if (expected != actual) {
    ADD_FAILURE() << GetParam().filename().string() << ", " << difference(expected, actual);
  }
}

std::vector<fs::path> scenarios() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(STANCHION_SCENARIOS))
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

INSTANTIATE_TEST_SUITE_P(Files, Scenario, testing::ValuesIn(scenarios()),
                         [](const auto& file) { return file.param.stem().string(); });

}  // namespace
}  // namespace stanchion::scenario
