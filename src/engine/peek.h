// One look at the messages of a stock, a page of a longer walk: what is wanted, how far the walk
// has come, and what it found.
//
// The walk visits lanes in the order in which they began, and the messages of each in order of Seq,
// whatever their state and wherever they are kept. Neither order changes while messages are
// received, come back, are evicted or read: so a message that is there all the time is seen once,
// however much happens between two pages. (After a restart a lane may be visited again, but none is
// left out: its beginning is then that of the messages that are left.)
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "engine/message.h"
#include "engine/store/stored_message.h"
#include "model/ids.h"
#include "model/limits.h"

namespace stanchion::engine {

struct PeekPosition {
  Seq lane;   // Where the lane began; all before it was seen.
  Seq after;  // The last message of it that was seen.

  friend bool operator==(const PeekPosition&, const PeekPosition&) = default;
};

// A message that was found.
struct Sighting {
  Seq seq;
  ContentPtr content;
  State state = State::kReady;
  Instant entered;
  Instant retained_from;
  Instant due;
  Instant received;
  Instant first_received;
  std::uint32_t receive_count = 0;
};

struct Peek {
  // What is wanted.
  bool ready = true;
  bool delayed = true;
  bool in_flight = true;
  std::optional<std::string> group;
  std::string search;
  std::size_t messages_max = 1;

  PeekPosition at;
  std::vector<Sighting> found;
  bool finished = false;  // There is nothing behind `at`.
  bool blocked = false;   // Something must be read first; the same look is to be made again then.

  // What is left of the work that one look may do.
  std::size_t bytes = limits::kPeekBytesMax;
  std::size_t looks = limits::kPeekLooksMax;
  std::size_t searched = limits::kPeekSearchedBytesMax;
  bool moved = false;  // Something was looked at.

  bool wants(State state) const;
  // Whether a content contains the text that is searched for.
  bool matches(const Content& content);
  // Adds a message, if it is wanted, and goes on behind it; false if the page ends before it.
  bool take(Sighting sighting);
};

}  // namespace stanchion::engine
