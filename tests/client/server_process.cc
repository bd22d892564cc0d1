#include "tests/client/server_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace stanchion::client::test {
namespace {

// "ready http://127.0.0.1:34567 after 12 ms"
std::string wait_until_ready(int from) {
  std::FILE* lines = ::fdopen(from, "r");
  char line[1024];
  std::string url;
  while (url.empty() && std::fgets(line, sizeof line, lines) != nullptr) {
    const std::string text(line);
    if (text.starts_with("ready ")) url = text.substr(6, text.find(' ', 6) - 6);
  }
  std::fclose(lines);
  return url;
}

}  // namespace

ServerProcess::ServerProcess(std::vector<std::string> arguments, const std::string& port) {
  int out[2];
  if (::pipe2(out, O_CLOEXEC) != 0) ADD_FAILURE() << "no pipe";
  arguments.insert(arguments.begin(),
                   {STANCHION_BINARY, "serve", "--threads", "1", "--listen", "127.0.0.1:" + port});
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int failed =
      ::posix_spawn(&pid_, STANCHION_BINARY, &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  if (failed != 0) pid_ = -1;
  url_ = wait_until_ready(out[0]);
  EXPECT_NE(url_, "") << STANCHION_BINARY << " did not start";
}

ServerProcess::~ServerProcess() {
  kill();
}

std::string ServerProcess::port() const {
  return url_.substr(url_.rfind(':') + 1);
}

void ServerProcess::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(std::exchange(pid_, -1), nullptr, 0);
}

void ServerProcess::pause() {
  ::kill(pid_, SIGSTOP);
  // The signal has been sent, but a thread on another core may still be answering.
  int status = 0;
  if (::waitpid(pid_, &status, WUNTRACED) != pid_ || !WIFSTOPPED(status))
    ADD_FAILURE() << "the server did not stop";
}

void ServerProcess::resume() {
  ::kill(pid_, SIGCONT);
}

}  // namespace stanchion::client::test
