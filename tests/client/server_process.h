// The real server as a separate process, for tests of the client.
#pragma once

#include <string>
#include <vector>

namespace stanchion::client::test {

class ServerProcess {
 public:
  // Listens on a free port, or on `port`; without a data directory it keeps everything in memory.
  explicit ServerProcess(std::vector<std::string> arguments = {"--in-memory"},
                         const std::string& port = "0");
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // "http://127.0.0.1:34567"
  const std::string& url() const { return url_; }
  std::string port() const;

  void kill();   // SIGKILL, and waits for its end.
  void pause();  // SIGSTOP: it accepts connections and answers nothing.
  void resume();

 private:
  int pid_ = -1;
  std::string url_;
};

}  // namespace stanchion::client::test
