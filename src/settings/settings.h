// All settings of `stanchion serve`, in one struct, and the table of its single values, from which
// the file, the environment, the flags and the printed form are all generated.
//
//   stanchion.toml  <  environment  <  flags        (combined by settings_sources.h)
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "log/settings.h"
#include "model/request.h"
#include "net/http_limits.h"

namespace stanchion::settings {

struct ListenAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 9324;

  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

struct ByteCount {
  std::uint64_t value = 0;

  friend bool operator==(const ByteCount&, const ByteCount&) = default;
};

// A quarter of the memory that this process may use, but not less than 64 MiB nor more than 384 MiB:
// messages that wait longer are read ahead from the store.
std::uint64_t default_memory();
// The same for requests and answers: a quarter, from 32 MiB to 256 MiB.
std::uint64_t default_held_memory();
// And for queues without what is in them: from 32 MiB to 1 GiB; an account may have half of that, but
// not more than 256 MiB.
std::uint64_t default_queue_bytes();
std::uint64_t default_queue_bytes_per_account();
// Connections of a process that may use so much memory: they may take a sixteenth of it, but there are
// 1,000 at least and 50,000 at most.
std::uint32_t connections_for(std::uint64_t memory);
std::uint32_t default_connections();

struct ServerSettings {
  ListenAddress listen;
  std::string unix_socket;  // If set, used in place of `listen`.
  std::string data = "stanchion-data";
  bool in_memory = false;
  ByteCount memory{default_memory()};
  // Beyond this messages go to the store. The rest is for what comes in faster than it gets there.
  std::uint64_t evict_beyond() const { return memory.value / 2; }
  // What the history may keep in memory of the queues that it knows.
  std::size_t history_bytes() const {
    return std::min<std::uint64_t>(memory.value / 4, std::uint64_t{96} << 20);
  }
  std::string region = "us-east-1";
  bool regions = false;  // Each region is a namespace of its own.
  std::string account = "000000000000";
  bool strict = false;
  bool insecure = false;
  bool virtual_time = false;  // Time can be moved forward by an HTTP call.
  std::uint32_t threads = 0;  // 0: one per CPU.
  std::uint32_t shards = 0;   // For a new data directory; 0: one per thread.
  std::string allowed_hosts;  // Further names of the server, separated by commas.
  std::string public_url;     // Empty: the host that the client called.
  bool trust_forwarded = false;
};

struct TlsSettings {
  std::string certificate;
  std::string key;
};

// Those of HTTP are the server's own unless something else is set.
struct LimitSettings {
  static constexpr net::HttpLimits kHttp{};

  std::uint32_t connections = default_connections();
  std::uint32_t queues_per_account = 100'000;                            // 0: any number.
  ByteCount queue_bytes_per_account{default_queue_bytes_per_account()};  // 0: any number.
  ByteCount queue_bytes{default_queue_bytes()};                          // 0: any number.
  std::uint32_t memory_share_per_account = 50;  // Percent, while memory is full.
  std::uint32_t connections_per_address = 0;    // 0: half of all, from this machine any number.
  ByteCount memory{default_held_memory()};
  // What messages in answers may take before these have reached their connections, and about the most
  // that one receive may get.
  std::size_t answer_bytes() const { return memory.value / 4; }
  std::size_t receive_bytes() const { return memory.value / 16; }
  ByteCount body_bytes{kHttp.body_bytes_max};
  ByteCount header_bytes{kHttp.header_bytes_max};
  std::chrono::milliseconds header_timeout = kHttp.header_timeout;
  std::chrono::milliseconds body_timeout = kHttp.body_timeout;
  std::chrono::milliseconds idle_timeout = kHttp.idle_timeout;
  std::chrono::milliseconds write_timeout = kHttp.write_timeout;
};

struct ClockSettings {
  // A start is refused if the wall clock is further ahead of the last record than this. 0: never.
  std::chrono::milliseconds max_jump_forward{0};
};

struct MetricsSettings {
  std::string queues = "all";                 // Which queues have figures of their own …
  std::uint32_t queues_per_account = 10'000;  // … and of one account so many; 0: any number.
  std::string token;                          // What a scraper has to send; empty: nothing.
  std::string listen;  // HOST:PORT of a listener for metrics alone; empty: there is none.
};

// Values by their names, of which there may be any.
struct NamedValues {
  std::map<std::string, std::string, std::less<>> values;

