// Listening sockets: on TCP one per address and reactor, sharing the port; or one Unix socket that
// all reactors share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "os/fd.h"

namespace stanchion::net {

// Connections that may wait in one socket until they are accepted. The kernel limits it to
// net.core.somaxconn and lets one more wait.
inline constexpr int kBacklog = 4096;

using os::Fd;

class ListenSockets {
 public:
  ListenSockets(std::size_t reactors, std::string path) : fds_(reactors), path_(std::move(path)) {}

  std::vector<Fd> take(std::size_t reactor) { return std::move(fds_[reactor]); }
  void add(std::size_t reactor, Fd fd) { fds_[reactor].push_back(std::move(fd)); }
  std::uint16_t port() const { return port_; }
  void set_port(std::uint16_t port) { port_ = port; }
  // Removes the Unix socket's file, if there is one.
  void remove_path();

 private:
  std::vector<std::vector<Fd>> fds_;
  std::string path_;
  std::uint16_t port_ = 0;
};

// Listens on every address of `host`. Port 0 picks a free one, the same for all addresses. Fails if
// anything else listens there, which SO_REUSEPORT alone would silently permit.
Result<ListenSockets> listen_on_tcp(const std::string& host, std::uint16_t port,
                                    std::size_t reactors);

// Replaces a socket file that nobody listens on any more.
Result<ListenSockets> listen_on_unix_socket(const std::string& path, std::size_t reactors);

}  // namespace stanchion::net
