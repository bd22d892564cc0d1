// What the tests of the control log share: records of every kind.
#pragma once

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/digest.h"
#include "fleet/control_record.h"

namespace stanchion::fleet {

// A record of each kind, with nothing at its default.
inline std::vector<ControlRecord> all_kinds_of_records() {
  return {Beat{.node = "node-1",
               .process = 0xFEDCBA9876543210,
               .zone = "zone_a",
               .address = "node-1.example.com:19324",
               .version = "1.2.3",
               .clock = from_millis(1'700'000'000'123),
               .format = 1,
               .draining = true,
               .ready = true,
               .reached = {{ShardIndex(0), {Position(300), Position(200), 7}},
                           {ShardIndex(255), {Position(1), Position(0), 0}}},
               .count = 300,
               .given_up = {{ShardIndex(7), "its log is damaged"}},
               .linked = {{"node-2", "node-3"}},
               .unlinked = {{"node-4", "it has another secret"}},
               .other_past = {ShardIndex(7), ShardIndex(200)},
               .stalled = {{ShardIndex(255), {from_millis(1'700'000'000'100), "no leader"}}}},
          CoordinatorClaim{Term(12), "node-1", 99},
          Assignment{.term = Term(12),
                     .shard = ShardIndex(23),
                     .number = AssignmentNo(500),
                     .owner = "node-1",
                     .standbys = {"node-2", "node-3"},
                     .previous = "node-2",
                     .applied_move = 77},
          Release{"node-2", ShardIndex(23), AssignmentNo(500)},
          FleetMetadata{.id = 5,
                        .name = "orders",
                        .shards = 24,
                        .format = 1,
                        .created = from_millis(1'700'000'000'000)},
          Drain{"node-3", true},
          Move{.id = 9, .shard = ShardIndex(2), .to = "node-3", .by = "admin at host"},
          Forget{"node-4"},
          Skip{.shard = ShardIndex(3), .offset = 1234567, .by = "admin at host"}};
}

// One that fits into a small fleet: few nodes, shards and terms, so that many have the same key.
inline ControlRecord some_record(std::mt19937_64& random, std::uint32_t shards) {
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const auto node = [&] { return "n" + std::to_string(below(4)); };
  const auto shard = [&] { return ShardIndex(static_cast<std::uint32_t>(below(shards))); };
  switch (below(9)) {
    case 0:
      return Beat{.node = node(), .process = below(3), .zone = "a", .address = node()};
    case 1:
      return CoordinatorClaim{Term(1 + below(6)), node(), random()};
    case 2:
      return Assignment{.term = Term(below(6)),
                        .shard = shard(),
                        .number = AssignmentNo(below(50)),
                        .owner = node(),
                        .standbys = {node()},
                        .previous = node(),
                        .applied_move = below(3)};
    case 3:
      return Release{node(), shard(), AssignmentNo(below(50))};
    case 4:
      return FleetMetadata{.id = random(), .name = "fleet", .shards = shards};
    case 5:
      return Drain{node(), below(2) == 0};
    case 6:
      return Move{.id = 1 + below(3), .shard = shard(), .to = node()};
    case 7:
      return Skip{.shard = shard(), .offset = below(4)};
    default:
      return Forget{node()};
  }
}

// A record of a format that no release knows yet, with the checksum that makes it one.
inline std::string of_later_format(std::string_view fields) {
  std::string bytes = "STNC\x02\x01";
  bytes += fields;
  ByteWriter(bytes).u64(xxh3_64(bytes));
  return bytes;
}

}  // namespace stanchion::fleet
