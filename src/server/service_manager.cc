#include "server/service_manager.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/terminal.h"
#include "net/listen_socket.h"

namespace stanchion::server {
namespace {

constexpr timeval kTellTimeMax{.tv_sec = 5, .tv_usec = 0};
constexpr int kTakenMillis = 500;

}  // namespace

void notify_service_manager(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (path == nullptr || std::strlen(path) >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path, std::strlen(path));
  // A name with @ in front is one in the abstract namespace, which begins with a zero byte.
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  const net::Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return;
  // A manager that reads nothing must not keep the server from stopping.
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kTellTimeMax, sizeof kTellTimeMax);
  ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&address), size);
}

void announce_if_taken(std::string_view line) {
  pollfd ready{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&ready, 1, kTakenMillis) != 0) announce(line);
}

void raise_open_files_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::uint64_t open_files_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

std::string name_of_machine() {
  std::array<char, HOST_NAME_MAX + 1> bytes{};
  if (::gethostname(bytes.data(), bytes.size() - 1) != 0) return "";
  std::string name(bytes.data());
  std::ranges::replace_if(
      name, [](char c) { return c < ' ' || c > '~'; }, '?');
  return name;
}

}  // namespace stanchion::server
