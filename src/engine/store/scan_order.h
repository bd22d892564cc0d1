// What a scan of the store gives must lie in the range that was asked for, in order of key: what is
// built from it relies on that.
#pragma once

#include <string>
#include <string_view>

#include "model/batch.h"

namespace stanchion::engine {

class ScanOrder {
 public:
  // `range` must outlive it.
  explicit ScanOrder(const KeyRange& range) : range_(range) {}

  bool accepts(std::string_view key) {
    if (key < range_.begin || key >= range_.end || (!previous_.empty() && key <= previous_))
      return false;
    previous_ = key;
    return true;
  }

 private:
  const KeyRange& range_;
  std::string previous_;
};

}  // namespace stanchion::engine
