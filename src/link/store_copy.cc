#include "link/store_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/digest.h"
#include "os/fd.h"

namespace stanchion::link {
namespace {

namespace fs = std::filesystem;

constexpr std::uint8_t kEnd = 0, kFile = 1, kFailed = 2;
constexpr std::size_t kNameSizeMax = 255;
// Checksums are chained by pieces of this size.
constexpr std::size_t kPiece = 256 * 1024;

std::unexpected<Failure> system_failure(const std::string& what) {
  const int error = errno;
  return fail(fmt::format("{}: {}", what, std::strerror(error)), error);
}

template <class T>
Result<T> read_number(BlockingStream& from) {
  T value{};
  char bytes[sizeof value];
  RETURN_IF_FAILED(from.read(bytes));
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

Status send_file(BlockingStream& to, const fs::path& path) {
  const std::string name = path.filename().string();
  if (!is_plain_name(name)) return fail(fmt::format("a file is called \"{}\"", name));
  const os::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about {};
  if (!file.valid() || ::fstat(file.get(), &about) != 0)
    return system_failure("cannot read " + path.string());
  const auto size = static_cast<std::uint64_t>(about.st_size);
  std::string head;
  ByteWriter out(head);
  out.u8(kFile);
  out.u8(static_cast<std::uint8_t>(name.size()));
  out.raw(name);
  out.u64(size);
  RETURN_IF_FAILED(to.write(head));
  const auto piece = std::make_unique_for_overwrite<char[]>(kPiece);
  std::uint64_t checksum = 0;
  for (std::uint64_t done = 0; done < size;) {
    const std::size_t want = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, size - done));
    const ssize_t got = ::pread(file.get(), piece.get(), want, static_cast<off_t>(done));
    if (got < 0) return system_failure("cannot read " + path.string());
    if (static_cast<std::size_t>(got) != want)
      return fail(path.string() + " changed while it was copied");
    const std::string_view bytes(piece.get(), want);
    checksum = xxh3_64(bytes, checksum);
    RETURN_IF_FAILED(to.write(bytes));
    done += want;
  }
  std::string tail;
  ByteWriter(tail).u64(checksum);
  return to.write(tail);
}

Status write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0) return system_failure("cannot write " + path);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Status receive_file(BlockingStream& from, const std::string& directory) {
  const auto name_size = read_number<std::uint8_t>(from);
  if (!name_size) return std::unexpected(name_size.error());
  std::string name(*name_size, '\0');
  RETURN_IF_FAILED(from.read(name));
  const auto size = read_number<std::uint64_t>(from);
  if (!size) return std::unexpected(size.error());
  if (!is_plain_name(name)) return fail("a file has a name that it may not have");
  if (*size > kCopyFileSizeMax) return fail(fmt::format("{} is too large: {} bytes", name, *size));
  const std::string path = directory + "/" + name;
  const os::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640));
  if (!file.valid()) return system_failure("cannot create " + path);
  const auto piece = std::make_unique_for_overwrite<char[]>(kPiece);
  std::uint64_t checksum = 0;
  for (std::uint64_t done = 0; done < *size;) {
    const std::span<char> bytes(
        piece.get(), static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, *size - done)));
    RETURN_IF_FAILED(from.read(bytes));
    checksum = xxh3_64({bytes.data(), bytes.size()}, checksum);
    RETURN_IF_FAILED(write_all(file.get(), {bytes.data(), bytes.size()}, path));
    done += bytes.size();
  }
  const auto expected = read_number<std::uint64_t>(from);
  if (!expected) return std::unexpected(expected.error());
  if (*expected != checksum) return fail(name + " arrived damaged");
  if (::fsync(file.get()) != 0) return system_failure("cannot sync " + path);
  return {};
}

Status sync_directory(const std::string& path) {
  const os::Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid() || ::fsync(directory.get()) != 0)
    return system_failure("cannot sync " + path);
  return {};
}

Status receive_files(BlockingStream& from, const std::string& directory) {
  for (std::uint64_t files = 0;; ++files) {
    const auto kind = read_number<std::uint8_t>(from);
    if (!kind) return std::unexpected(kind.error());
    if (*kind == kFailed) {
      const auto size = read_number<std::uint8_t>(from);
      if (!size) return std::unexpected(size.error());
      std::string why(*size, '\0');
      RETURN_IF_FAILED(from.read(why));
      return fail("the other node could not send it: " + why);
    }
    if (*kind == kEnd) {
      const auto count = read_number<std::uint64_t>(from);
      if (!count) return std::unexpected(count.error());
      if (*count != files) return fail(fmt::format("{} of {} files arrived", files, *count));
      return {};
    }
    if (*kind != kFile || files == kCopyFilesMax)
      return fail("the other node sends something else than files, or too many");
    RETURN_IF_FAILED(receive_file(from, directory));
  }
}

}  // namespace

Status BlockingStream::wait(short events) {
  pollfd one{.fd = stream_.fd(), .events = events, .revents = 0};
  const int ready = ::poll(&one, 1, static_cast<int>(patience_.count()));
  if (ready < 0 && errno != EINTR) return system_failure("cannot wait for the other node");
  if (ready == 0) return fail("the other node did not answer in time");
  return {};
}

Status BlockingStream::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
    const net::IoResult result = stream_.write({&piece, 1});
    if (result.state == net::IoState::kDone) {
      bytes.remove_prefix(result.bytes);
    } else if (result.state == net::IoState::kWantsRead) {
      RETURN_IF_FAILED(wait(POLLIN));
    } else if (result.state == net::IoState::kWantsWrite) {
      RETURN_IF_FAILED(wait(POLLOUT));
    } else {
      return fail("the connection broke");
    }
  }
  return {};
}

Status BlockingStream::read(std::span<char> exactly) {
  while (!exactly.empty()) {
    const net::IoResult result = stream_.read(exactly);
    if (result.state == net::IoState::kDone) {
      exactly = exactly.subspan(result.bytes);
    } else if (result.state == net::IoState::kWantsRead) {
      RETURN_IF_FAILED(wait(POLLIN));
    } else if (result.state == net::IoState::kWantsWrite) {
      RETURN_IF_FAILED(wait(POLLOUT));
    } else {
      return fail("the connection broke");
    }
  }
  return {};
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameSizeMax && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

Status send_directory(BlockingStream& to, const std::string& directory) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (!it->is_regular_file(error))
      return fail(it->path().string() + " is not a file: only files can be copied");
    files.push_back(it->path());
  }
  if (error) return fail(fmt::format("cannot list {}: {}", directory, error.message()));
  for (const fs::path& file : files) RETURN_IF_FAILED(send_file(to, file));
  std::string end;
  ByteWriter out(end);
  out.u8(kEnd);
  out.u64(files.size());
  return to.write(end);
}

Status send_failure(BlockingStream& to, std::string_view why) {
  std::string bytes;
  ByteWriter out(bytes);
  out.u8(kFailed);
  out.u8(static_cast<std::uint8_t>(std::min<std::size_t>(why.size(), 255)));
  out.raw(why.substr(0, 255));
  return to.write(bytes);
}

Status receive_directory(BlockingStream& from, const std::string& target) {
  std::error_code error;
  if (!fs::create_directory(target, error))
    return fail(
        fmt::format("cannot create {}: {}", target, error ? error.message() : "it exists already"));
  Status status = receive_files(from, target);
  if (status) status = sync_directory(target);
  if (!status) fs::remove_all(target, error);
  return status;
}

}  // namespace stanchion::link
