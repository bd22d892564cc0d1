// What an operator does with a fleet, straight on its topics: found it, look at it, and tell it what
// is wanted. No node has to run for that.
//
// Times are those of the brokers, by which every record of the control log is stamped. One thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/control.h"
#include "fleet_admin/control_reader.h"
#include "kafka/connection.h"
#include "model/limits.h"
#include "os/entropy.h"

namespace stanchion::fleet_admin {

// A shard's log, in entries. They are batches, so that there are more messages than this.
struct LogSize {
  journal::LogOffset first;
  journal::LogOffset end;
};

class FleetAdmin {
 public:
  // `fleet` is the fleet's name.
  static Result<std::unique_ptr<FleetAdmin>> open(const kafka::KafkaSettings& settings,
                                                  std::string fleet);

  // Makes what is missing: the topics and the metadata record. Tells what there is by `say`. Fails,
  // and changes nothing, if there is a fleet of this name that has another number of shards, or there
  // is none, but a log of this name has entries (UL1).
  Status found(std::uint32_t shards, bool one_copy, os::Entropy& entropy, Instant now,
               const std::function<void(std::string_view)>& say);
  // The same for a fleet that begins with something: `fill` is called when the topics are there, and
  // before the fleet is. Fails, and makes nothing, if there is such a fleet already, or its logs were
  // used.
  struct Beginning {
    std::uint64_t id = 0;  // Of the fleet.
    std::function<Status(kafka::KafkaConnection&)> fill;
  };
  Status found_with(const Beginning& beginning, std::uint32_t shards, bool one_copy, Instant now,
                    const std::function<void(std::string_view)>& say);

  // Fails if there are logs of this name in which anything but an interrupted filling for the fleet
  // `id` has written (UL2).
  Status refuse_used_logs(std::uint64_t id);

  // Reads the control log to its end. Fails if there is no such fleet.
  Status read();
  // The same, and whether there is one.
  Result<bool> is_founded();
  // Reads on until `enough`, or for so long.
  Status watch(std::chrono::milliseconds time, const std::function<bool()>& enough);
  // Watches until all nodes were heard of, or it is certain that some are dead.
  Status listen();

  // Returns when the record is in the log.
  Status append(const fleet::ControlRecord& record);

  // By shard; none where Kafka does not answer within seconds.
  std::vector<std::optional<LogSize>> log_sizes();

  // For everything but reading the control log: as a node's, it does not verify batches.
  kafka::KafkaConnection& connection() { return *connection_; }

  // After read().
  const fleet::ControlState& state() const { return state_; }
  const fleet::FleetMetadata& metadata() const { return *state_.metadata(); }
  // Whether the node was heard of since read() had come to the end.
  bool is_alive(const fleet::NodeName& node) const { return heard_.contains(node); }
  // When the last beat of a node was appended.
  const std::map<fleet::NodeName, Instant>& last_beats() const { return last_beats_; }

 private:
  FleetAdmin(std::unique_ptr<kafka::KafkaConnection> connection,
             std::unique_ptr<kafka::KafkaConnection> control_connection, std::string fleet)
      : connection_(std::move(connection)),
        control_connection_(std::move(control_connection)),
        fleet_(std::move(fleet)) {}
  Status make_topics(std::uint32_t shards, bool one_copy,
                     const std::function<void(std::string_view)>& say);
  // Fails if there is a fleet of this name that has another number of shards.
  Status look_for_fleet(std::uint32_t shards);
  // Until `refuse` fails for one of the logs of this name.
  Status for_each_log(const std::function<Status(ShardIndex)>& refuse);
  Status write_metadata(const fleet::FleetMetadata& metadata,
                        const std::function<void(std::string_view)>& say);
  Status read_records();
  void take(const ControlReader::Entry& entry);

  std::unique_ptr<kafka::KafkaConnection> connection_;
  std::unique_ptr<kafka::KafkaConnection> control_connection_;  // Reads the control log.
  const std::string fleet_;
  std::unique_ptr<ControlReader> reader_;
  // Shards beyond those of the fleet stay empty.
  fleet::ControlState state_{limits::kShardsMax};
  bool live_ = false;  // What is read now was appended just now.
  std::map<fleet::NodeName, Instant> last_beats_;
  std::map<fleet::NodeName, Instant> heard_;
};

}  // namespace stanchion::fleet_admin
