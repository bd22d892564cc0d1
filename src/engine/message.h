// The record of one live message: the little that changes, beside the Content that never does.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "engine/indexed_heap.h"
#include "model/content.h"
#include "model/ids.h"

namespace stanchion::engine {

struct Chunk;
struct Lane;

enum class State : std::uint8_t {
  kDelayed,   // Not to be received before `due`.
  kReady,     // May be received.
  kInFlight,  // Received; visible again at `due`.
};

struct Message {
  Seq seq;
  ContentPtr content;  // Null while it is only in the store.
  Lane* lane = nullptr;
  Chunk* home = nullptr;
  Message* previous = nullptr;  // Neighbours in the chunk, if it is a member.
  Message* next = nullptr;
  Instant entered;        // When it came into this queue.
  Instant retained_from;  // The retention clock; earlier than `entered` for a standard dead letter.
  Instant due;            // See State.
  Instant received;       // The latest receive.
  Instant first_received;  // Valid if receive_count > 0.
  std::uint32_t receive_count = 0;
  std::uint32_t heap_index = kNoIndex;     // In the queue's timers or in the lane's returned heap.
  std::uint32_t early_index = kNoIndex;    // In the queue's heap of early expiries.
  std::uint32_t unsaved_index = kNoIndex;  // Among the strangers that a checkpoint must write.
  State state = State::kReady;
  bool in_line = false;  // A member of its chunk.
  bool saved = false;    // The store has, or the checkpoint under way brings it, its content …
  bool record_saved = false;   // … and its record as a stranger.
  bool entry_changed = false;  // What the store has of it is no longer right.
  bool reading = false;        // Its content was asked for and has not come yet.
  bool stays = false;          // Its dead-letter queue refused it: deliver it the next time.
};

}  // namespace stanchion::engine
