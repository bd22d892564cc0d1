// Descriptors that the process keeps for the files of its data: when it has as many files open as
// it may, connections wait until others end, but a journal that goes on in its next segment, or a
// note that belongs to a checkpoint, cannot.
//
//   file wanted, none to be had ─▶ a spare is closed, the file gets its place
//   file closed                 ─▶ its place is a spare again, in one step: nobody comes between
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

  // Of this process; takes its spares when it is first asked for.
  static SpareDescriptors& of_process();

  SpareDescriptors();
  ~SpareDescriptors();
  SpareDescriptors(const SpareDescriptors&) = delete;
  SpareDescriptors& operator=(const SpareDescriptors&) = delete;

  // After a call failed with this error: whether there is a place now that there was not before.
  bool make_room(int error);

  // Closes a descriptor, or makes a spare of it.
  void close(int descriptor);

 private:
  std::mutex mutex_;
  int pattern_;              // What spares are copies of.
  std::vector<int> spares_;  // At most kCount.
};

}  // namespace stanchion::os
