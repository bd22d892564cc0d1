// A copy of a data directory that can be started: made by the server that runs on it, if there is
// one, on request through its control socket, else by this process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/ids.h"

namespace stanchion::backup {

// The control socket of a server with this data directory.
std::string control_socket(const std::string& data);

// Whether a directory is read before it is copied as a start would read it, and refused if no server
// could start on it, or anything in it is damaged. A running server has read its directory already.
enum class Check { kFirst, kNot };

struct Copied {
  bool checked = true;
  std::string fleet;  // Whose node the directory belongs to; empty: no fleet's.
  // Of a node's: how many shards the fleet has, those of which the copy has no checkpoint, and how old
  // the others are.
  std::uint32_t shards = 0;
  std::vector<ShardIndex> missing;
  Instant oldest;
};

// Returns when the backup is complete and durable.
Result<Copied> back_up(const std::string& data, const std::string& to, Check check);

}  // namespace stanchion::backup
