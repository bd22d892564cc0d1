#include "settings/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string_view>

namespace stanchion::settings {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

// The limit in a file of a cgroup. There is none if the file is missing, or says "max".
std::uint64_t limit_in(const std::string& file) {
  std::uint64_t limit = 0;
  return std::ifstream(file) >> limit && limit > 0 ? limit : kUnlimited;
}

// Of the group and of those around it. A container may see its own group as the root, at `mounted`.
std::uint64_t limit_of(const std::string& mounted, std::string group, const std::string& file) {
  std::uint64_t least = limit_in(mounted + "/" + file);
  while (group.size() > 1) {
    least = std::min(least, limit_in(mounted + group + "/" + file));
    group.resize(group.rfind('/'));
  }
  return least;
}

bool has_memory(std::string_view controllers) {
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = controllers.find(',');
    if (controllers.substr(0, end) == "memory") return true;
    if (end != std::string_view::npos) controllers.remove_prefix(end + 1);
  }
  return false;
}

// A line is NUMBER:CONTROLLERS:GROUP, for version 2 without controllers.
std::uint64_t limit_of_line(const std::string& root, const std::string& line) {
  const std::size_t first = line.find(':');
  const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
  if (second == std::string::npos || line.compare(second, 2, ":/") != 0) return kUnlimited;
  const std::string group = line.substr(second + 1);
  const std::string controllers = line.substr(first + 1, second - first - 1);
  if (controllers.empty()) return limit_of(root + "/sys/fs/cgroup", group, "memory.max");
  if (!has_memory(controllers)) return kUnlimited;
  return limit_of(root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
}

}  // namespace

std::uint64_t memory_of_this_process(const std::string& root) {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGESIZE);
  std::uint64_t least = kUnlimited;
  if (pages > 0 && page_size > 0)
    least = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_size);
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);)
    least = std::min(least, limit_of_line(root, line));
  return least == kUnlimited ? 0 : least;
}

}  // namespace stanchion::settings
