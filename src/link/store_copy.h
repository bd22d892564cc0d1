// Copies the files of a directory from one node to another, over a connection of its own. Both
// sides block, on threads that have nothing else to do.
//
//   files = { 1 u8, name size u8, name, size u64, bytes, checksum u64 }, 0 u8, number of files u64
//   or, in place of a file and the rest: 2 u8, size u8, why it failed
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/stream.h"

namespace stanchion::link {

inline constexpr std::size_t kCopyFilesMax = 1'000'000;
inline constexpr std::uint64_t kCopyFileSizeMax = std::uint64_t{1} << 40;

// Waits for a stream, at most so long for each step.
class BlockingStream {
 public:
  BlockingStream(net::Stream& stream, std::chrono::milliseconds patience)
      : stream_(stream), patience_(patience) {}

  Status write(std::string_view bytes);
  Status read(std::span<char> exactly);

 private:
  Status wait(short events);

  net::Stream& stream_;
  const std::chrono::milliseconds patience_;
};

// Whether a file of this name may be written into a directory: it names nothing outside of it.
bool is_plain_name(std::string_view name);

// Sends all files of the directory, which may have no subdirectories.
Status send_directory(BlockingStream& to, const std::string& directory);
// In place of the files.
Status send_failure(BlockingStream& to, std::string_view why);

// Writes the files to a new directory, and makes them durable. Leaves nothing behind if it fails;
// only a process that is killed meanwhile leaves a part.
Status receive_directory(BlockingStream& from, const std::string& target);

}  // namespace stanchion::link
