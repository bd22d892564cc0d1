#include "service/reactor_loop.h"

#include <chrono>

namespace stanchion::service {
namespace {

class TimerAlarm final : public broker::Alarm {
 public:
  TimerAlarm(net::Reactor& reactor, broker::Task on_due) : timer_(reactor, std::move(on_due)) {}

  void set(Duration from_now) override { timer_.arm(std::chrono::steady_clock::now() + from_now); }

 private:
  net::Timer timer_;
};

}  // namespace

std::unique_ptr<broker::Alarm> ReactorLoop::make_alarm(broker::Task on_due) {
  return std::make_unique<TimerAlarm>(reactor_, std::move(on_due));
}

}  // namespace stanchion::service
