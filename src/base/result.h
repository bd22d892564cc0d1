// Failures of the machine as values: a Result that no caller may drop.
//
// A Failure is for what goes wrong outside of the program (files, sockets, damaged data), and its
// text is read by a person. A client's mistake is an Error (model/error.h); a bug of ours is a
// CHECK.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace stanchion {

struct Failure {
  std::string message;
  int os_error = 0;  // errno if the operating system refused, else 0.
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

// Returns to the caller if `expression` (a Status or Result) is a failure, passing the failure on.
#define RETURN_IF_FAILED(expression)                                                               \
  do {                                                                                             \
    if (auto status_ = (expression); !status_) return std::unexpected(std::move(status_).error()); \
  } while (false)
