// A net::Reactor as the broker's Loop.
#pragma once

#include "broker/loop.h"
#include "net/reactor.h"

namespace stanchion::service {

class ReactorLoop final : public broker::Loop {
 public:
  explicit ReactorLoop(net::Reactor& reactor) : reactor_(reactor) {}

  void post(broker::Task task) override { reactor_.post(std::move(task)); }
  void defer(broker::Task task) override { reactor_.defer(std::move(task)); }
  void linger(Wanted wanted, broker::Task task) override {
    reactor_.linger(std::move(wanted), std::move(task));
  }
  bool is_current() const override { return reactor_.is_current(); }
  std::unique_ptr<broker::Alarm> make_alarm(broker::Task on_due) override;

 private:
  net::Reactor& reactor_;
};

}  // namespace stanchion::service
