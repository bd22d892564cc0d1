// The guard of a call: what the queue's policy says, as long as the caller's key is valid, and then
// a refusal that was prepared before, if there is one.
//
//   CG1  A guard that was packed on one node of a fleet and unpacked on another decides as the
//        first would, by that node's clock and keys. What cannot be unpacked refuses.
//
// The nodes of a fleet are configured with the same keys: a guard tells which key signed, and not
// its secret.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/guard.h"
#include "model/action.h"
#include "model/request.h"
#include "os/clock.h"
#include "service/authenticator.h"
#include "service/caller.h"

namespace stanchion::service {

class CallGuard final : public broker::RequestGuard {
 public:
  struct Call {
    std::shared_ptr<const Caller> caller;  // Null: everybody may do everything.
    Action action{};
    QueueRef queue;
    StringMap tags;                     // From tags_of().
    std::vector<std::string> tag_keys;  // From tag_keys_of().
    // Whatever is let pass is refused with this: that a queue does not exist, or may not be changed
    // by the caller, is reported before what is wrong with the change.
    std::optional<Error> refusal;
  };

  // Both must outlive the guard.
  CallGuard(const Authenticator& authenticator, os::Clock& clock, Call call)
      : authenticator_(authenticator), clock_(clock), call_(std::move(call)) {}

  std::optional<Error> check(const broker::GuardedQueue* queue) override;
  std::string pack() const override;

  // Any thread; never null.
  static broker::Guard unpack(const Authenticator& authenticator, os::Clock& clock,
                              std::string_view packed);

 private:
  const Authenticator& authenticator_;
  os::Clock& clock_;
  const Call call_;
  bool checked_ = false;
};

}  // namespace stanchion::service
