#include "monitoring/process_figures.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace stanchion::monitoring {
namespace {

constexpr double kNanosPerSecond = 1e9;

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / kNanosPerSecond;
}

// The 22nd field of /proc/self/stat: ticks from the machine's start to the process's.
double started_after_boot() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  // The second field is a name in parentheses with anything in it.
  const std::size_t end = text.rfind(')');
  if (end == std::string::npos) return 0;
  std::istringstream rest(text.substr(end + 1));
  std::string field;
  constexpr int kStarted = 20;  // From the third field on.
  for (int i = 0; i < kStarted; ++i) rest >> field;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return ticks > 0 && !field.empty() ? std::strtod(field.c_str(), nullptr) / ticks : 0;
}

// As seen now: the wall clock may have been set since.
double start_of_process() {
  static const double after_boot = started_after_boot();
  timespec wall{}, boot{};
  if (::clock_gettime(CLOCK_REALTIME, &wall) != 0 || ::clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
    return 0;
  return seconds_of(wall) - seconds_of(boot) + after_boot;
}

std::uint64_t count_open_files() {
  std::error_code problem;
  std::uint64_t count = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", problem), end; !problem && it != end;
       it.increment(problem))
    ++count;
  return count > 0 ? count - 1 : 0;  // The directory itself is open meanwhile.
}

}  // namespace

ProcessFigures look_at_process() {
  ProcessFigures figures;
  figures.started = start_of_process();
  if (timespec cpu{}; ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0)
    figures.cpu_seconds = seconds_of(cpu);
  std::uint64_t pages = 0, resident = 0;
  if (std::ifstream file("/proc/self/statm"); file >> pages >> resident) {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    figures.virtual_bytes = pages * page;
    figures.resident_bytes = resident * page;
  }
  figures.open_files = count_open_files();
  if (rlimit limit{}; ::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    figures.open_files_max = limit.rlim_cur;
  return figures;
}

}  // namespace stanchion::monitoring
