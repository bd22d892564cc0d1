#include "tests/model/isolate.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>

#include "base/check.h"

namespace stanchion::reference {
namespace {

constexpr int kFailed = 3;

std::string read_all(int from) {
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t size; (size = read(from, buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(size));
  return text;
}

}  // namespace

void live_on(unsigned patience) {
  alarm(patience);
}

std::optional<std::string> isolated(const std::function<std::optional<std::string>()>& run,
                                    unsigned patience) {
  std::array<int, 2> ends{};
  CHECK(pipe(ends.data()) == 0, "a pipe to the process that runs the test");
  std::fflush(nullptr);
  const pid_t child = fork();
  CHECK(child >= 0, "a process that runs the test");
  if (child == 0) {
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    live_on(patience);
    const auto failure = run();
    if (failure) std::fputs(failure->c_str(), stderr);
    std::fflush(nullptr);
    _exit(failure ? kFailed : 0);
  }
  close(ends[1]);
  std::string words = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child, "the process that ran the test has ended");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) words += "it hangs";
  return words.empty() ? "the process died without a word" : words;
}

SharedNumber::SharedNumber() {
  void* page =
      mmap(nullptr, sizeof *value_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED, "memory that two processes share");
  value_ = static_cast<unsigned long long*>(page);
}

SharedNumber::~SharedNumber() {
  munmap(value_, sizeof *value_);
}

}  // namespace stanchion::reference
