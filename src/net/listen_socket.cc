#include "net/listen_socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

namespace stanchion::net {

namespace {

std::unexpected<Failure> system_failure(const std::string& what) {
  const int error = errno;
  return fail(what + ": " + std::strerror(error), error);
}

void set_option(const Fd& fd, int level, int option) {
  const int on = 1;
  ::setsockopt(fd.get(), level, option, &on, sizeof on);
}

// One bound socket, listening if it is to share its port. A socket that does not share the port
// finds out whether it is free.
Result<Fd> bind_tcp(const addrinfo& address, bool shared, const std::string& name) {
  Fd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return system_failure("cannot create a socket for " + name);
  set_option(fd, SOL_SOCKET, SO_REUSEADDR);
  if (shared) set_option(fd, SOL_SOCKET, SO_REUSEPORT);
  set_option(fd, IPPROTO_TCP, TCP_NODELAY);  // Accepted sockets inherit this option.
  if (::bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      (shared && ::listen(fd.get(), kBacklog) != 0)) {
    return system_failure("cannot listen on " + name);
  }
  return fd;
}

void set_port(const addrinfo& address, std::uint16_t port) {
  if (address.ai_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address.ai_addr)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(address.ai_addr)->sin_port = htons(port);
  }
}

// The bytes of the address without the port.
std::string_view host_of(const addrinfo& address) {
  if (address.ai_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address.ai_addr);
    return {reinterpret_cast<const char*>(&v6->sin6_addr), sizeof v6->sin6_addr};
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(address.ai_addr);
  return {reinterpret_cast<const char*>(&v4->sin_addr), sizeof v4->sin_addr};
}

std::uint16_t bound_port(const Fd& fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// A name may have an address of a family that this machine does not use, most often "::1".
bool is_absent_here(const Failure& failure) {
  return failure.os_error == EAFNOSUPPORT || failure.os_error == EADDRNOTAVAIL;
}

bool is_repeated(const addrinfo* first, const addrinfo& address) {
  for (; first != &address; first = first->ai_next) {
    if (first->ai_addrlen == address.ai_addrlen && first->ai_family == address.ai_family &&
        host_of(*first) == host_of(address)) {
      return true;
    }
  }
  return false;
}

// One listening socket per reactor. The first one bound to port 0 picks the port for all.
Status listen_on_address(const addrinfo& address, const std::string& host, std::size_t reactors,
                         ListenSockets& sockets) {
  set_port(address, sockets.port());
  const std::string name = host + ":" + std::to_string(sockets.port());
  if (sockets.port() != 0) RETURN_IF_FAILED(bind_tcp(address, false, name));
  for (std::size_t reactor = 0; reactor < reactors; ++reactor) {
    auto fd = bind_tcp(address, true, name);
    if (!fd) return std::unexpected(std::move(fd).error());
    if (sockets.port() == 0) {
      sockets.set_port(bound_port(*fd));
      set_port(address, sockets.port());
    }
    sockets.add(reactor, std::move(*fd));
  }
  return {};
}

Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return fail("the path of a Unix socket is too long: " + path);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Removes a socket file that a killed server left behind.
Status remove_stale(const std::string& path, const sockaddr_un& address) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISSOCK(info.st_mode)) return fail(path + " is there and not a socket");
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return fail("another server listens on " + path, EADDRINUSE);
  }
  if (errno != ECONNREFUSED) return system_failure("cannot tell who listens on " + path);
  if (::unlink(path.c_str()) != 0) return system_failure("cannot remove the old " + path);
  return {};
}

}  // namespace

void ListenSockets::remove_path() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<ListenSockets> listen_on_tcp(const std::string& host, std::uint16_t port,
                                    std::size_t reactors) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return fail("cannot resolve " + host + ": " + ::gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);

  ListenSockets sockets(reactors, {});
  sockets.set_port(port);
  Status last = fail("no address of " + host + " can be listened on");
  bool listening = false;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    if (is_repeated(found, *address)) continue;
    Status status = listen_on_address(*address, host, reactors, sockets);
    if (!status && !is_absent_here(status.error())) {
      return std::unexpected(std::move(status).error());
    }
    listening = listening || status.has_value();
    if (!status) last = std::move(status);
  }
  if (!listening) return std::unexpected(std::move(last).error());
  return sockets;
}

Result<ListenSockets> listen_on_unix_socket(const std::string& path, std::size_t reactors) {
  const auto address = unix_address(path);
  if (!address) return std::unexpected(address.error());
  RETURN_IF_FAILED(remove_stale(path, *address));
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return system_failure("cannot create a Unix socket");
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return system_failure("cannot listen on " + path);
  }
  ListenSockets sockets(reactors, path);
  for (std::size_t reactor = 1; reactor < reactors; ++reactor) {
    Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
    if (!copy.valid()) return system_failure("cannot share " + path);
    sockets.add(reactor, std::move(copy));
  }
  sockets.add(0, std::move(fd));
  return sockets;
}

}  // namespace stanchion::net
