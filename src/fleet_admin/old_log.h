// The logs that a fleet has left in Kafka, for who founds it anew (rebuild.h).
//
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "broker/data_directory.h"
#include "fleet_admin/fleet_admin.h"
#include "kafka/follower.h"
#include "kafka/settings.h"
#include "model/ids.h"

namespace stanchion::fleet_admin {

class OldLog {
 public:
  // `fleet` is the name, and `data` a directory of one of its nodes. Null if Kafka has nothing of the
  // logs. Tells by `say` what there is. If the control topic is lost, or another fleet's, the entries
  // say whose they are; which of them were skipped is forgotten then.
  static Result<std::unique_ptr<OldLog>> open(const kafka::KafkaSettings& settings,
                                              const std::string& fleet,
                                              const broker::DataDirectory& data,
                                              const std::function<void(std::string_view)>& say);

  // Called with each valid record that is left, and with the digest of all up to it.
  using Visit =
      std::function<Status(Position, std::string_view record, const kafka::KafkaFollower&)>;

  // Returns why there may be more that cannot be read; empty: that was everything. Fails if `visit`
  // does, or Kafka does not answer.
  Result<std::string> read(ShardIndex shard, const Visit& visit);

 private:
  OldLog(std::unique_ptr<FleetAdmin> admin, std::string fleet, std::uint64_t id, bool knows_skipped)
      : admin_(std::move(admin)),
        fleet_(std::move(fleet)),
        id_(id),
        knows_skipped_(knows_skipped) {}

  std::unique_ptr<FleetAdmin> admin_;
  const std::string fleet_;
  const std::uint64_t id_;
  const bool knows_skipped_;  // By the control log.
};

}  // namespace stanchion::fleet_admin
