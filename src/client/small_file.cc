#include "client/small_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "os/fd.h"

namespace stanchion::client {

Result<std::optional<std::string>> read_small_file(const std::string& path, std::size_t size_max) {
  const auto failed = [&] { return fail(fmt::format("cannot read {}", path), errno); };
  const os::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return failed();
  }
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return failed();
  // A device may be /dev/null, which is how a file is said to be empty.
  if (!S_ISREG(found.st_mode) && !S_ISCHR(found.st_mode))
    return fail(fmt::format("cannot read {}: it is {}, not a file", path,
                            S_ISFIFO(found.st_mode)  ? "a named pipe"
                            : S_ISDIR(found.st_mode) ? "a directory"
                                                     : "a socket or a device"));
  std::string text;
  char buffer[4096];
  while (text.size() <= size_max) {
    const ssize_t count = ::read(file.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed();
    if (count == 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return fail(fmt::format("{} is larger than {} bytes", path, size_max));
}

}  // namespace stanchion::client
