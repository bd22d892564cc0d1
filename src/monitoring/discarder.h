// Frees what takes long to free in the background, as long as there is one, and then at once: whoever
// has the last reference may be a task that never ran, and dies after the background.
//
// Any thread.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "broker/background.h"

namespace stanchion::monitoring {

class Discarder {
 public:
  // `background` outlives the discarder, or stop() is called before it ends.
  explicit Discarder(broker::Background& background) : state_(std::make_shared<State>()) {
    state_->background = &background;
  }
  ~Discarder() { stop(); }
  Discarder(const Discarder&) = delete;
  Discarder& operator=(const Discarder&) = delete;

  template <class T>
  std::shared_ptr<T> share(std::unique_ptr<T> object) {
    return {object.release(), [state = state_](T* old) {
              std::unique_ptr<T> last(old);
              const std::lock_guard lock(state->mutex);
              if (state->background != nullptr)
                state->background->run(broker::Work::kReport, [last = std::move(last)] {});
            }};
  }

  // From now on the background is left alone.
  void stop() {
    const std::lock_guard lock(state_->mutex);
    state_->background = nullptr;
  }

 private:
  struct State {
    std::mutex mutex;
    broker::Background* background = nullptr;  // Guarded by mutex.
  };
  const std::shared_ptr<State> state_;
};

}  // namespace stanchion::monitoring
