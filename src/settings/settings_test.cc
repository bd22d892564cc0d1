#include "settings/settings.h"

#include <gtest/gtest.h>

#include <set>

namespace stanchion::settings {
namespace {

std::string listen_as_text(std::string_view text) {
  const auto address = parse_listen(text);
  if (!address) return "refused";
  return address->host + " " + std::to_string(address->port);
}

// The first problem, or nothing.
std::string complaint(const Settings& settings) {
  const auto problems = find_problems(settings);
  return problems.empty() ? "" : problems.front();
}

std::vector<AccountSettings> one_account() {
  KeySettings key;
  key.id = "K";
  key.secret = "s";
  return {{"123456789012", {key}}};
}

bool names(const std::string& message, std::string_view setting) {
  return message.starts_with(std::string(setting) + ": ");
}

TEST(ParseListen, TakesNamesAndAddressesOfBothKinds) {
  EXPECT_EQ(listen_as_text("127.0.0.1:9324"), "127.0.0.1 9324");
  EXPECT_EQ(listen_as_text("localhost:0"), "localhost 0");
  EXPECT_EQ(listen_as_text("0.0.0.0:65535"), "0.0.0.0 65535");
  EXPECT_EQ(listen_as_text("[::1]:80"), "::1 80");
  EXPECT_EQ(listen_as_text("[::]:80"), ":: 80");
}

TEST(ParseListen, AMissingHostIsThisMachineAlone) {
  EXPECT_EQ(listen_as_text(":8080"), "127.0.0.1 8080");
}

TEST(ParseListen, RefusesWhatIsNotHostAndPort) {
  for (const char* text : {"", "9324", "localhost", "localhost:", "localhost:http", "localhost:-1",
                           "localhost:65536", "localhost:99999999999999999999", "localhost: 80",
                           "localhost:80 ", "::1:80", "::1", "[::1]", "[::1]80", "[::1:80"})
    EXPECT_EQ(listen_as_text(text), "refused") << text;
}

TEST(ParseListen, ARefusalShowsHowToWriteIt) {
  EXPECT_NE(parse_listen("nonsense").error().message.find("HOST:PORT"), std::string::npos);
  EXPECT_NE(parse_listen("::1:80").error().message.find("[::1]:9324"), std::string::npos);
}

TEST(ByteCounts, AreReadWithTheirUnits) {
  EXPECT_EQ(parse_byte_count("0")->value, 0u);
  EXPECT_EQ(parse_byte_count("65536")->value, 65536u);
  EXPECT_EQ(parse_byte_count("512MiB")->value, 512u << 20);
  EXPECT_EQ(parse_byte_count("2 GB")->value, 2'000'000'000u);
  EXPECT_EQ(parse_byte_count("1TiB")->value, std::uint64_t{1} << 40);
}

TEST(ByteCounts, WhatIsNoneIsRefused) {
  for (const char* text : {"", "MiB", "-1", "1.5GiB", "1 G", "1gib", "512 MiB ", "0x10",
                           "99999999999999999999", "9999999999TiB"})
    EXPECT_FALSE(parse_byte_count(text)) << text;
}

TEST(ByteCounts, ArePrintedSoThatTheyAreReadAgain) {
  for (const std::uint64_t n : {0ull, 1ull, 1000ull, 1024ull, 13ull * 512 * 1024, 512ull << 20})
    EXPECT_EQ(parse_byte_count(format_byte_count(ByteCount{n}))->value, n);
  EXPECT_EQ(format_byte_count(ByteCount{std::uint64_t{512} << 20}), "512MiB");
}

TEST(Timeouts, AreReadWithTheirUnits) {
  EXPECT_EQ(parse_timeout("250ms")->count(), 250);
  EXPECT_EQ(parse_timeout("10s")->count(), 10'000);
  EXPECT_EQ(parse_timeout("10")->count(), 10'000);
  EXPECT_EQ(parse_timeout("2m")->count(), 120'000);
  EXPECT_EQ(parse_timeout("1h")->count(), 3'600'000);
  for (const char* text : {"", "s", "-1s", "1.5s", "10 sec", "99999999999999999999"})
    EXPECT_FALSE(parse_timeout(text)) << text;
  EXPECT_EQ(format_timeout(std::chrono::milliseconds(250)), "250ms");
  EXPECT_EQ(format_timeout(std::chrono::milliseconds(120'000)), "120s");
}

TEST(Loopback, IsWhatOnlyThisMachineReaches) {
  for (const char* host : {"127.0.0.1", "127.8.9.10", "localhost", "::1"})
    EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "example.com", "1270.0.0.1", "localhost.x"})
    EXPECT_FALSE(is_loopback(host)) << host;
}

TEST(Loopback, ANameThatOnlyBeginsLikeAnAddressIsNotOne) {
  for (const char* host : {"127.example.com", "127.0.0.1.example.com", "127.", "127.0.0.256"})
    EXPECT_FALSE(is_loopback(host)) << host;
}

TEST(SettingTable, EverySettingHasAFlagAVariableAndAValueThatIsReadAgain) {
  Settings settings;
  std::set<std::string> names;
  std::set<std::string> flags;
  for (const Setting& setting : list_settings(settings)) {
    EXPECT_TRUE(names.insert(setting.name()).second) << setting.name();
    EXPECT_TRUE(flags.insert(setting.flag()).second) << setting.flag();
    EXPECT_FALSE(setting.help.empty()) << setting.name();
    if (setting.is_repeated()) continue;  // It is printed as a table.
    std::string value = setting.value();
    if (value.starts_with('"')) value = value.substr(1, value.size() - 2);
    EXPECT_TRUE(setting.set(value)) << setting.name() << " = " << value;
  }
  EXPECT_TRUE(flags.contains("--in-memory"));
  EXPECT_TRUE(flags.contains("--tls-certificate"));
}

TEST(SettingTable, NamesOfVariablesFollowFromTheSection) {
  Settings settings;
  std::set<std::string> variables;
  for (const Setting& setting : list_settings(settings)) variables.insert(setting.environment());
  EXPECT_TRUE(variables.contains("STANCHION_LISTEN"));
  EXPECT_TRUE(variables.contains("STANCHION_IN_MEMORY"));
  EXPECT_TRUE(variables.contains("STANCHION_LOG_LEVEL"));
  EXPECT_TRUE(variables.contains("STANCHION_LIMITS_BODY_BYTES"));
}

TEST(Settings, TheDefaultsAreFine) {
  EXPECT_EQ(complaint({}), "");
}

TEST(Settings, OtherMachinesAreLetInOnlyWithAccountsOrIfThatIsAskedFor) {
  Settings settings;
  settings.server.listen.host = "0.0.0.0";
  EXPECT_TRUE(names(complaint(settings), "server.listen"));
  settings.server.insecure = true;
  EXPECT_EQ(complaint(settings), "");
  settings.server.insecure = false;
  settings.accounts = one_account();
  EXPECT_EQ(complaint(settings), "");
}

TEST(Settings, AUnixSocketIsOfThisMachine) {
  Settings settings;
  settings.server.listen.host = "0.0.0.0";
  settings.server.unix_socket = "/run/stanchion.sock";
  EXPECT_EQ(complaint(settings), "");
}

TEST(Settings, AccountsAndInsecureContradictEachOther) {
  Settings settings;
  settings.server.insecure = true;
  settings.accounts = one_account();
  EXPECT_TRUE(names(complaint(settings), "server.insecure"));
}

TEST(Settings, AProblemSaysWhereTheValueWasSet) {
  Settings settings;
  settings.server.account = "1";
  settings.origins["server.account"] = "STANCHION_ACCOUNT";
  EXPECT_EQ(complaint(settings),
            "STANCHION_ACCOUNT: \"1\" is not an account id, which has 12 digits");
}

TEST(Settings, AnAccountHasTwelveDigits) {
  for (const char* account : {"", "1", "1234567890123", "12345678901x", "-12345678901"}) {
    Settings settings;
    settings.server.account = account;
    EXPECT_TRUE(names(complaint(settings), "server.account")) << account;
  }
}

// ARNs and queue URLs are split at these characters.
TEST(Settings, ARegionIsAShortWordOfLettersDigitsAndHyphens) {
  const std::string too_long(65, 'x');
  for (const char* region :
       {"", "us:east", "us/east", "us east", "us_east\n", "é", too_long.c_str()}) {
    Settings settings;
    settings.server.region = region;
    EXPECT_TRUE(names(complaint(settings), "server.region")) << region;
  }
}

TEST(Settings, ThreadsAndShardsAreBounded) {
  Settings settings;
  settings.server.shards = 256;
  settings.server.threads = 256;
  EXPECT_EQ(complaint(settings), "");
  settings.server.shards = 257;
  EXPECT_TRUE(names(complaint(settings), "server.shards"));
  settings.server.shards = 0;
  settings.server.threads = 257;
  EXPECT_TRUE(names(complaint(settings), "server.threads"));
}

TEST(Settings, APublicUrlIsSchemeAndHostWithoutASlashBehind) {
  Settings settings;
  for (const char* url : {"https://queues.example.com", "http://10.0.0.1:80", "http://x/prefix"}) {
    settings.server.public_url = url;
    EXPECT_EQ(complaint(settings), "") << url;
  }
  for (const char* url : {"queues.example.com", "ftp://x", "http://", "http://x/", "http://x?y"}) {
    settings.server.public_url = url;
    EXPECT_TRUE(names(complaint(settings), "server.public_url")) << url;
  }
}

TEST(Settings, TlsNeedsBothFiles) {
  Settings settings;
  settings.tls.certificate = "cert.pem";
  EXPECT_TRUE(names(complaint(settings), "tls.certificate"));
  settings.tls = {"", "key.pem"};
  EXPECT_TRUE(names(complaint(settings), "tls.key"));
}

TEST(Settings, LimitsHaveLimits) {
  Settings settings;
  settings.limits.connections = 0;
  EXPECT_TRUE(names(complaint(settings), "limits.connections"));
  settings = {};
  settings.limits.header_bytes = ByteCount{100};
  EXPECT_TRUE(names(complaint(settings), "limits.header_bytes"));
  settings = {};
  settings.limits.idle_timeout = std::chrono::milliseconds(0);
  EXPECT_TRUE(names(complaint(settings), "limits.idle_timeout"));
  settings = {};
  settings.server.memory = ByteCount{1};
  EXPECT_TRUE(names(complaint(settings), "server.memory"));
}

TEST(Settings, ConnectionsAreFewerInASmallContainer) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  constexpr std::uint64_t kBytesEach = 3 << 10;
  for (std::uint64_t mib = 64; mib <= 4096; mib += 64) {
    const std::uint64_t connections = connections_for(mib * kMiB);
    EXPECT_LE(connections, connections_for((mib + 64) * kMiB));
    EXPECT_LE(connections * kBytesEach, std::max<std::uint64_t>(3 * kMiB, mib * kMiB / 16)) << mib;
  }
  EXPECT_EQ(connections_for(0), 1'000U) << "nothing is known";
  EXPECT_EQ(connections_for(128 * kMiB), 2'000U);
  EXPECT_EQ(connections_for(2'400 * kMiB), 50'000U);
  EXPECT_EQ(connections_for(std::uint64_t{1} << 40), 50'000U);
}

TEST(Settings, TheHistoryTakesAPartOfTheMemoryOfMessages) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  ServerSettings server;
  server.memory = {64 * kMiB};
  EXPECT_EQ(server.history_bytes(), 16 * kMiB);
  server.memory = {384 * kMiB};
  EXPECT_EQ(server.history_bytes(), 96 * kMiB);
  server.memory = {64 * 1024 * kMiB};
  EXPECT_EQ(server.history_bytes(), 96 * kMiB);
}

TEST(Settings, QueuesWithMetricsAreNamedByPatterns) {
  Settings settings;
  for (const char* good : {"all", "active", "none", "orders*,billing", "*.fifo, a_b-c"}) {
    settings.metrics.queues = good;
    EXPECT_EQ(complaint(settings), "") << good;
  }
  for (const char* bad : {"", "orders[0-9]", "a;b", "a\nb"}) {
    settings.metrics.queues = bad;
    EXPECT_TRUE(names(complaint(settings), "metrics.queues")) << bad;
  }
}

TEST(Settings, ATokenForMetricsIsLongAndSendable) {
  Settings settings;
  settings.metrics.token = "0123456789abcdef";
  EXPECT_EQ(complaint(settings), "");
  for (const char* bad :
       {"0123456789abcde", "0123456789 abcdef", "0123456789abcdef\n", "0123456789abcd\xc3\xa9"}) {
    settings.metrics.token = bad;
    EXPECT_TRUE(names(complaint(settings), "metrics.token")) << bad;
  }
  settings.metrics.token = kHidden;
  EXPECT_NE(complaint(settings).find("the placeholder for a hidden secret"), std::string::npos);
}

TEST(Settings, OtherMachinesSeeMetricsWithATokenOnly) {
  Settings settings;
  settings.metrics.listen = "127.0.0.1:9325";
  EXPECT_EQ(complaint(settings), "");
  settings.metrics.listen = "0.0.0.0:9325";
  EXPECT_TRUE(names(complaint(settings), "metrics.listen"));
  settings.metrics.token = "0123456789abcdef";
  EXPECT_EQ(complaint(settings), "");
  settings.metrics.listen = "9325";
  EXPECT_TRUE(names(complaint(settings), "metrics.listen"));
}

Settings node_settings() {
  Settings settings;
  settings.fleet = {.name = "orders",
                    .kafka = "kafka-1:9092,kafka-2:9092",
                    .kafka_settings = {},
                    .node = "node-1",
                    .zone = "zone_a",
                    .internal = "127.0.0.1:19324",
                    .secret_file = {},
                    .accepted_secret_file = {},
                    .tls_certificate = {},
                    .tls_key = {},
                    .tls_ca = {}};
  return settings;
}

TEST(SettingTable, AFleetHasTheFlagsOfItsManual) {
  Settings settings;
  std::map<std::string, std::string> flags;
  for (const Setting& setting : list_settings(settings)) flags[setting.name()] = setting.flag();
  EXPECT_EQ(flags["fleet.name"], "--fleet");
  EXPECT_EQ(flags["fleet.kafka"], "--kafka");
  EXPECT_EQ(flags["fleet.kafka_settings"], "--kafka-setting");
  EXPECT_EQ(flags["fleet.node"], "--node");
  EXPECT_EQ(flags["fleet.zone"], "--zone");
  EXPECT_EQ(flags["fleet.internal"], "--internal");
  EXPECT_EQ(flags["fleet.secret_file"], "--fleet-secret-file");
  EXPECT_EQ(flags["fleet.accepted_secret_file"], "--fleet-accepted-secret-file");
  EXPECT_EQ(flags["fleet.write_timeout"], "--fleet-write-timeout");
}

TEST(NamedValues, AreGivenOneALine) {
  EXPECT_EQ(parse_named_values("a.b=1\n\nc=x=y\n")->values,
            (std::map<std::string, std::string, std::less<>>{{"a.b", "1"}, {"c", "x=y"}}));
  EXPECT_TRUE(parse_named_values("")->values.empty());
  for (const char* text : {"a", "=1", "a=1\nb", "a=1\na=2"})
    EXPECT_FALSE(parse_named_values(text)) << text;
}

TEST(NamedValues, ARefusalDoesNotRepeatASecret) {
  EXPECT_EQ(parse_named_values("sasl.password:hunter2").error().message.find("hunter2"),
            std::string::npos);
}

TEST(Fleet, IsSetAsAWholeOrNotAtAll) {
  EXPECT_EQ(complaint(node_settings()), "");
  for (std::string FleetSettings::*part :
       {&FleetSettings::name, &FleetSettings::kafka, &FleetSettings::node, &FleetSettings::zone,
        &FleetSettings::internal}) {
    Settings settings = node_settings();
    settings.fleet.*part = "";
    EXPECT_NE(complaint(settings).find("is missing"), std::string::npos);
  }
  Settings settings;
  settings.fleet.one_copy = true;
  EXPECT_TRUE(names(complaint(settings), "fleet.name"));
}

TEST(Fleet, ACallWaitsForKafkaForASecondAtLeast) {
  using namespace std::chrono_literals;
  Settings settings = node_settings();
  for (const std::chrono::milliseconds bad : {0ms, 999ms, 86'400'001ms}) {
    settings.fleet.write_timeout = bad;
    EXPECT_TRUE(names(complaint(settings), "fleet.write_timeout")) << bad.count();
  }
  for (const std::chrono::milliseconds good : {1000ms, 86'400'000ms}) {
    settings.fleet.write_timeout = good;
    EXPECT_EQ(complaint(settings), "") << good.count();
  }
}

TEST(Fleet, NamesArePartsOfTopics) {
  const std::string too_long(65, 'x');
  for (const char* bad : {"a b", "a/b", "a:b", "é", too_long.c_str()}) {
    Settings settings = node_settings();
    settings.fleet.node = bad;
    EXPECT_TRUE(names(complaint(settings), "fleet.node")) << bad;
  }
}

TEST(Fleet, BrokersHaveHostAndPort) {
  for (const char* bad : {"kafka", "kafka:0", "kafka:9092,other"}) {
    Settings settings = node_settings();
    settings.fleet.kafka = bad;
    EXPECT_TRUE(names(complaint(settings), "fleet.kafka")) << bad;
  }
}

TEST(Fleet, OtherMachinesNeedASecretOrCertificates) {
  Settings settings = node_settings();
  settings.fleet.internal = "node-1.example.com:19324";
  EXPECT_TRUE(names(complaint(settings), "fleet.internal"));
  settings.fleet.secret_file = "/etc/stanchion/fleet.secret";
  EXPECT_EQ(complaint(settings), "");
  settings.fleet.accepted_secret_file = "/etc/stanchion/fleet.secret.new";
  EXPECT_EQ(complaint(settings), "");
  settings.fleet.secret_file = "";
  EXPECT_TRUE(names(complaint(settings), "fleet.accepted_secret_file"));
  settings.fleet.accepted_secret_file = "";
  settings.fleet.tls_certificate = "node.pem";
  EXPECT_TRUE(names(complaint(settings), "fleet.tls_certificate"));
  settings.fleet.tls_key = "node.key";
  settings.fleet.tls_ca = "ca.pem";
  EXPECT_EQ(complaint(settings), "");
  for (const char* any : {"0.0.0.0:19324", "[::]:19324", "19324"}) {
    settings.fleet.internal = any;
    EXPECT_TRUE(names(complaint(settings), "fleet.internal")) << any;
  }
}

TEST(Fleet, ANodeKeepsItsDataAndHasTheTimeOfAll) {
  Settings settings = node_settings();
  settings.server.in_memory = true;
  EXPECT_TRUE(names(complaint(settings), "server.in_memory"));
  settings = node_settings();
  settings.server.virtual_time = true;
  EXPECT_TRUE(names(complaint(settings), "server.virtual_time"));
  settings = node_settings();
  settings.server.shards = 4;
  EXPECT_TRUE(names(complaint(settings), "server.shards"));
}

TEST(Settings, AQueueBelongsToTheOnlyAccountUnlessItSaysOtherwise) {
  Settings settings;
  QueueSettings queue;
  queue.name = "q";
  EXPECT_EQ(ref_of(settings, queue).account, "000000000000");
  settings.accounts = one_account();
  EXPECT_EQ(ref_of(settings, queue).account, "123456789012");
}

}  // namespace
}  // namespace stanchion::settings
