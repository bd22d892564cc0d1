// What a receive under an attempt id leaves behind: said once, for the decision and for its replay.
#pragma once

#include <utility>

#include "base/check.h"
#include "engine/queue.h"
#include "model/fact.h"
#include "model/limits.h"

namespace stanchion::engine {

// The messages of the fact were received already.
inline void remember_attempt(Queue& queue, const MessagesReceived& fact, Instant at) {
  if (fact.attempt_id.empty()) return;
  ReceiveAttempt attempt{.items = {}, .expires = at + limits::kReceiveAttemptWindow};
  for (const auto& item : fact.items) {
    const Message* message = queue.find(item.seq);
    CHECK(message != nullptr, "a received message is there");
    attempt.items.push_back({item.seq, message->receive_count, item.visible_again});
  }
  queue.remember_attempt(fact.attempt_id, std::move(attempt));
}

}  // namespace stanchion::engine
