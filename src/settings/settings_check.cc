// Problems that show only when all settings are known.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/rules/attributes.h"
#include "model/limits.h"
#include "service/authorizer.h"
#include "settings/settings.h"

namespace stanchion::settings {
namespace {

constexpr std::uint64_t kMemoryMin = std::uint64_t{64} << 20;
constexpr std::uint64_t kHeaderBytesMin = 4 * 1024;
constexpr std::uint64_t kHeaderBytesMax = 1024 * 1024;
constexpr std::uint64_t kBodyBytesMin = 64 * 1024;
constexpr std::uint64_t kBodyBytesMax = std::uint64_t{256} << 20;
constexpr std::uint64_t kLimitsMemoryMin = std::uint64_t{16} << 20;
constexpr std::size_t kTokenSizeMin = 16;
constexpr std::size_t kFleetNameSizeMax = 64;
constexpr std::uint32_t kConnectionsMax = 10'000'000;
constexpr std::chrono::milliseconds kTimeoutMax = std::chrono::hours(24);
constexpr std::chrono::milliseconds kWriteTimeoutMin = std::chrono::seconds(1);

class Problems {
 public:
  explicit Problems(const Settings& settings) : settings_(settings) {}

  // `name` is a value's name; the text says where the value was set.
  void add(std::string_view name, std::string_view what) {
    const auto origin = settings_.origins.find(name);
    found_.push_back(
        fmt::format("{}: {}", origin == settings_.origins.end() ? name : origin->second, what));
  }
  void add_at(std::string_view origin, std::string_view what) {
    found_.push_back(fmt::format("{}: {}", origin, what));
  }
  std::vector<std::string> take() { return std::move(found_); }

