#include "cli/member_options.h"

#include <fmt/format.h>

#include "link/frame_codec.h"
#include "model/limits.h"

namespace stanchion::cli {

Result<member::MemberOptions> to_member_options(const settings::Settings& settings) {
  const settings::FleetSettings& fleet = settings.fleet;
  if (settings.limits.body_bytes.value > link::kRequestSizeMax)
    return fail(fmt::format("limits.body_bytes: the nodes of a fleet pass on requests of at most {}",
                            settings::format_byte_count({link::kRequestSizeMax})));
  const auto internal = settings::parse_listen(fleet.internal);
  if (!internal) return std::unexpected(internal.error());
  member::MemberOptions options{
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
                   .secret_file = fleet.secret_file},
      .data = settings.server.data,
      .strict = settings.server.strict,
      .keeping = {.memory = settings.server.memory.value,
                  .left_free = limits::kLeftFree,
                  .account_share = settings.limits.memory_share_per_account}};
  options.kafka.brokers = fleet.kafka;
  for (const auto& [name, value] : fleet.kafka_settings.values)
    options.kafka.security.emplace_back(name, value);
  RETURN_IF_FAILED(kafka::check_security(options.kafka));
  return options;
}

}  // namespace stanchion::cli
