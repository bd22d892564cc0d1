// The real server as a process of its own, for tests of the client.
#pragma once

#include <string>
#include <vector>

namespace stanchion::client::test {

class ServerProcess {
 public:
  // Listens on a port that is free, or on `port`; without data of its own it keeps all in memory.
  explicit ServerProcess(std::vector<std::string> arguments = {"--in-memory"},
                         const std::string& port = "0");
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // "http://127.0.0.1:34567"
  const std::string& url() const { return url_; }
  std::string port() const;

  void kill();   // SIGKILL, and it is over.
  void pause();  // SIGSTOP: it takes connections and answers nothing.
  void resume();

 private:
  int pid_ = -1;
  std::string url_;
};

}  // namespace stanchion::client::test
