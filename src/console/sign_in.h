// POST /console/sign-in: an access key and its secret, which may be a guess.
//
//   request ─▶ small enough? ─▶ may the address try? ─▶ may the key be tried? ─▶ right: who it is
//                                                                            └─▶ wrong: a line in
//                                                          the log, and the answer a moment later
//
// Called on the reactor of each exchange.
//
//   SD1  Before the caller is known, no more than kBodyMax bytes are parsed.
//   SD2  At most kDelayedMax answers of a reactor are held back; more are given at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/loop.h"
#include "console/sign_in_guard.h"
#include "net/http_server.h"
#include "service/authenticator.h"
#include "service/reactor_loop.h"

namespace stanchion::console {

class SignIn {
 public:
  static constexpr std::size_t kBodyMax = 4 * 1024;
  static constexpr std::chrono::seconds kDelay{1};
  static constexpr std::size_t kDelayedMax = 1'000;

  // Writes a line to the log. Any thread.
  using Warn = std::function<void(const std::string&)>;

  // All arguments must outlive the desk; `loops` has one per reactor, by its index.
  SignIn(const service::Authenticator& authenticator,
         std::vector<std::unique_ptr<service::ReactorLoop>>& loops, bool trust_forwarded,
         Warn warn);

  // Who signs in. Nullopt: nobody, and the exchange is answered, or will be.
  std::optional<service::SignedIn> receive(net::Exchange& exchange);

 private:
  using Clock = std::chrono::steady_clock;
  struct Delayed {
    Clock::time_point due;
    net::Exchange exchange;
  };
  // Of one reactor, used on its thread.
  struct HeldBack {
    std::deque<Delayed> answers;  // In the order in which they are due.
    std::unique_ptr<broker::Alarm> alarm;
  };

  void refuse_later(net::Exchange& exchange);
  void answer_due(HeldBack& held_back);

  const service::Authenticator& authenticator_;
  std::vector<std::unique_ptr<service::ReactorLoop>>& loops_;
  const bool trust_forwarded_;
  const Warn warn_;
  SignInGuard guard_;
  std::vector<HeldBack> held_back_;  // By reactor.
};

}  // namespace stanchion::console
