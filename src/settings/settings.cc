#include "settings/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/text.h"
#include "settings/machine_memory.h"
#include "settings/toml_text.h"

namespace stanchion::settings {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

constexpr std::array<std::string_view, 2> kLogFormats{"text", "json"};
constexpr std::array<std::string_view, 4> kLogLevels{"debug", "info", "warning", "error"};

struct Unit {
  std::string_view name;
  std::uint64_t size;
};

constexpr std::array kByteUnits{
    Unit{"B", 1},
    Unit{"kB", 1'000},
    Unit{"KB", 1'000},
    Unit{"MB", 1'000'000},
    Unit{"GB", 1'000'000'000},
    Unit{"TB", 1'000'000'000'000},
    Unit{"KiB", std::uint64_t{1} << 10},
    Unit{"MiB", std::uint64_t{1} << 20},
    Unit{"GiB", std::uint64_t{1} << 30},
    Unit{"TiB", std::uint64_t{1} << 40},
};
// In milliseconds.
constexpr std::array kTimeUnits{Unit{"ms", 1}, Unit{"s", 1'000}, Unit{"m", 60'000},
                                Unit{"h", 3'600'000}};
constexpr std::uint64_t kAmountMax = std::numeric_limits<std::int64_t>::max();

// "10s" as 10 * size of "s"; a bare number has the unit `bare`.
template <std::size_t kCount>
std::optional<std::uint64_t> parse_amount(std::string_view text,
                                          const std::array<Unit, kCount>& units,
                                          std::string_view bare) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto end = std::ranges::find_if_not(text, is_digit);
  const auto number = parse_decimal({text.begin(), end});
  std::string_view unit(end, text.end());
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.empty()) unit = bare;
  const auto found = std::ranges::find(units, unit, &Unit::name);
  if (!number || found == units.end() || *number > kAmountMax / found->size) return std::nullopt;
  return *number * found->size;
}

template <class Enum, std::size_t kCount>
Status set_by_name(Enum& place, const std::array<std::string_view, kCount>& names,
                   std::string_view text) {
  const auto found = std::ranges::find(names, text);
  if (found == names.end())
    return fail(fmt::format("\"{}\" is not one of {}", text, fmt::join(names, ", ")));
  place = static_cast<Enum>(found - names.begin());
  return {};
}

template <class T>
Status take(T& place, Result<T> value) {
  if (!value) return std::unexpected(std::move(value).error());
  place = std::move(*value);
  return {};
}

Status set_switch(bool& place, std::string_view text) {
  if (text != "true" && text != "false")
    return fail(fmt::format("\"{}\" is neither true nor false", text));
  place = text == "true";
  return {};
}

Status set_number(std::uint32_t& place, std::string_view text) {
  const auto number = parse_decimal(text);
  if (!number || *number > std::numeric_limits<std::uint32_t>::max())
    return fail(fmt::format("\"{}\" is not a whole number from 0 up", text));
  place = static_cast<std::uint32_t>(*number);
  return {};
}

std::string format_listen(const ListenAddress& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", address.host, v6 ? "]" : "", address.port);
}

// A table of TOML in one line, without the secrets.
std::string format_named_values(const NamedValues& named) {
  std::string out;
  for (const auto& [name, value] : named.values)
    out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", toml_string(name),
                       toml_string(is_secret_of_kafka(name) ? kHidden : value));
  return out.empty() ? "{}" : fmt::format("{{ {} }}", out);
}

std::vector<Setting> list_limits(Settings& s) {
  return {
      {"limits", "connections", &s.limits.connections,
       "Connections at the same time; unless set, as many as a sixteenth of the machine's memory "
       "holds, from 1000 to 50000"},
      {"limits", "queues_per_account", &s.limits.queues_per_account, "Queues of an account"},
      {"limits", "queue_bytes_per_account", &s.limits.queue_bytes_per_account,
       "The most memory that the queues of an account may take, such as 256MiB: names, attributes, "
       "policies, tags; 0: any amount; unless set, half of queue_bytes, at most 256MiB"},
      {"limits", "queue_bytes", &s.limits.queue_bytes,
       "The same for all accounts together; unless set, a quarter of the machine's memory, from "
       "32MiB to 1GiB"},
      {"limits", "memory_share_per_account", &s.limits.memory_share_per_account,
       "Percentage of server.memory that one account may take once it is full"},
      {"limits", "connections_per_address", &s.limits.connections_per_address,
       "Connections from one address; 0: half of all, any number from this machine"},
      {"limits", "memory", &s.limits.memory,
       "The most memory that requests, answers and TLS may take together; unless set, a quarter "
       "of the machine's, from 32MiB to 256MiB"},
      {"limits", "body_bytes", &s.limits.body_bytes, "Size of a request's body"},
      {"limits", "header_bytes", &s.limits.header_bytes, "Size of a request's head"},
      {"limits", "header_timeout", &s.limits.header_timeout, "Time for a head to arrive"},
      {"limits", "body_timeout", &s.limits.body_timeout, "Time for a body to arrive"},
      {"limits", "idle_timeout", &s.limits.idle_timeout, "Time between two requests"},
      {"limits", "write_timeout", &s.limits.write_timeout, "Time without the client reading"},
  };
}

