// A promise that was broken, as a sentence that says what happened.
#pragma once

#include <stdexcept>

namespace stanchion::sim {

class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace stanchion::sim
