#include "server/options.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace stanchion::server {
namespace {

// The host of "https://queues.example.com:9324/sqs".
std::string host_of_url(std::string_view url) {
  url.remove_prefix(std::min(url.find("//"), url.size()));
  while (url.starts_with('/')) url.remove_prefix(1);
  return std::string(service::name_of_host(url.substr(0, url.find('/'))));
}

}  // namespace

net::HttpLimits to_http_limits(const settings::LimitSettings& l) {
  net::HttpLimits limits;
  limits.connections_max = l.connections;
  limits.per_address_max =
      l.connections_per_address != 0 ? l.connections_per_address : (l.connections + 1) / 2;
  limits.per_address_here_too = l.connections_per_address != 0;
  limits.held_bytes_max = l.memory.value;
  limits.body_bytes_max = l.body_bytes.value;
  limits.header_bytes_max = l.header_bytes.value;
  limits.header_timeout = l.header_timeout;
  limits.body_timeout = l.body_timeout;
  limits.idle_timeout = l.idle_timeout;
  limits.write_timeout = l.write_timeout;
  return limits;
}

broker::QueueLimits queue_limits(const settings::LimitSettings& l) {
  return {.per_account = l.queues_per_account,
          .bytes_per_account = l.queue_bytes_per_account.value,
          .bytes = l.queue_bytes.value};
}

service::PageGuard make_page_guard(const settings::ServerSettings& server) {
  std::vector<std::string> hosts = settings::split_hosts(server.allowed_hosts);
  if (!server.public_url.empty()) hosts.push_back(host_of_url(server.public_url));
  hosts.push_back(server.listen.host);
  return service::PageGuard({std::move(hosts), server.insecure, server.trust_forwarded});
}

std::vector<console::ServerRow> rows_of(settings::Settings settings) {
  std::vector<console::ServerRow> rows;
  for (const settings::Setting& one : settings::list_settings(settings)) {
    const std::string value = one.value();
    const bool hidden = one.is_secret() && value != "\"\"";
    rows.push_back(
        {one.name(), hidden ? std::string(settings::kHidden) : value, std::string(one.help)});
  }
  return rows;
}

}  // namespace stanchion::server