std::vector<Setting> list_fleet_settings(Settings& s) {
  return {
      {"fleet", "name", &s.fleet.name,
       "Run as a node of this fleet, which stanchion fleet init has created", "NAME", "--fleet"},
      {"fleet", "kafka", &s.fleet.kafka, "The Kafka brokers of the fleet: HOST:PORT,HOST:PORT",
       "BROKERS", "--kafka"},
      {"fleet", "kafka_settings", &s.fleet.kafka_settings,
       "TLS and SASL to Kafka, with librdkafka's names: security.protocol=SASL_SSL; may be "
       "repeated",
       "", "--kafka-setting"},
      {"fleet", "node", &s.fleet.node, "The name of this node, unique in the fleet", "NAME",
       "--node"},
      {"fleet", "zone", &s.fleet.zone, "The zone that this node is in", "NAME", "--zone"},
      {"fleet", "internal", &s.fleet.internal, "Where the other nodes reach this one", "HOST:PORT",
       "--internal"},
      {"fleet", "secret_file", &s.fleet.secret_file,
       "File: the secret with which nodes authenticate each other", "FILE"},
      {"fleet", "accepted_secret_file", &s.fleet.accepted_secret_file,
       "File: a second secret to accept from other nodes, while the secret is changed", "FILE"},
      {"fleet", "tls_certificate", &s.fleet.tls_certificate,
       "PEM file: the certificate of this node for other nodes", "FILE"},
      {"fleet", "tls_key", &s.fleet.tls_key, "PEM file: the private key of that certificate",
       "FILE"},
      {"fleet", "tls_ca", &s.fleet.tls_ca,
       "PEM file: the authority that has signed the certificates of all nodes", "FILE"},
      {"fleet", "one_copy", &s.fleet.one_copy,
       "For trials: accept a log of which Kafka keeps only one copy"},
      {"fleet", "write_timeout", &s.fleet.write_timeout,
       "How long a call waits for Kafka to confirm its write; then it gets 500"},
  };
}

}  // namespace

namespace {

// In whole MiB, so that the value reads well.
std::uint64_t quarter_of_memory(std::uint64_t least, std::uint64_t most) {
  return std::clamp(memory_of_this_process() / 4 >> 20, least, most) << 20;
}

}  // namespace

std::uint64_t default_memory() {
  return quarter_of_memory(64, 384);
}

std::uint64_t default_held_memory() {
  return quarter_of_memory(32, LimitSettings::kHttp.held_bytes_max >> 20);
}

std::uint64_t default_queue_bytes() {
  return quarter_of_memory(32, 1024);
}

std::uint64_t default_queue_bytes_per_account() {
  return std::min(default_queue_bytes() / 2, std::uint64_t{256} << 20);
}

std::uint32_t connections_for(std::uint64_t memory) {
  constexpr std::uint64_t kConnectionBytes = 3 << 10;
  constexpr std::uint64_t kLeast = 1'000;
  constexpr std::uint64_t kMost = LimitSettings::kHttp.connections_max;
  // In whole thousands, so that the value reads well.
  const std::uint64_t some = memory / 16 / kConnectionBytes / kLeast * kLeast;
  return static_cast<std::uint32_t>(std::clamp(some, kLeast, kMost));
}

std::uint32_t default_connections() {
  return connections_for(memory_of_this_process());
}

std::string Setting::name() const {
  return fmt::format("{}.{}", section, key);
}

std::string Setting::flag() const {
  if (!own_flag.empty()) return std::string(own_flag);
  std::string text =
      section == "server" ? fmt::format("--{}", key) : fmt::format("--{}-{}", section, key);
  std::ranges::replace(text, '_', '-');
  return text;
}

