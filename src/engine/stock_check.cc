// The invariants of a stock.
#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "engine/stock.h"

namespace stanchion::engine {

void Stock::check_invariants() const {
  check_messages();
  check_lanes();
  chunks_.check_invariants(lanes_, messages_.table());
  writer_.check_invariants();
}

void Stock::check_messages() const {
  std::size_t cold = 0;
  for (const auto& [first, chunk] : chunks_.cold().by_first()) cold += chunk->members;
  states_.check_invariants(messages_.table(), cold);
  messages_.check_invariants();
  messages_.table().for_each([&](const Message& m) {
    CHECK(m.lane != nullptr && m.home != nullptr, "Q4: a live message has a lane and a home");
    if (m.state == State::kDelayed)
      CHECK(m.in_line == fifo_, "Q4: delayed messages stand in line on FIFO queues only");
    if (m.state == State::kInFlight) CHECK(!m.in_line, "Q4: a message in flight stands in no line");
  });
}

void Stock::check_lanes() const {
  struct Members {
    std::uint32_t waiting = 0;
    std::uint32_t delayed = 0;
    std::uint32_t in_flight = 0;
  };
  std::unordered_map<const Lane*, Members> members;
  for (const auto& [first, chunk] : chunks_.cold().by_first())
    members[&chunk->lane].waiting += chunk->members;
  messages_.table().for_each([&](const Message& m) {
    Members& of_lane = members[m.lane];
    of_lane.waiting += m.state == State::kReady || m.in_line;
    of_lane.delayed += m.state == State::kDelayed && !m.in_line;
    of_lane.in_flight += m.state == State::kInFlight;
  });
  CHECK(lanes_.is_sound(), "Q4: the heap of lanes is sound");
  std::size_t locked = 0;
  lanes_.for_each([&](const Lane& lane) {
    locked += lane.locks > 0;
    const Members& expected = members[&lane];
    CHECK(lane.is_sound(), "L1 to L4");
    CHECK(lane.waiting == expected.waiting, "Q4: what waits is in its lane");
    CHECK(lane.delayed == expected.delayed, "Q4: a lane knows what is to come");
    CHECK(fifo_ ? lane.locks >= expected.in_flight : lane.locks == expected.in_flight, "Q3: locks");
    CHECK((lane.first_blocker != nullptr) == (fifo_ && lane.locks > 0), "Q3: blockers");
    CHECK(lanes_.is_in_place(lane), "S3, S4");
    CHECK(lanes_.is_eligible(lane) == lanes_.may_be_received_from(lane), "S1");
    CHECK(!lane.idle() || lane.first_chunk != nullptr || lane.group.empty(), "S2");
  });
  CHECK(locked == states_.locked_lanes(), "Q3: lanes with locks are counted");
}

}  // namespace stanchion::engine
