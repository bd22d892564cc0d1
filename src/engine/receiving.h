// What a receive takes next, and what it holds meanwhile.
#pragma once

#include "engine/lane.h"
#include "engine/message.h"
#include "model/ids.h"

namespace stanchion::engine {

// The next message that a receive should take.
struct Next {
  Message* message = nullptr;
  const Lane* lane = nullptr;  // Without a message: the lane's next one is not in memory.

  explicit operator bool() const { return lane != nullptr; }
  bool is_cold() const { return message == nullptr || !message->content; }
};

// The lane of a FIFO queue from which a receive took its last message: the same receive may take
// more from it, but only up to the first message that was already away before.
struct Hold {
  Hold() = default;
  explicit Hold(const Lane& held) : lane(&held), until(held.blocked_from()) {}

  const Lane* lane = nullptr;
  Seq until;
};

}  // namespace stanchion::engine
