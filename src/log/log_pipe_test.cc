#include "log/log_pipe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

namespace stanchion::log {
namespace {

constexpr std::chrono::milliseconds kPatience(20'000);

std::string tell(std::uint64_t lines) {
  return fmt::format("dropped {}\n", lines);
}

class Pipe : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::pipe(ends_), 0); }
  void TearDown() override {
    for (const int end : ends_)
      if (end >= 0) ::close(end);
  }
  // Everything up to the line that ends with `last`.
  std::string read_until(std::string_view last) {
    std::string got;
    char bytes[65536];
    while (got.find(std::string(last) + "\n") == std::string::npos) {
      const ssize_t n = ::read(ends_[0], bytes, sizeof bytes);
      if (n <= 0) break;
      got.append(bytes, static_cast<std::size_t>(n));
    }
    return got;
  }

  int ends_[2] = {-1, -1};
};

TEST_F(Pipe, LinesComeInOrder) {
  LogPipe log(ends_[1], 1 << 20, tell);
  for (int i = 0; i < 100; ++i) log.write(fmt::format("line {}\n", i));
  const std::string got = read_until("line 99");
  for (int i = 0, at = 0; i < 100; ++i) {
    const std::size_t found = got.find(fmt::format("line {}\n", i), static_cast<std::size_t>(at));
    ASSERT_NE(found, std::string::npos) << i;
    at = static_cast<int>(found);
  }
}

TEST_F(Pipe, NobodyWaitsForAReaderThatDoesNotReadAndLossIsTold) {
  constexpr int kLines = 60'000;
  LogPipe log(ends_[1], 100'000, tell);
  // More than pipe and buffer hold; if any of these writes waited, it would wait for ever.
  for (int i = 0; i < kLines; ++i) log.write(fmt::format("line {:08}\n", i));
  // Each line arrived, or is counted among the lost ones.
  int lines = 0;
  int dropped = 0;
  std::string got;
  char bytes[65536];
  while (lines + dropped < kLines) {
    const ssize_t n = ::read(ends_[0], bytes, sizeof bytes);
    ASSERT_GT(n, 0);
    got.append(bytes, static_cast<std::size_t>(n));
    for (std::size_t end = 0; (end = got.find('\n')) != std::string::npos; got.erase(0, end + 1)) {
      if (got.starts_with("dropped ")) {
        dropped += std::stoi(got.substr(8, end - 8));
      } else {
        ++lines;
      }
    }
  }
  EXPECT_EQ(lines + dropped, kLines);
  EXPECT_GT(dropped, 1000);
  log.write("again\n");
  EXPECT_TRUE(read_until("again").ends_with("again\n"));
}

TEST_F(Pipe, EndsThoughNobodyReads) {
  LogPipe log(ends_[1], 1 << 20, tell);
  for (int i = 0; i < 10'000; ++i) log.write("a line that nobody will ever read\n");
}

TEST_F(Pipe, AReaderThatIsGoneIsNoReasonToEnd) {
  ::close(std::exchange(ends_[0], -1));
  LogPipe log(ends_[1], 1 << 20, tell);
  log.write("to nobody\n");
  log.flush(kPatience);
  log.write("to nobody either\n");
  log.flush(kPatience);
}

TEST_F(Pipe, WhatWasFlushedIsThere) {
  LogPipe log(ends_[1], 1 << 20, tell);
  log.write("the last words\n");
  log.flush(kPatience);
  ASSERT_EQ(::fcntl(ends_[0], F_SETFL, O_NONBLOCK), 0);
  char bytes[64];
  EXPECT_EQ(::read(ends_[0], bytes, sizeof bytes), 15);
}

}  // namespace
}  // namespace stanchion::log
