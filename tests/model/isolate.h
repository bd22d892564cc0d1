// Runs a function in a separate process, so that a failed check, which ends the process, is just
// another way to fail.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace stanchion::reference {

// What `run` returned, or the last output of the process if it died; nullopt if all went well. A
// process that calls live_on less often than every `patience` seconds is considered hung and
// killed.
std::optional<std::string> isolated(const std::function<std::optional<std::string>()>& run,
                                    unsigned patience);
void live_on(unsigned patience);

// A number that a process shares with the one that started it.
class SharedNumber {
 public:
  SharedNumber();
  ~SharedNumber();
  SharedNumber(const SharedNumber&) = delete;
  SharedNumber& operator=(const SharedNumber&) = delete;

  unsigned long long& operator*() { return *value_; }

 private:
  unsigned long long* value_;
};

}  // namespace stanchion::reference
