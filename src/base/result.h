// The machine's faults as values: a Result that nobody may drop.
//
// A Failure is for what goes wrong outside of us (files, sockets, damaged data) and is read by a
// person. What a client did wrong is an Error (model/error.h); what we did wrong is a CHECK.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace stanchion {

struct Failure {
  std::string message;
  int os_error = 0;  // errno where the operating system said no, else 0.
};

template <class T>
class [[nodiscard]] Result : public std::expected<T, Failure> {
 public:
  using std::expected<T, Failure>::expected;
};

using Status = Result<void>;

inline std::unexpected<Failure> fail(std::string message, int os_error = 0) {
  return std::unexpected(Failure{std::move(message), os_error});
}

}  // namespace stanchion

// Returns the failure of `expression` (a Status or Result) to the caller, if it is one.
#define RETURN_IF_FAILED(expression)                                                               \
  do {                                                                                             \
    if (auto status_ = (expression); !status_) return std::unexpected(std::move(status_).error()); \
  } while (false)
