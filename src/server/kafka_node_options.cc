#include "server/kafka_node_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "link/frame_codec.h"
#include "model/limits.h"
#include "server/options.h"

namespace stanchion::server {

monitoring::FleetFigures to_fleet_figures(const fleet_node::KafkaNode& node) {
  const fleet_node::KafkaNode::Figures seen = node.figures();
  const fleet::Router::Statistics& routed = node.routed();
  monitoring::FleetFigures figures{.in_touch = seen.in_touch,
                                   .nodes_alive = seen.nodes_alive,
                                   .shards_without_owner = seen.shards_without_owner,
                                   .shards_stalled = seen.shards_stalled,
                                   .lags = {},
                                   .promotion_times = {},
                                   .forwarded = routed.forwarded,
                                   .held = routed.held,
                                   .unknown = routed.unknown,
                                   .given_up = routed.given_up};
  for (const auto& [shard, replica] : seen.replicas) {
    figures.shards_served += replica.serving;
    figures.shards_given_up += replica.given_up;
    if (replica.serving)
      figures.promotion_times[shard] = replica.last_promotion;
    else
      figures.lags[shard] = replica.lag;
    figures.claims += replica.counted.claims;
    figures.promotions += replica.counted.promotions;
    figures.losses += replica.counted.losses;
    figures.copies += replica.counted.copies;
  }
  return figures;
}

HttpDispatcher::Readiness to_readiness(const fleet_node::KafkaNode& node) {
  HttpDispatcher::Readiness readiness{.why_not = node.why_not_ready(),
                                      .given_up = node.given_up(),
                                      .without_owner = node.without_owner(),
                                      .stalled = {}};
  for (const auto& [shard, stalled] : node.stalled())
    readiness.stalled[shard] = {stalled.owner, stalled.stall.since, stalled.stall.why};
  return readiness;
}

std::unique_ptr<backup::OnlineBackup> make_backup(fleet_node::KafkaNode& node) {
  return std::make_unique<backup::OnlineBackup>(
      node.directory(), [&node](const std::string& into, backup::OnlineBackup::Saved saved) {
        node.back_up(into, std::move(saved));
      });
}

Result<fleet_node::KafkaNodeOptions> to_kafka_node_options(const settings::Settings& settings) {
  const settings::FleetSettings& fleet = settings.fleet;
  if (settings.limits.body_bytes.value > link::kRequestSizeMax)
    return fail(
        fmt::format("limits.body_bytes: the nodes of a fleet pass on requests of at most {}",
                    settings::format_byte_count({link::kRequestSizeMax})));
  const auto internal = settings::parse_listen(fleet.internal);
  if (!internal) return std::unexpected(internal.error());
  fleet_node::KafkaNodeOptions options{
      .fleet = fleet.name,
      .kafka = {},
      .one_copy = fleet.one_copy,
      .node = fleet.node,
      .zone = fleet.zone,
      .internal_host = internal->host,
      .internal_port = internal->port,
      .security = {.certificate_file = fleet.tls_certificate,
                   .key_file = fleet.tls_key,
                   .ca_file = fleet.tls_ca,
                   .secret_file = fleet.secret_file,
                   .accepted_secret_file = fleet.accepted_secret_file},
      .data = settings.server.data,
      .strict = settings.server.strict,
      .queues = queue_limits(settings.limits),
      .keeping = {.memory = settings.server.evict_beyond(),
                  .left_free = limits::kLeftFree,
                  .account_share = settings.limits.memory_share_per_account},
      .memory = {.receive_bytes = settings.limits.receive_bytes()},
      .memory_in_all = settings.server.memory.value,
      .write_timeout = fleet.write_timeout};
  options.kafka.brokers = fleet.kafka;
  for (const auto& [name, value] : fleet.kafka_settings.values)
    options.kafka.security.emplace_back(name, value);
  RETURN_IF_FAILED(kafka::check_security(options.kafka));
  return options;
}

}  // namespace stanchion::server
