#include "os/spare_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace stanchion::os {

SpareDescriptors& SpareDescriptors::of_process() {
  // Never destroyed: files may be closed by static destructors.
  static SpareDescriptors* const spares = new SpareDescriptors;
  return *spares;
}

SpareDescriptors::SpareDescriptors() : pattern_(::open("/", O_PATH | O_CLOEXEC)) {
  while (pattern_ >= 0 && spares_.size() < kCount) {
    const int spare = ::fcntl(pattern_, F_DUPFD_CLOEXEC, 0);
    if (spare < 0) break;
    spares_.push_back(spare);
  }
}

SpareDescriptors::~SpareDescriptors() {
  for (const int spare : spares_) ::close(spare);
  if (pattern_ >= 0) ::close(pattern_);
}

bool SpareDescriptors::make_room(int error) {
  if (error != EMFILE && error != ENFILE) return false;
  const std::lock_guard lock(mutex_);
  if (spares_.empty()) return false;
  ::close(spares_.back());
  spares_.pop_back();
  return true;
}

void SpareDescriptors::close(int descriptor) {
  const std::lock_guard lock(mutex_);
  if (pattern_ >= 0 && spares_.size() < kCount &&
      ::dup3(pattern_, descriptor, O_CLOEXEC) == descriptor) {
    spares_.push_back(descriptor);
    return;
  }
  ::close(descriptor);
}

}  // namespace stanchion::os