 private:
  const Settings& settings_;
  std::vector<std::string> found_;
};

void check_reach(const Settings& s, Problems& problems) {
  if (s.server.insecure && !s.accounts.empty())
    problems.add("server.insecure",
                 "accounts are configured, so callers must sign their calls; remove either the "
                 "accounts or insecure");
  if (!s.server.unix_socket.empty() || is_loopback(s.server.listen.host) || s.server.insecure ||
      !s.accounts.empty())
    return;
  problems.add(
      "server.listen",
      fmt::format("{} can be reached from other machines, and callers need no key. Listen on "
                  "127.0.0.1, configure accounts ([[account]] in stanchion.toml), or use "
                  "--insecure if that is what you want",
                  s.server.listen.host));
}

// A name or an address, in which a star may replace the part before the first dot, or everything.
bool is_host_pattern(std::string_view host) {
  if (host == "*") return true;
  if (host.starts_with("*.")) host.remove_prefix(2);
  in6_addr address{};
  if (inet_pton(AF_INET6, std::string(host).c_str(), &address) == 1) return true;
  return !host.empty() && std::ranges::all_of(host, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

void check_server(const ServerSettings& server, Problems& problems) {
  if (!is_account_id(server.account))
    problems.add("server.account",
                 fmt::format("\"{}\" is not an account id, which has 12 digits", server.account));
  if (!is_region_name(server.region))
    problems.add(
        "server.region",
        fmt::format("\"{}\" is not a region; give a name such as us-east-1", server.region));
  if (server.threads > limits::kShardsMax)
    problems.add("server.threads", fmt::format("goes up to {}", limits::kShardsMax));
  if (server.shards > limits::kShardsMax)
    problems.add("server.shards", fmt::format("goes up to {}", limits::kShardsMax));
  if (server.memory.value < kMemoryMin)
    problems.add("server.memory",
                 fmt::format("is at least {}", format_byte_count(ByteCount{kMemoryMin})));
  if (!server.in_memory && server.data.empty())
    problems.add("server.data", "name a directory, or set in_memory");
  for (const std::string& host : split_hosts(server.allowed_hosts))
    if (!is_host_pattern(host))
      problems.add("server.allowed_hosts",
                   fmt::format("\"{}\" is not a name; give names without ports, such as "
                               "stanchion,*.queues.example.com, or * for any",
                               host));
  const std::string& url = server.public_url;
  const bool has_scheme = url.starts_with("http://") || url.starts_with("https://");
  if (!url.empty() &&
      (!has_scheme || url.ends_with("//") || url.find_first_of("?# \"\\") != std::string::npos))
    problems.add("server.public_url", "give a URL such as https://queues.example.com");
  else if (url.ends_with('/'))
    problems.add("server.public_url", "remove the slash at the end");
}

void check_tls(const TlsSettings& tls, Problems& problems) {
  if (tls.certificate.empty() != tls.key.empty())
    problems.add(tls.key.empty() ? "tls.certificate" : "tls.key",
                 "TLS needs both, tls.certificate and tls.key");
}

void check_metrics(const Settings& s, Problems& problems) {
  const MetricsSettings& metrics = s.metrics;
  const auto is_pattern = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '*' || c == ',' || c == ' ';
  };
  if (metrics.queues.empty() || !std::ranges::all_of(metrics.queues, is_pattern))
    problems.add("metrics.queues", "give all, active, none, or names such as orders*,billing");
  if (metrics.token == kHidden)
    problems.add("metrics.token", "is the placeholder for a hidden secret; give the token itself");
  if (!metrics.token.empty() && metrics.token.size() < kTokenSizeMin)
    problems.add("metrics.token",
                 fmt::format("is a secret of at least {} characters", kTokenSizeMin));
  if (!std::ranges::all_of(metrics.token, [](char c) { return c > ' ' && c <= '~'; }))
    problems.add("metrics.token",
                 "may have letters, digits and other ASCII characters, but no spaces");
  if (metrics.listen.empty()) return;
  const auto address = parse_listen(metrics.listen);
  if (!address) return problems.add("metrics.listen", address.error().message);
  if (!is_loopback(address->host) && metrics.token.empty() && !s.server.insecure)
    problems.add("metrics.listen",
                 fmt::format("{} can be reached from other machines: set metrics.token too, or "
                             "listen on 127.0.0.1",
                             address->host));
}

void check_limits(const LimitSettings& l, Problems& problems) {
  const auto within = [&](std::string_view name, ByteCount value, std::uint64_t least,
                          std::uint64_t most) {
    if (value.value < least || value.value > most)
      problems.add(name, fmt::format("is from {} to {}", format_byte_count(ByteCount{least}),
                                     format_byte_count(ByteCount{most})));
  };
  within("limits.body_bytes", l.body_bytes, kBodyBytesMin, kBodyBytesMax);
  within("limits.header_bytes", l.header_bytes, kHeaderBytesMin, kHeaderBytesMax);
  if (l.memory_share_per_account < 1 || l.memory_share_per_account > 100)
    problems.add("limits.memory_share_per_account", "is from 1 to 100, percent of server.memory");
  // Room for a few bodies at the same time, each in memory that grows by doubling.
  const std::uint64_t least = std::max(kLimitsMemoryMin, 4 * l.body_bytes.value);
  if (l.memory.value < least)
    problems.add("limits.memory",
                 fmt::format("is at least {}, and at least four times limits.body_bytes",
                             format_byte_count(ByteCount{kLimitsMemoryMin})));
  if (l.connections < 1 || l.connections > kConnectionsMax)
    problems.add("limits.connections", fmt::format("is from 1 to {}", kConnectionsMax));
  const std::pair<std::string_view, std::chrono::milliseconds> timeouts[] = {
      {"limits.header_timeout", l.header_timeout},
      {"limits.body_timeout", l.body_timeout},
      {"limits.idle_timeout", l.idle_timeout},
      {"limits.write_timeout", l.write_timeout}};
  for (const auto& [name, value] : timeouts)
    if (value.count() < 1 || value > kTimeoutMax) problems.add(name, "is from 1ms to 24h");
}

// What names a fleet, a node or a zone: it becomes a part of topics, and of keys in them.
bool is_fleet_name(std::string_view text) {
  return !text.empty() && text.size() <= kFleetNameSizeMax && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

// Those without which a server is no node of a fleet, and those that only a node has.
void check_fleet_is_whole(const FleetSettings& fleet, Problems& problems) {
  const std::pair<std::string_view, const std::string*> needed[] = {
      {"fleet.name", &fleet.name},
      {"fleet.kafka", &fleet.kafka},
      {"fleet.node", &fleet.node},
      {"fleet.zone", &fleet.zone},
      {"fleet.internal", &fleet.internal}};
  for (const auto& [name, value] : needed)
    if (value->empty())
      problems.add(name,
                   "is missing: a node of a fleet needs fleet.name, fleet.kafka, fleet.node, "
                   "fleet.zone and fleet.internal");
  const bool certificate = !fleet.tls_certificate.empty();
  if (certificate != !fleet.tls_key.empty() || certificate != !fleet.tls_ca.empty())
    problems.add(certificate              ? "fleet.tls_certificate"
                 : !fleet.tls_key.empty() ? "fleet.tls_key"
                                          : "fleet.tls_ca",
                 "TLS between nodes needs all three: fleet.tls_certificate, fleet.tls_key and "
                 "fleet.tls_ca");
}

void check_fleet_names(const FleetSettings& fleet, Problems& problems) {
  const std::pair<std::string_view, const std::string*> names[] = {
      {"fleet.name", &fleet.name}, {"fleet.node", &fleet.node}, {"fleet.zone", &fleet.zone}};
  for (const auto& [name, value] : names)
    if (!value->empty() && !is_fleet_name(*value))
      problems.add(
          name, fmt::format("\"{}\" is not a valid name: names have letters, digits, . _ and -, up "
                            "to {} of them",
                            *value, kFleetNameSizeMax));
  for (const std::string& broker : split_hosts(fleet.kafka))
    if (const auto address = parse_listen(broker); !address || address->port == 0)
      problems.add("fleet.kafka",
                   fmt::format("\"{}\" is not a broker; give HOST:PORT,HOST:PORT", broker));
  for (const auto& [name, value] : fleet.kafka_settings.values)
    if (value == kHidden)
      problems.add(
          "fleet.kafka_settings",
          fmt::format("{} is the placeholder for a hidden secret; put the secret back", name));
}

void check_internal(const FleetSettings& fleet, Problems& problems) {
  if (fleet.secret_file.empty() && !fleet.accepted_secret_file.empty())
    problems.add("fleet.accepted_secret_file",
                 "is a second secret: set the one that this node offers, fleet.secret_file");
  const auto address = parse_listen(fleet.internal);
  if (!address) return problems.add("fleet.internal", address.error().message);
  if (address->host == "0.0.0.0" || address->host == "::")
    return problems.add(
        "fleet.internal",
        fmt::format("{} is not an address that other nodes can reach; give a name or address that "
                    "they can use",
                    address->host));
  if (!is_loopback(address->host) && fleet.secret_file.empty() && fleet.tls_certificate.empty())
    problems.add(
        "fleet.internal",
        fmt::format("{} can be reached from other machines, and nodes do not authenticate each "
                    "other: set fleet.secret_file, or fleet.tls_certificate, fleet.tls_key and "
                    "fleet.tls_ca",
                    address->host));
}

void check_fleet(const Settings& s, Problems& problems) {
  const FleetSettings& fleet = s.fleet;
  if (fleet == FleetSettings()) return;
  check_fleet_is_whole(fleet, problems);
  check_fleet_names(fleet, problems);
  if (!fleet.internal.empty()) check_internal(fleet, problems);
  if (fleet.write_timeout < kWriteTimeoutMin || fleet.write_timeout > kTimeoutMax)
    problems.add("fleet.write_timeout", "is from 1s to 24h");
  if (s.server.in_memory)
    problems.add("server.in_memory", "a node of a fleet keeps its stores on disk; remove this");
  if (s.server.virtual_time)
    problems.add("server.virtual_time", "the nodes of a fleet share one time; remove this");
  if (s.server.shards != 0)
    problems.add("server.shards",
                 "stanchion fleet init has fixed the number of shards; remove this");
}

// The attribute that is wrong by itself, as a part of the queue.
std::string wrong_attribute(const QueueAttributes& base, const StringMap& attributes) {
  for (const auto& attribute : attributes)
    if (!engine::with_attributes(base, {attribute})) return "attributes." + attribute.first;
  return "attributes";
}

// Validates the queue as the engine will, before the server starts.
void check_queue(const Settings& settings, const QueueSettings& queue, Problems& problems) {
  const auto wrong = [&](std::string_view part, const Error& error) {
    problems.add_at(queue.place_of(part), fmt::format("queue {}: {}", queue.name, error.message));
  };
  const auto fifo = engine::fifo_of_new_queue(queue.name, queue.attributes);
  if (!fifo)
    return wrong(queue.places.contains("attributes.FifoQueue") ? "attributes.FifoQueue" : "name",
                 fifo.error());
  QueueAttributes base;
  base.fifo = *fifo;
  if (const auto set = engine::with_attributes(base, queue.attributes); !set)
    return wrong(wrong_attribute(base, queue.attributes), set.error());
  if (const auto error = service::check_new_policy(
          CreateQueue{ref_of(settings, queue), queue.attributes, queue.tags}))
    return wrong("attributes.Policy", *error);
  if (queue.tags.size() > limits::kTagsMax)
    problems.add_at(queue.place_of("tags"),
                    fmt::format("queue {}: at most {} tags", queue.name, limits::kTagsMax));
  if (!queue.redrive) return;
  const auto& redrive = *queue.redrive;
  if (redrive.max_receive_count < 1 || redrive.max_receive_count > limits::kMaxReceiveCountMax)
    problems.add_at(queue.place_of("redrive.max_receive_count"),
                    fmt::format("queue {}: redrive.max_receive_count is from 1 to {}", queue.name,
                                limits::kMaxReceiveCountMax));
  if (is_fifo_name(redrive.dead_letter) != *fifo)
    problems.add_at(queue.place_of("redrive.dead_letter"),
                    fmt::format("queue {}: redrive.dead_letter \"{}\" must be a {} queue, as this "
                                "one is",
                                queue.name, redrive.dead_letter, *fifo ? "FIFO" : "standard"));
}

void check_queues(const Settings& settings, Problems& problems) {
  std::set<QueueRef> seen;
  for (const QueueSettings& queue : settings.queues) {
    if (!seen.insert(ref_of(settings, queue)).second)
      problems.add_at(queue.place_of("name"), fmt::format("queue {} is listed twice", queue.name));
    check_queue(settings, queue, problems);
    // Nobody could ever call as an account that has no keys, so it is a mistake.
    const std::string account = ref_of(settings, queue).account;
    const bool known = settings.accounts.empty()
                           ? account == settings.server.account
                           : std::ranges::find(settings.accounts, account, &AccountSettings::id) !=
                                 settings.accounts.end();
    if (!known)
      problems.add_at(queue.place_of("account"),
                      fmt::format("queue {}: account {} is not configured", queue.name, account));
    if (!settings.server.regions && ref_of(settings, queue).region != settings.server.region)
      problems.add_at(
          queue.place_of("region"),
          fmt::format("queue {}: region {} is not server.region, which needs server.regions = true",
                      queue.name, queue.region));
  }
}

}  // namespace

bool is_loopback(const std::string& host) {
  // A name such as 127.example.com is not a loopback address.
  in_addr address{};
  const bool is_ipv4 = inet_pton(AF_INET, host.c_str(), &address) == 1;
  return host == "localhost" || host == "::1" || (is_ipv4 && host.starts_with("127."));
}

std::vector<std::string> find_problems(const Settings& settings) {
  Problems problems(settings);
  check_reach(settings, problems);
  check_server(settings.server, problems);
  check_tls(settings.tls, problems);
  check_limits(settings.limits, problems);
  check_metrics(settings, problems);
  check_fleet(settings, problems);
  check_queues(settings, problems);
  return problems.take();
}

}  // namespace stanchion::settings