std::string Setting::environment() const {
  std::string text = section == "server" ? fmt::format("STANCHION_{}", key)
                                         : fmt::format("STANCHION_{}_{}", section, key);
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

std::string Setting::value_name() const {
  return std::visit(
      Overloaded{
          [](const bool*) { return std::string(); },
          [&](const std::string*) { return std::string(kind.empty() ? "TEXT" : kind); },
          [](const std::uint32_t*) { return std::string("NUMBER"); },
          [](const ByteCount*) { return std::string("SIZE"); },
          [](const std::chrono::milliseconds*) { return std::string("TIME"); },
          [](const ListenAddress*) { return std::string("HOST:PORT"); },
          [](const log::LogFormat*) { return fmt::format("{}", fmt::join(kLogFormats, "|")); },
          [](const log::LogLevel*) { return fmt::format("{}", fmt::join(kLogLevels, "|")); },
          [](const NamedValues*) { return std::string("NAME=VALUE"); },
      },
      place);
}

Status Setting::set(std::string_view text) const {
  return std::visit(
      Overloaded{
          [&](bool* to) { return set_switch(*to, text); },
          [&](std::string* to) { return *to = text, Status(); },
          [&](std::uint32_t* to) { return set_number(*to, text); },
          [&](ByteCount* to) { return take(*to, parse_byte_count(text)); },
          [&](std::chrono::milliseconds* to) { return take(*to, parse_timeout(text)); },
          [&](ListenAddress* to) { return take(*to, parse_listen(text)); },
          [&](log::LogFormat* to) { return set_by_name(*to, kLogFormats, text); },
          [&](log::LogLevel* to) { return set_by_name(*to, kLogLevels, text); },
          [&](NamedValues* to) { return take(*to, parse_named_values(text)); },
      },
      place);
}

std::string Setting::value() const {
  return std::visit(
      Overloaded{
          [](const bool* from) { return std::string(*from ? "true" : "false"); },
          [](const std::string* from) { return toml_string(*from); },
          [](const std::uint32_t* from) { return fmt::to_string(*from); },
          [](const ByteCount* from) { return toml_string(format_byte_count(*from)); },
          [](const std::chrono::milliseconds* from) { return toml_string(format_timeout(*from)); },
          [](const ListenAddress* from) { return toml_string(format_listen(*from)); },
          [](const log::LogFormat* from) {
            return toml_string(kLogFormats[static_cast<std::size_t>(*from)]);
          },
          [](const log::LogLevel* from) {
            return toml_string(kLogLevels[static_cast<std::size_t>(*from)]);
          },
          [](const NamedValues* from) { return format_named_values(*from); },
      },
      place);
}

std::vector<Setting> list_settings(Settings& s) {
  std::vector<Setting> all{
      {"server", "listen", &s.server.listen, "Where to listen: HOST:PORT"},
      {"server", "unix_socket", &s.server.unix_socket,
       "Listen on this Unix socket instead of HOST:PORT", "PATH"},
      {"server", "data", &s.server.data, "The directory that holds the data", "DIR"},
      {"server", "in_memory", &s.server.in_memory, "Keep nothing on disk"},
      {"server", "memory", &s.server.memory,
       "The most memory that messages may take, such as 512MiB; unless set, a quarter of the "
       "machine's, from 64MiB to 384MiB"},
      {"server", "region", &s.server.region, "The region of the queues", "REGION"},
      {"server", "regions", &s.server.regions,
       "Make each region that clients sign for a separate namespace"},
      {"server", "account", &s.server.account,
       "The account that owns all queues while no accounts are configured", "DIGITS"},
      {"server", "strict", &s.server.strict,
       "Also enforce AWS's propagation rules: 60 s between purges, 60 s before a deleted name can "
       "be used again; and refuse actions that SQS does not have"},
      {"server", "insecure", &s.server.insecure,
       "Let anyone who can reach the address do anything, from other machines, too"},
      {"server", "virtual_time", &s.server.virtual_time,
       "For tests: let POST /_stanchion/clock move the server's time forward"},
      {"server", "threads", &s.server.threads, "Threads that serve requests; 0: one per CPU"},
      {"server", "shards", &s.server.shards,
       "Number of shards of a new data directory, fixed for good; 0: one per thread"},
      {"server", "allowed_hosts", &s.server.allowed_hosts,
       "Names by which clients may call the server without accounts, besides localhost: "
       "queues.example.com,*.queues.test; * for any"},
      {"server", "public_url", &s.server.public_url,
       "The beginning of queue URLs; empty: the host that the client called", "URL"},
      {"server", "trust_forwarded", &s.server.trust_forwarded,
       "Trust the X-Forwarded-Host, -Proto and -For of a proxy in front"},
      {"tls", "certificate", &s.tls.certificate, "PEM file: the certificate and its chain", "FILE"},
      {"tls", "key", &s.tls.key, "PEM file: the certificate's private key", "FILE"},
      {"clock", "max_jump_forward", &s.clock.max_jump_forward,
       "How far the wall clock may be ahead of the last record at a start, such as "
       "720h; 0s: any"},
      {"metrics", "queues", &s.metrics.queues,
       "Queues with metrics: all, active, none, or names such as orders*,billing", "NAMES"},
      {"metrics", "queues_per_account", &s.metrics.queues_per_account,
       "The most queues of one account, the first ones by name; 0: any number"},
      {"metrics", "token", &s.metrics.token,
       "The bearer token that a scraper of /metrics must send", "SECRET"},
      {"metrics", "listen", &s.metrics.listen, "Also serve /metrics on a separate port",
       "HOST:PORT"},
      {"log", "format", &s.log.format, "text or json"},
      {"log", "level", &s.log.level, "debug, info, warning or error"},
      {"log", "access", &s.log.access, "One line for every call"},
  };
  const auto limits = list_limits(s);
  all.insert(std::ranges::find(all, "clock", &Setting::section), limits.begin(), limits.end());
  for (const Setting& setting : list_fleet_settings(s)) all.push_back(setting);
  return all;
}

Result<ListenAddress> parse_listen(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const auto wrong = [&] {
    return fail(
        fmt::format("\"{}\" is not an address; give HOST:PORT, such as 127.0.0.1:9324", text));
  };
  if (colon == std::string_view::npos) return wrong();
  const auto port = parse_decimal(text.substr(colon + 1));
  if (!port || *port > 65535) return wrong();
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return fail(fmt::format("\"{}\": write an IPv6 address in brackets, as in [::1]:9324", text));
  }
  return ListenAddress{std::string(host.empty() ? "127.0.0.1" : host),
                       static_cast<std::uint16_t>(*port)};
}

