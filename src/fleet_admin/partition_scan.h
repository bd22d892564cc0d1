// Reads what a partition has now, once. Only reads, and ends where the partition ended when it began,
// so that it ends also while others write.
#pragma once

#include <functional>

#include "base/result.h"
#include "kafka/connection.h"
#include "kafka/partition_reader.h"
#include "kafka/settings.h"

namespace stanchion::fleet_admin {

// What a log had when the scan began.
using LogRange = kafka::KafkaConnection::Range;

// `begin` is told the range, then `visit` all entries in order, until it returns false. A failure means
// that Kafka does not show the rest. Nobody else may read this partition by the same connection.
Status scan_partition(kafka::KafkaConnection& connection, const kafka::Partition& partition,
                      const std::function<void(const LogRange&)>& begin,
                      const std::function<bool(const kafka::PartitionReader&)>& visit);

}  // namespace stanchion::fleet_admin
