// What the settings mean to a node of a fleet.
#pragma once

#include <memory>

#include "backup/online_backup.h"
#include "base/result.h"
#include "fleet_node/kafka_node.h"
#include "monitoring/fleet_figures.h"
#include "server/http_dispatcher.h"
#include "settings/settings.h"

namespace stanchion::server {

// What Prometheus is told of a node.
monitoring::FleetFigures to_fleet_figures(const fleet_node::KafkaNode& node);

// What load balancers are told of it.
HttpDispatcher::Readiness to_readiness(const fleet_node::KafkaNode& node);

// The member must be destroyed later than what this returns.
std::unique_ptr<backup::OnlineBackup> make_backup(fleet_node::KafkaNode& node);

Result<fleet_node::KafkaNodeOptions> to_kafka_node_options(const settings::Settings& settings);

}  // namespace stanchion::server
