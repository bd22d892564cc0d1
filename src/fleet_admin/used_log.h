// Whether a partition may become the log of a shard, when a fleet is founded. Its control topic may
// be lost, so that no fleet seems to be there, while its logs still have what was acknowledged.
//
//   UL1  What a node has written is never removed, and no fleet is founded on it.
//   UL2  A filling that was interrupted (log_filler.h) may be made again: it wrote claims and records
//        of the epoch 1 as the node 0, for the same fleet, and no node has claimed the log since.
//   UL3  What such a filling has brought is not removed by one that has less: it may have been
//        complete, and what it was made from gone.
//   UL4  A log that is empty because its entries were removed was used: Kafka may show them again.
#pragma once

#include <optional>

#include "base/result.h"
#include "journal/shared_log.h"
#include "kafka/connection.h"
#include "kafka/log_judge.h"
#include "model/ids.h"

namespace stanchion::fleet_admin {

// Fails, and says what to do, if the partition has or had an entry.
Status refuse_log_with_entries(kafka::KafkaConnection& connection,
                               const kafka::Partition& partition);

// Fails, and says what to do, if the log has anything that a filling with the records up to `last`
// must not remove. `before`: as far as it stands before this offset.
Status refuse_used_log(kafka::KafkaConnection& connection, const kafka::ShardLog& log,
                       Position last, std::optional<journal::LogOffset> before = std::nullopt);

}  // namespace stanchion::fleet_admin
