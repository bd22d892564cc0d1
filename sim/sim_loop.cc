#include "sim/sim_loop.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "sim/violation.h"

namespace stanchion::sim {
namespace {

constexpr int kAlarmsPerSecondMax = 500;

}  // namespace

// The events that it has scheduled keep its state alive; only the latest of them counts.
class SimAlarm final : public broker::Alarm {
 public:
  SimAlarm(SimLoop& loop, broker::Task on_due) : loop_(loop), state_(std::make_shared<State>()) {
    state_->on_due = std::move(on_due);
  }
  ~SimAlarm() override { ++state_->setting; }

  void set(Duration from_now) override {
    CHECK(loop_.is_current(), "an alarm is used on its loop's thread");
    CHECK(from_now > Duration::zero(), "an alarm is set for later");
    const std::uint64_t setting = ++state_->setting;
    const Micros late = static_cast<Micros>(loop_.world_.random().below(kMillisecond));
    // A deadline years away is as good as none, and must not overflow.
    const Micros wait = std::min<Micros>(from_now.count(), 1'000'000'000'000) * kMillisecond;
    loop_.world_.schedule(wait + late, loop_.owner_, [state = state_, setting, &loop = loop_] {
      if (state->setting != setting) return;
      loop.count_alarm();
      loop.run(state->on_due);
    });
  }

 private:
  struct State {
    std::uint64_t setting = 0;
    broker::Task on_due;
  };
  SimLoop& loop_;
  std::shared_ptr<State> state_;
};

Micros SimLoop::turn() {
  Random& random = world_.random();
  // Now and then a thread is delayed for long.
  if (random.below(200) == 0) return random.between<Micros>(1, 20) * kMillisecond;
  return static_cast<Micros>(random.below(static_cast<std::uint64_t>(threads_.slowness)));
}

void SimLoop::count_alarm() {
  const Micros second = world_.now() / kSecond;
  if (second != threads_.alarm_second) threads_.alarms = 0;
  threads_.alarm_second = second;
  if (++threads_.alarms > kAlarmsPerSecondMax)
    throw Violation(fmt::format("L3: {} alarms went off in one second: somebody waits by spinning",
                                threads_.alarms));
}

void SimLoop::run(broker::Task& task) {
  CHECK(threads_.current == Threads::kOutside, "T2: one task at a time");
  threads_.current = index_;
  task();
  threads_.current = Threads::kOutside;
}

void SimLoop::post(broker::Task task) {
  const int sender = threads_.current;
  posted_[sender].push_back(std::move(task));
  world_.schedule(turn(), owner_, [this, sender] {
    auto& line = posted_[sender];
    broker::Task next = std::move(line.front());
    line.pop_front();
    run(next);
  });
}

void SimLoop::defer(broker::Task task) {
  CHECK(is_current(), "defer is called on the loop's thread");
  deferred_.push_back(std::move(task));
  world_.schedule(turn(), owner_, [this] {
    broker::Task next = std::move(deferred_.front());
    deferred_.pop_front();
    run(next);
  });
}

std::unique_ptr<broker::Alarm> SimLoop::make_alarm(broker::Task on_due) {
  return std::make_unique<SimAlarm>(*this, std::move(on_due));
}

}  // namespace stanchion::sim