  friend bool operator==(const NamedValues&, const NamedValues&) = default;
};

// A node of a fleet; all empty: a server of its own.
struct FleetSettings {
  std::string name;
  std::string kafka;           // HOST:PORT, separated by commas.
  NamedValues kafka_settings;  // TLS and SASL, by librdkafka's names.
  std::string node;
  std::string zone;
  std::string internal;  // HOST:PORT where the other nodes reach this one.
  std::string secret_file;
  std::string accepted_secret_file;  // Accepted, too, while the secret is changed.
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_ca;
  bool one_copy = false;  // For a trial: topics that have fewer copies are accepted.
  // How long a call waits for Kafka; then it gets 500.
  std::chrono::milliseconds write_timeout{30'000};

  friend bool operator==(const FleetSettings&, const FleetSettings&) = default;
};

// Printed in place of a secret, and refused as one.
inline constexpr std::string_view kHidden = "(hidden)";

struct KeySettings {
  std::string id = {};
  std::string secret = {};
  std::string secret_file = {};  // The file that held the secret; empty: the settings.
  std::string user = {};         // Empty: the account itself.
  std::optional<std::string> session_token = {};
  Instant expires = kNever;
};

struct AccountSettings {
  std::string id;
  std::vector<KeySettings> keys;
};

struct RedriveSettings {
  std::string dead_letter;  // The name of a queue of the same account and region.
  std::int64_t max_receive_count = 0;
};

struct QueueSettings {
  std::string name;
  std::string account;  // Empty: the only one, or the server's while there are none.
  std::string region;   // Empty: the server's.
  StringMap attributes;
  StringMap tags;
  std::optional<RedriveSettings> redrive;
  std::string origin;  // Where the queue is in the settings, as "stanchion.toml:12".
  // Where its parts are, by name: "attributes.VisibilityTimeout" to "stanchion.toml:15".
  std::map<std::string, std::string, std::less<>> places;

  // Where the part is, or if that is unknown, the queue.
  const std::string& place_of(std::string_view part) const {
    const auto found = places.find(part);
    return found == places.end() ? origin : found->second;
  }
};

// The origin of each value, by its name: "server.listen" to "stanchion.toml:3: server.listen",
// "STANCHION_LISTEN" or "--listen". A value without an entry has its default.
using Origins = std::map<std::string, std::string, std::less<>>;

struct Settings {
  ServerSettings server;
  TlsSettings tls;
  LimitSettings limits;
  ClockSettings clock;
  MetricsSettings metrics;
  log::LogSettings log;
  FleetSettings fleet;
  std::vector<AccountSettings> accounts;
  std::vector<QueueSettings> queues;

  Origins origins;
  std::string file;  // The file that was read; empty: none.
};

// One value of the settings.
struct Setting {
  using Place =
      std::variant<bool*, std::string*, std::uint32_t*, ByteCount*, std::chrono::milliseconds*,
                   ListenAddress*, log::LogFormat*, log::LogLevel*, NamedValues*>;
  std::string_view section;
  std::string_view key;
  Place place;
  std::string_view help;
  std::string_view kind = {};      // What a string is: FILE, DIR, URL, …; empty: TEXT.
  std::string_view own_flag = {};  // The flag, where it does not follow from section and key.

  std::string name() const;         // server.in_memory
  std::string flag() const;         // --in-memory; outside of [server]: --tls-certificate
  std::string environment() const;  // STANCHION_IN_MEMORY; else STANCHION_TLS_CERTIFICATE
  bool is_secret() const { return kind == "SECRET"; }
  bool is_switch() const { return std::holds_alternative<bool*>(place); }
  // Whether the flag may be given several times, each with a NAME=VALUE.
  bool is_repeated() const { return std::holds_alternative<NamedValues*>(place); }
  std::string value_name() const;  // HOST:PORT, SIZE, text|json: the value's name in the help.

  // Parses the value as a person writes it, or returns what is wrong with it.
  Status set(std::string_view text) const;
  // Formats the value as TOML.
  std::string value() const;
};

// Every value of the settings, in the order in which they are printed. Points into `settings`.
std::vector<Setting> list_settings(Settings& settings);

// "HOST:PORT", "[IPV6]:PORT" or ":PORT".
Result<ListenAddress> parse_listen(std::string_view text);

// "512MiB", "1GB", "65536".
Result<ByteCount> parse_byte_count(std::string_view text);
std::string format_byte_count(ByteCount count);

// "250ms", "10s", "2m"; a bare number is seconds.
Result<std::chrono::milliseconds> parse_timeout(std::string_view text);
std::string format_timeout(std::chrono::milliseconds time);

// NAME=VALUE, one a line.
Result<NamedValues> parse_named_values(std::string_view text);

// Whether a setting of Kafka's client holds something that must not be shown, by its name.
bool is_secret_of_kafka(std::string_view name);

// The names in server.allowed_hosts.
std::vector<std::string> split_hosts(std::string_view hosts);

// Whether only this machine can reach the address.
bool is_loopback(const std::string& host);

bool is_account_id(std::string_view text);
bool is_region_name(std::string_view text);

// The full name of the queue of a [[queue]].
QueueRef ref_of(const Settings& settings, const QueueSettings& queue);

// What is wrong with the settings as a whole; each problem names the setting and where it was set.
// Empty: nothing.
std::vector<std::string> find_problems(const Settings& settings);

}  // namespace stanchion::settings
