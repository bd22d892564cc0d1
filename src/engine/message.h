// The record of one live message: the little that changes, together with the Content that never
// does.
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

// Of a message that was not received since it came into its queue: when its source did, if it is a
// dead letter. Earlier releases did not keep that.
inline Instant last_receive_of(const Content& content) {
  return content.last_received().value_or(Instant());
}

struct Message {
  Seq seq;
  ContentPtr content;  // Null while the content is only in the store.
  Lane* lane = nullptr;
  Chunk* home = nullptr;
  Message* previous = nullptr;  // Neighbours in the chunk, if it is a member.
  Message* next = nullptr;
  Instant entered;         // When it came into this queue.
  Instant retained_from;   // Start of retention; earlier than `entered` for a standard dead letter.
  Instant due;             // See State.
  Instant received;        // The time of the latest receive, here or in its source; 0 if unknown.
  Instant first_received;  // Valid if receive_count > 0.
  std::uint32_t receive_count = 0;
  std::uint32_t heap_index = kNoIndex;     // Index in the timers or the returned heap.
  std::uint32_t early_index = kNoIndex;    // Index in the queue's heap of early expiries.
  std::uint32_t unsaved_index = kNoIndex;  // Index among unsaved detached messages.
  State state = State::kReady;
  bool in_line = false;  // A member of its chunk.
  bool saved = false;    // The store has its content, or the checkpoint under way writes it …
  bool record_saved = false;   // … and its record as a detached message.
  bool entry_changed = false;  // The store's entry of it is outdated.
  bool reading = false;        // Its content was requested and has not been read yet.
  bool stays = false;          // Its dead-letter queue refused it: deliver it the next time.
};

}  // namespace stanchion::engine
