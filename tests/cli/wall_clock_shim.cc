// Preloaded into the server by clock_test.py: shifts the wall clock, and nothing else, by the
// number of seconds in the file named by WALL_CLOCK_OFFSET, which may change at any time.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

const volatile std::int64_t* map_offset() {
  static const std::int64_t kNone = 0;
  const char* path = std::getenv("WALL_CLOCK_OFFSET");
  const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return &kNone;
  void* mapped = mmap(nullptr, sizeof kNone, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  return mapped == MAP_FAILED ? &kNone : static_cast<const volatile std::int64_t*>(mapped);
}

std::int64_t offset() {
  static const volatile std::int64_t* const where = map_offset();
  return *where;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    time->tv_sec += offset();
  return static_cast<int>(result);
}

extern "C" int gettimeofday(timeval* __restrict time, void* __restrict) noexcept {
  timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

extern "C" time_t time(time_t* where) noexcept {
  timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  if (where != nullptr) *where = now.tv_sec;
  return now.tv_sec;
}
