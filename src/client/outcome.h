// The outcome of a call: a value, or an error that says what went wrong and whether the call may
// have been executed all the same.
//
// Nothing in this library throws. An Outcome must be checked before its value is used; taking the
// value of a failed one ends the process.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

namespace stanchion::client {

// Whose fault an error is.
enum class Fault {
  kSender,    // The request is wrong: repeating it without a change does not help.
  kReceiver,  // The server could not do it; a later try may succeed.
  kNetwork,   // No answer came.
  kLocal,     // The call was not made: no credentials, settings that do not fit, a closed client.
};

// Codes of errors that no server sent. All other codes are the server's, without a namespace:
// "QueueDoesNotExist", "AccessDeniedException", "RequestThrottled".
namespace code {
inline constexpr const char* kConnectionFailed = "ConnectionFailed";  // Nothing was sent.
inline constexpr const char* kConnectionLost = "ConnectionLost";      // Sent, and no whole answer.
inline constexpr const char* kTimeout = "Timeout";      // Sent, but no answer came in time.
inline constexpr const char* kBadAnswer = "BadAnswer";  // An answer that is not SQS's.
inline constexpr const char* kChecksumMismatch =
    "ChecksumMismatch";  // An MD5 does not match the data.
inline constexpr const char* kNoCredentials = "NoCredentials";
inline constexpr const char* kInvalidSettings = "InvalidSettings";
inline constexpr const char* kInvalidRequest = "InvalidRequest";  // The request cannot be written.
inline constexpr const char* kTooManyCalls = "TooManyCalls";      // More than Options::calls_max.
inline constexpr const char* kCancelled = "Cancelled";
inline constexpr const char* kClosed = "Closed";  // The client was destroyed first.
}  // namespace code

struct Error {
  std::string code = {};
  std::string message = {};
  int http_status = 0;          // 0: no answer came.
  std::string request_id = {};  // Of the last answer; empty: none came.
  Fault fault = Fault::kReceiver;
  bool throttled = false;  // The server asks to be called less often.
  // The server may have executed the request, in this attempt or an earlier one.
  bool may_have_happened = false;

  // "QueueDoesNotExist (HTTP 400, request 1b2c…): The specified queue does not exist."
  std::string to_string() const;
};

// What is known about a call besides its result.
struct CallInfo {
  int attempts = 0;  // How often the request was started; 0: never.
  // A send that succeeded had been sent before, and that attempt may have succeeded as well: the
  // queue may hold the message twice. Never set for sends with a deduplication id.
  bool may_be_duplicated = false;
  std::string request_id = {};
};

template <class T>
class [[nodiscard]] Outcome {
 public:
  using Value = T;

  Outcome(T value, CallInfo info = {}) : state_(std::move(value)), info_(std::move(info)) {}
  Outcome(Error error, CallInfo info = {}) : state_(std::move(error)), info_(std::move(info)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: ok().
  T& value() & { return *checked(); }
  const T& value() const& { return *const_cast<Outcome*>(this)->checked(); }
  T&& value() && { return std::move(*checked()); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return checked(); }
  const T* operator->() const { return const_cast<Outcome*>(this)->checked(); }

  // REQUIRES: !ok().
  const Error& error() const {
    const Error* error = std::get_if<1>(&state_);
    if (error == nullptr) std::abort();
    return *error;
  }

  const CallInfo& info() const { return info_; }
  int attempts() const { return info_.attempts; }
  bool may_be_duplicated() const { return info_.may_be_duplicated; }

 private:
  T* checked() {
    T* value = std::get_if<0>(&state_);
    if (value == nullptr) std::abort();
    return value;
  }

  std::variant<T, Error> state_;
  CallInfo info_;
};

}  // namespace stanchion::client
