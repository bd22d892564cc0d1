// Descriptors that the process reserves for its data files. When the limit of open files is
// reached, connections can wait until others close, but a journal that needs its next segment, or a
// note that belongs to a checkpoint, cannot.
//
//   file wanted, limit reached  ─▶ a spare is closed, the file gets its place
//   file closed                 ─▶ its place is a spare again, atomically
//
// Any thread.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

namespace stanchion::os {

class SpareDescriptors {
 public:
  static constexpr std::size_t kCount = 8;

  // The spares of this process, opened at the first call.
  static SpareDescriptors& of_process();

  SpareDescriptors();
  ~SpareDescriptors();
  SpareDescriptors(const SpareDescriptors&) = delete;
  SpareDescriptors& operator=(const SpareDescriptors&) = delete;

  // After a call failed with this error: whether a spare was closed, so that the call may be
  // repeated.
  bool make_room(int error);

  // Closes a descriptor, or makes a spare of it.
  void close(int descriptor);

 private:
  std::mutex mutex_;
  int pattern_;              // The descriptor that spares duplicate.
  std::vector<int> spares_;  // At most kCount.
};

}  // namespace stanchion::os
