// The first words on a connection between two nodes: who dials, of which fleet, what for; and the
// answer.
//
//   hello  = size u32, "StLk", oldest u8, newest u8, purpose u8, shards, process, session, lanes,
//            lane, shard, fleet, node, to
//   answer = size u32, accepted u8, version u8, process, text
//
// Numbers are varints. Both may become longer in later versions: what is behind the known fields is
// skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "fleet/control.h"
#include "model/ids.h"

namespace stanchion::link {

// The versions of frames (link/frame_codec.h) that this release reads and writes. Two nodes use the
// newest that both know.
inline constexpr std::uint8_t kLinkVersionOldest = 2;
inline constexpr std::uint8_t kLinkVersion = 2;

inline constexpr std::size_t kHelloSizeMax = 4'096;
inline constexpr std::uint32_t kLanesMax = 256;

struct Hello {
  enum class Purpose : std::uint8_t { kFrames = 1, kCopy = 2 };

  std::uint8_t oldest = kLinkVersionOldest;
  std::uint8_t newest = kLinkVersion;
  Purpose purpose = Purpose::kFrames;
  std::uint32_t shards = 0;
  std::uint64_t process = 0;
  std::uint64_t session = 0;  // The same on all lanes of a session, and never again.
  std::uint32_t lanes = 1;
  std::uint32_t lane = 0;
  ShardIndex shard;  // Whose store is to be copied.
  std::string fleet;
  fleet::NodeName node;
  fleet::NodeName to;  // Empty: whoever is there.

  friend bool operator==(const Hello&, const Hello&) = default;
};

struct HelloAnswer {
  bool accepted = false;
  std::uint8_t version = 0;
  std::uint64_t process = 0;
  std::string text = {};  // Why not.

  friend bool operator==(const HelloAnswer&, const HelloAnswer&) = default;
};

std::string encode(const Hello& hello);
std::string encode(const HelloAnswer& answer);

// Takes a complete message off the front of `input`; nullopt if more bytes are needed, and a failure
// if they are none.
Result<std::optional<Hello>> take_hello(std::string& input);
Result<std::optional<HelloAnswer>> take_answer(std::string& input);

// Why a node with this hello of its own does not talk to the dialler; nullopt if it does.
std::optional<std::string> refuse_hello(const Hello& mine, const Hello& theirs);

}  // namespace stanchion::link
