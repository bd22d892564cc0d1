#include "os/silence.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

namespace stanchion::os {

void limit_silence(int fd, std::chrono::milliseconds time) {
  const auto set = [fd](int level, int name, int value) {
    ::setsockopt(fd, level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(time.count()));
  // While nothing is sent, the kernel asks.
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(std::max<std::int64_t>(1, seconds)));
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
}

}  // namespace stanchion::os
