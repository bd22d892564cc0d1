// A note beside the store of a fleet's shard: the log has other records than the store, or fewer. The
// store may be all that is left of them, so it is not replaced by a copy (RE4 in fleet/replica.h), also
// when the node is started again. Whoever removes the shard's directory removes both.
//
// Any thread; one at a time for a shard.
#pragma once

#include "base/result.h"
#include "broker/data_directory.h"

namespace stanchion::fleet_admin {

Result<bool> has_past_note(const broker::DataDirectory& data, ShardIndex shard);

// Durable on return. It does not matter whether there is a note already.
Status write_past_note(const broker::DataDirectory& data, ShardIndex shard);
Status remove_past_note(const broker::DataDirectory& data, ShardIndex shard);

}  // namespace stanchion::fleet_admin
