// tests/worker/victim.cc as a process, and what its jobs wrote down.
#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace stanchion::worker {

class VictimProcess {
 public:
  explicit VictimProcess(std::vector<std::string> words) {
    words.insert(words.begin(), VICTIM);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (::posix_spawn(&pid_, VICTIM, nullptr, nullptr, arguments.data(), environ) != 0) pid_ = -1;
  }
  ~VictimProcess() { kill(); }
  VictimProcess(VictimProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  VictimProcess& operator=(VictimProcess&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }

  pid_t pid() const { return pid_; }
  // SIGKILL, and waits for its end.
  void kill() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
};

struct Effect {
  pid_t pid = 0;
  std::string what;  // "begins", "ends", "fails", and "killed", which tests add.
  std::string group;
  std::string body;
  int receive_count = 0;
};

inline std::vector<Effect> read_effects(const std::string& path) {
  std::vector<Effect> effects;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Effect& effect = effects.emplace_back();
    words >> effect.pid >> effect.what >> effect.group >> effect.body >> effect.receive_count;
  }
  return effects;
}

}  // namespace stanchion::worker
