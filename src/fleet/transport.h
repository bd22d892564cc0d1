// How the nodes of a fleet talk to each other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "engine/engine.h"
#include "fleet/control.h"
#include "model/reply.h"
#include "model/request.h"
#include "model/transfer.h"

namespace stanchion::fleet {

// A request for a shard that the receiver serves, and its answer.
struct Forward {
  std::uint64_t id = 0;  // Of the sender.
  ShardIndex shard;
  Request request;
  engine::Neighbours neighbours;
  std::string guard;  // Packed; empty: nothing is checked.
};
struct Answered {
  std::uint64_t id = 0;
  ShardIndex shard;
  Reply reply;
};
// The client of a request has gone.
struct Cancel {
  std::uint64_t id = 0;
  ShardIndex shard;
};

// What does the shard know about the queues that a request of another shard concerns?
struct Ask {
  std::uint64_t id = 0;
  ShardIndex shard;
  engine::Needs needs;
  engine::Neighbours neighbours;
};
struct Told {
  std::uint64_t id = 0;
  ShardIndex shard;
  engine::Neighbours neighbours;
  bool known = false;
};

// Between two shards.
struct Deliver {
  ShardIndex shard;
  Transfer transfer;
  SourceEpoch epoch;
};
struct Verdict {
  ShardIndex shard;
  Settlement settlement;
};

using Frame = std::variant<Forward, Answered, Cancel, Ask, Told, Deliver, Verdict>;

// Whom a node can send frames to and get frames from, and why not others, as far as that is known.
struct Links {
  std::set<NodeName> with;
  std::map<NodeName, std::string> without;
};

// Frames of one node to another arrive in order, or the connection between the two breaks: then the
// receiver of an answer is told, and nothing that was under way arrives later.
class Transport {
 public:
  virtual ~Transport() = default;
  // Any thread. False: there is no connection, so the frame was certainly not sent.
  virtual bool send(const NodeName& to, Frame frame) = 0;
  // Any thread. None: nothing is known about links.
  virtual std::optional<Links> links() { return std::nullopt; }
};

}  // namespace stanchion::fleet
