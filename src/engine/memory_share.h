// The memory that one of many objects takes, and the total to which it contributes.
#pragma once

#include <cstddef>

#include "base/check.h"

namespace stanchion::engine {

class MemoryShare {
 public:
  explicit MemoryShare(std::size_t& total) : total_(&total) {}
  ~MemoryShare() { leave(); }
  MemoryShare(const MemoryShare&) = delete;
  MemoryShare& operator=(const MemoryShare&) = delete;

  void add(std::size_t bytes) {
    if (total_ == nullptr) return;
    bytes_ += bytes;
    *total_ += bytes;
  }
  void subtract(std::size_t bytes) {
    if (total_ == nullptr) return;
    CHECK(bytes <= bytes_, "nothing is given back that was not taken");
    bytes_ -= bytes;
    *total_ -= bytes;
  }

  void set(std::size_t bytes) {
    if (total_ == nullptr) return;
    *total_ = *total_ - bytes_ + bytes;
    bytes_ = bytes;
  }

  // Removes the contribution for good: the owner is about to be destroyed, perhaps by another
  // thread.
  void leave() {
    if (total_ != nullptr) *total_ -= bytes_;
    total_ = nullptr;
    bytes_ = 0;
  }

  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t* total_;
  std::size_t bytes_ = 0;
};

}  // namespace stanchion::engine