Result<ByteCount> parse_byte_count(std::string_view text) {
  const auto count = parse_amount(text, kByteUnits, "B");
  if (!count)
    return fail(fmt::format("\"{}\" is not a size; give one such as 512MiB or 2GB", text));
  return ByteCount{*count};
}

std::string format_byte_count(ByteCount count) {
  const auto unit = std::ranges::find_if(kByteUnits.rbegin(), kByteUnits.rend(), [&](Unit u) {
    return u.name.ends_with("iB") && count.value >= u.size && count.value % u.size == 0;
  });
  if (unit == kByteUnits.rend()) return fmt::format("{}B", count.value);
  return fmt::format("{}{}", count.value / unit->size, unit->name);
}

Result<std::chrono::milliseconds> parse_timeout(std::string_view text) {
  const auto millis = parse_amount(text, kTimeUnits, "s");
  if (!millis)
    return fail(fmt::format("\"{}\" is not a time; give one such as 250ms, 10s or 2m", text));
  return std::chrono::milliseconds(static_cast<std::int64_t>(*millis));
}

std::string format_timeout(std::chrono::milliseconds time) {
  if (time.count() % 1000 != 0) return fmt::format("{}ms", time.count());
  return fmt::format("{}s", time.count() / 1000);
}

Result<NamedValues> parse_named_values(std::string_view text) {
  NamedValues named;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty()) continue;
    const std::size_t equals = line.find('=');
    // What is behind a name may be a secret, so it is not repeated.
    if (equals == std::string_view::npos || equals == 0)
      return fail("give each value as NAME=VALUE, as in security.protocol=SASL_SSL");
    const std::string name(line.substr(0, equals));
    if (!named.values.emplace(name, line.substr(equals + 1)).second)
      return fail(fmt::format("{} is given twice", name));
  }
  return named;
}

bool is_secret_of_kafka(std::string_view name) {
  const auto contains = [&](std::string_view part) { return name.find(part) != name.npos; };
  return contains("password") || contains("secret") || name == "ssl.key.pem" ||
         name == "sasl.oauthbearer.config";
}

std::vector<std::string> split_hosts(std::string_view hosts) {
  std::vector<std::string> names;
  while (!hosts.empty()) {
    const std::size_t end = std::min(hosts.find_first_of(", "), hosts.size());
    if (end > 0) names.emplace_back(hosts.substr(0, end));
    hosts.remove_prefix(std::min(end + 1, hosts.size()));
  }
  return names;
}

bool is_account_id(std::string_view text) {
  return text.size() == 12 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_region_name(std::string_view text) {
  const auto is_region_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, is_region_letter);
}

QueueRef ref_of(const Settings& settings, const QueueSettings& queue) {
  // A single account owns all queues; if there are several, the file has to name one.
  const std::string& owner =
      settings.accounts.size() == 1 ? settings.accounts.front().id : settings.server.account;
  return {queue.account.empty() ? owner : queue.account,
          queue.region.empty() ? settings.server.region : queue.region, queue.name};
}

}  // namespace stanchion::settings
