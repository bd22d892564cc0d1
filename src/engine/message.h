// The record of one live message: the little that changes, beside the Content that never does.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "engine/indexed_heap.h"
#include "model/content.h"
#include "model/ids.h"

namespace stanchion::engine {

struct Lane;

enum class State : std::uint8_t {
  kDelayed,   // Not to be received before `due`.
  kReady,     // May be received.
  kInFlight,  // Received; visible again at `due`.
};

struct Message {
  Seq seq;
  ContentPtr content;
  Lane* lane = nullptr;
  Message* previous = nullptr;  // Neighbours in the lane's line.
  Message* next = nullptr;
  Instant entered;        // When it came into this queue.
  Instant retained_from;  // The retention clock; earlier than `entered` for a standard dead letter.
  Instant due;            // See State.
  Instant received;       // The latest receive.
  Instant first_received;  // Valid if receive_count > 0.
  std::uint32_t receive_count = 0;
  std::uint32_t heap_index = kNotInHeap;   // In the queue's timers or in the lane's returned heap.
  std::uint32_t early_index = kNotInHeap;  // In the queue's heap of early expiries.
  State state = State::kReady;
  bool in_line = false;
  bool stays = false;  // Its dead-letter queue refused it: deliver it the next time.
};

}  // namespace stanchion::engine
