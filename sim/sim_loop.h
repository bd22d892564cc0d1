// broker::Loop as events of a virtual world: several "threads" of one process, exactly one of which
// runs at a time, in an order that the seed decides.
//
//   T1  Tasks that one sender posts to one loop run in their order; tasks of different senders and
//       timers interleave freely.
//   T2  is_current() is true exactly for the loop whose task runs.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "broker/loop.h"
#include "sim/world.h"

namespace stanchion::sim {

// State that the loops of one process share: which of them runs now.
struct Threads {
  static constexpr int kOutside = -1;  // Null: the journal's threads and the world.
  int current = kOutside;
  // Timers that fired in this second. Many times more than there are deadlines would mean that some
  // code sets a timer for now, again and again.
  Micros alarm_second = 0;
  int alarms = 0;
  Micros slowness = 50;  // The most that a task usually waits for its turn, in microseconds.
};

class SimLoop final : public broker::Loop {
 public:
  SimLoop(World& world, Owner owner, Threads& threads, int index)
      : world_(world), owner_(owner), threads_(threads), index_(index) {}

  void post(broker::Task task) override;
  void defer(broker::Task task) override;
  bool is_current() const override { return threads_.current == index_; }
  std::unique_ptr<broker::Alarm> make_alarm(broker::Task on_due) override;

  // Runs the task now as this loop's thread.
  void run(broker::Task& task);

 private:
  friend class SimAlarm;

  Micros turn();
  void count_alarm();

  World& world_;
  const Owner owner_;
  Threads& threads_;
  const int index_;
  std::map<int, std::deque<broker::Task>> posted_;  // By sender.
  std::deque<broker::Task> deferred_;
};

}  // namespace stanchion::sim
