#include "settings/settings_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "settings/settings_sources.h"
#include "settings/toml_text.h"

namespace stanchion::settings {
namespace {

constexpr std::string_view kEverything = R"(
[server]
listen = "[::]:8000"
data = "/var/lib/stanchion"
memory = "2GiB"
region = "eu-west-1"
regions = true
strict = true
threads = 4
public_url = "https://queues.example.com"
trust_forwarded = true

[tls]
certificate = "cert.pem"
key = "key.pem"

[limits]
connections = 1000
body_bytes = 8388608
header_timeout = "5s"
idle_timeout = 30

[log]
format = "json"
level = "debug"
access = true

[[account]]
id = "123456789012"
[[account.key]]
id = "AKIAEXAMPLE"
secret = "shhh"
[[account.key]]
id = "ASIAEXAMPLE"
secret = "shhh too"
user = "ci"
session_token = "token"
expires = 2030-01-31T12:00:00+01:00

[[queue]]
name = "orders.fifo"
[queue.attributes]
VisibilityTimeout = 60
ContentBasedDeduplication = true
[queue.tags]
"team name" = "billing"
[queue.redrive]
dead_letter = "orders-dead.fifo"
max_receive_count = 5

[[queue]]
name = "orders-dead.fifo"
region = "eu-central-1"
)";

std::vector<std::string> problems_of(std::string_view text) {
  Settings settings;
  return read_settings_text(text, "s.toml", settings);
}

std::string first_problem(std::string_view text) {
  const auto problems = problems_of(text);
  return problems.empty() ? "" : problems.front();
}

TEST(SettingsFile, EverySectionIsRead) {
  Settings s;
  ASSERT_EQ(read_settings_text(kEverything, "s.toml", s), std::vector<std::string>());
  EXPECT_EQ(s.server.listen, (ListenAddress{"::", 8000}));
  EXPECT_EQ(s.server.data, "/var/lib/stanchion");
  EXPECT_EQ(s.server.memory.value, std::uint64_t{2} << 30);
  EXPECT_TRUE(s.server.regions && s.server.strict && s.server.trust_forwarded);
  EXPECT_EQ(s.server.threads, 4u);
  EXPECT_EQ(s.tls.key, "key.pem");
  EXPECT_EQ(s.limits.connections, 1000u);
  EXPECT_EQ(s.limits.body_bytes.value, 8388608u);
  EXPECT_EQ(s.limits.header_timeout.count(), 5000);
  EXPECT_EQ(s.limits.idle_timeout.count(), 30'000);
  EXPECT_EQ(s.log.format, log::LogFormat::kJson);
  EXPECT_EQ(s.log.level, log::LogLevel::kDebug);
  EXPECT_TRUE(s.log.access);
  EXPECT_EQ(s.origins["server.data"], "s.toml:4: server.data");
  EXPECT_EQ(find_problems(s), std::vector<std::string>());
}

constexpr std::string_view kNode = R"(
[fleet]
name = "orders"
kafka = "kafka-1:9093"
node = "node-1"
zone = "a"
internal = "127.0.0.1:19324"
[fleet.kafka_settings]
"security.protocol" = "SASL_SSL"
"sasl.username" = "stanchion"
"sasl.password" = "hunter2"
)";

TEST(SettingsFile, ANodeOfAFleetHasTheSettingsOfKafkaInATable) {
  Settings s;
  ASSERT_EQ(read_settings_text(kNode, "s.toml", s), std::vector<std::string>());
  EXPECT_EQ(find_problems(s), std::vector<std::string>());
  EXPECT_EQ(s.fleet.kafka_settings.values.at("sasl.password"), "hunter2");
  EXPECT_EQ(s.fleet.kafka_settings.values.size(), 3u);
  EXPECT_EQ(s.origins["fleet.zone"], "s.toml:6: fleet.zone");
}

TEST(SettingsFile, ANameWithDotsNeedsQuotes) {
  EXPECT_NE(first_problem("[fleet.kafka_settings]\nsecurity.protocol = \"SSL\"").find("in quotes"),
            std::string::npos);
}

TEST(SettingsFile, ThePasswordOfKafkaIsNotPrintedAndItsPlaceholderRefused) {
  Settings s;
  ASSERT_TRUE(read_settings_text(kNode, "s.toml", s).empty());
  const std::string printed = to_toml(s);
  EXPECT_EQ(printed.find("hunter2"), std::string::npos);
  EXPECT_NE(printed.find("SASL_SSL"), std::string::npos);
  Settings again;
  ASSERT_EQ(read_settings_text(printed, "s.toml", again), std::vector<std::string>());
  ASSERT_EQ(find_problems(again).size(), 1u);
  EXPECT_NE(find_problems(again).front().find("sasl.password"), std::string::npos);
  EXPECT_EQ(differences(s, again), std::vector<std::string>{"fleet.kafka_settings"});
}

TEST(SettingsFile, AccountsHaveKeys) {
  Settings s;
  ASSERT_TRUE(read_settings_text(kEverything, "s.toml", s).empty());
  ASSERT_EQ(s.accounts.size(), 1u);
  EXPECT_EQ(s.accounts[0].id, "123456789012");
  ASSERT_EQ(s.accounts[0].keys.size(), 2u);
  const KeySettings& key = s.accounts[0].keys[1];
  EXPECT_EQ(key.secret, "shhh too");
  EXPECT_EQ(key.user, "ci");
  EXPECT_EQ(key.session_token, "token");
  EXPECT_EQ(to_seconds(key.expires), 1896087600);
  EXPECT_EQ(s.accounts[0].keys[0].expires, kNever);
}

TEST(SettingsFile, QueuesHaveAttributesTagsAndDeadLetters) {
  Settings s;
  ASSERT_TRUE(read_settings_text(kEverything, "s.toml", s).empty());
  ASSERT_EQ(s.queues.size(), 2u);
  const QueueSettings& queue = s.queues[0];
  EXPECT_EQ(queue.attributes, (StringMap{{"ContentBasedDeduplication", "true"},
                                         {"FifoQueue", "true"},
                                         {"VisibilityTimeout", "60"}}));
  EXPECT_EQ(queue.tags, (StringMap{{"team name", "billing"}}));
  ASSERT_TRUE(queue.redrive);
  EXPECT_EQ(queue.redrive->dead_letter, "orders-dead.fifo");
  EXPECT_EQ(queue.redrive->max_receive_count, 5);
  EXPECT_EQ(s.queues[1].region, "eu-central-1");
}

TEST(SettingsFile, WhatIsPrintedIsReadAgainOnceSecretsArePutBack) {
  Settings s;
  ASSERT_TRUE(read_settings_text(kEverything, "s.toml", s).empty());
  const std::string printed = to_toml(s);
  EXPECT_EQ(printed.find("shhh"), std::string::npos);
  EXPECT_EQ(printed.find("\"token\""), std::string::npos);
  Settings refused;
  for (const std::string& problem : read_settings_text(printed, "p.toml", refused))
    EXPECT_TRUE(problem.ends_with("put the secret back")) << problem;
  std::string put_back = printed;
  const std::string hidden = toml_string(kHidden);
  std::size_t count = 0;
  for (std::size_t at = 0; (at = put_back.find(hidden)) != std::string::npos; ++count)
    put_back.replace(at, hidden.size(), "\"x\"");
  EXPECT_EQ(read_settings_text(printed, "p.toml", refused).size(), count);
  EXPECT_GT(count, 0u);
  Settings again;
  ASSERT_EQ(read_settings_text(put_back, "p.toml", again), std::vector<std::string>()) << printed;
  EXPECT_EQ(to_toml(again), printed);
  EXPECT_TRUE(differences(s, again).empty());
}

struct BadFile {
  const char* text;
  const char* problem;
};

class BadFiles : public testing::TestWithParam<BadFile> {};

TEST_P(BadFiles, AreRefusedWithLineAndName) {
  EXPECT_EQ(first_problem(GetParam().text), GetParam().problem);
}

INSTANTIATE_TEST_SUITE_P(
    SettingsFile, BadFiles,
    testing::Values(
        BadFile{"[server]\n\nlisten = \"nowhere\"\n",
                "s.toml:3: server.listen: \"nowhere\" is not an address; give HOST:PORT, such as "
                "127.0.0.1:9324"},
        BadFile{"[server]\nlistne = \"127.0.0.1:1\"\n",
                "s.toml:2: server.listne: there is no such setting; did you mean listen?"},
        BadFile{"[sever]\n", "s.toml:1: sever: there is no such setting; did you mean server?"},
        BadFile{"server = 3\n", "s.toml:1: server: must be a table, not a number"},
        BadFile{"[server]\nstrict = \"yes\"\n",
                "s.toml:2: server.strict: must be true or false, not a string"},
        BadFile{"[server]\nthreads = \"4\"\n",
                "s.toml:2: server.threads: must be a number, not a string"},
        BadFile{"[server]\nthreads = -1\n",
                "s.toml:2: server.threads: \"-1\" is not a whole number from 0 up"},
        BadFile{"[server]\nmemory = \"lots\"\n",
                "s.toml:2: server.memory: \"lots\" is not a size; give one such as 512MiB or 2GB"},
        BadFile{"[log]\nformat = \"xml\"\n",
                "s.toml:2: log.format: \"xml\" is not one of text, json"},
        BadFile{"[limits]\nidle_timeout = 1.5\n",
                "s.toml:2: limits.idle_timeout: must be a string, not a number with a fraction"},
        BadFile{"[account]\nid = \"123456789012\"\n",
                "s.toml:1: account: must be an array of tables, [[account]], not a table"},
        BadFile{"[[account]]\nid = 123456789012\n",
                "s.toml:2: account.id: must be a string, not a number"},
        BadFile{"[[account]]\nid = \"123456789012\"\n",
                "s.toml:1: account.key: account 123456789012 has no [[account.key]], so nobody "
                "could call as it"},
        BadFile{"[[account]]\nid = \"123456789012\"\n[[account.key]]\nid = \"K\"\n",
                "s.toml:3: account.key.secret: key K needs either secret or secret_file"},
        BadFile{"[[account]]\nid = \"123456789012\"\n[[account.key]]\nid = \"K\"\nsecret = \"s\"\n"
                "expires = \"2030-01-01\"\n",
                "s.toml:6: account.key.expires: give date, time and zone without quotes, such as "
                "2030-01-31T12:00:00Z"},
        BadFile{"[[account]]\nid = \"123456789012\"\n[[account.key]]\nid = \"K\"\nsecret = \"s\"\n"
                "[[account.key]]\nid = \"K\"\nsecret = \"t\"\n",
                "s.toml:7: account.key.id: K is listed twice"},
        BadFile{"[[account]]\n\nid = \"12\"\n",
                "s.toml:3: account.id: give the account's 12 digits, as a string"},
        BadFile{"[[account]]\nid = \"123456789012\"\n[[account.key]]\nid = \"K\"\n"
                "secret = \"(hidden)\"\n",
                "s.toml:5: account.key.secret: this is what --print-config shows instead of a "
                "secret; put the secret back"},
        BadFile{"[[account]]\nid = \"123456789012\"\n[[account.key]]\nid = \"K\"\nsecret = \"s\"\n"
                "session_token = \"(hidden)\"\n",
                "s.toml:6: account.key.session_token: this is what --print-config shows instead of "
                "a secret; put the secret back"},
        BadFile{"[[queue]]\nname = \"q\"\naccount = \"12\"\n",
                "s.toml:3: queue.account: give the account's 12 digits, as a string"},
        BadFile{"[[queue]]\n", "s.toml:1: queue.name: give the queue a name"},
        BadFile{"[[queue]]\nname = \"q\"\n[queue.attributs]\n",
                "s.toml:3: queue.attributs: there is no such setting; did you mean attributes?"},
        BadFile{"[[queue]]\nname = \"q\"\n[queue.tags]\na = [1]\n",
                "s.toml:4: queue.tags.a: must be a string, a number, or true or false, not an "
                "array"},
        BadFile{"[[queue]]\nname = \"q\"\n[queue.redrive]\nmax_receive_count = 3\n",
                "s.toml:3: queue.redrive.dead_letter: name the dead-letter queue"}));

TEST(SettingsFile, ManyProblemsAreToldAtOnce) {
  EXPECT_EQ(problems_of("[server]\nlistne = 1\nstrict = 2\n[log]\nlevel = \"loud\"\n").size(), 3u);
}

TEST(SettingsFile, WhatIsNotTomlIsRefusedWithItsLine) {
  EXPECT_TRUE(first_problem("[server]\nlisten = \n").starts_with("s.toml:2: this is not TOML: "));
}

TEST(SettingsFile, QueuesAreCheckedAsTheServerWouldCheckThem) {
  const auto problem = [](std::string_view text) {
    Settings settings;
    auto problems = read_settings_text(text, "s.toml", settings);
    if (problems.empty()) problems = find_problems(settings);
    return problems.empty() ? "" : problems.front();
  };
  EXPECT_EQ(problem("[[queue]]\nname = \"a b\"\n"),
            "s.toml:2: queue a b: Can only include alphanumeric characters, hyphens, or "
            "underscores. 1 to 80 in length");
  EXPECT_EQ(problem("[[queue]]\nname = \"q\"\n[queue.attributes]\nDelaySeconds = 901\n"),
            "s.toml:4: queue q: Invalid value for the parameter DelaySeconds.");
  EXPECT_EQ(problem("[[queue]]\nname = \"q\"\n[queue.attributes]\nDelaySeconds = 1\n"
                    "FifoQueue = true\n"),
            "s.toml:5: queue q: The name of a FIFO queue can only include alphanumeric characters, "
            "hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length.");
  EXPECT_EQ(problem("[[queue]]\nname = \"q\"\n[queue.attributes]\nDelay = 1\n"),
            "s.toml:4: queue q: Unknown Attribute Delay.");
  EXPECT_EQ(problem("[[queue]]\nname = \"q\"\n[[queue]]\nname = \"q\"\n"),
            "s.toml:4: queue q is listed twice");
  EXPECT_EQ(problem("[[queue]]\nname = \"q\"\nregion = \"eu-west-1\"\n"),
            "s.toml:3: queue q: region eu-west-1 is not server.region, which needs "
            "server.regions = true");
  EXPECT_EQ(problem("[[queue]]\nname = \"q\"\naccount = \"111111111111\"\n"),
            "s.toml:3: queue q: account 111111111111 is not configured");
  EXPECT_EQ(problem("[[queue]]\nname = \"q\"\n[queue.redrive]\ndead_letter = \"d.fifo\"\n"
                    "max_receive_count = 3\n"),
            "s.toml:4: queue q: redrive.dead_letter \"d.fifo\" must be a standard queue, as this "
            "one is");
  EXPECT_EQ(problem("[[queue]]\nname = \"q\"\n[queue.redrive]\ndead_letter = \"d\"\n"
                    "max_receive_count = 0\n"),
            "s.toml:5: queue q: redrive.max_receive_count is from 1 to 1000");
}

TEST(SettingsFile, ASecretMayStandInAFileOfItsOwn) {
  const std::string path = testing::TempDir() + "stanchion_secret_file_test";
  std::ofstream(path) << "from a file\n";
  Settings s;
  const std::string text =
      "[[account]]\nid = \"123456789012\"\n[[account.key]]\nid = \"K\"\nsecret_file = \"" + path +
      "\"\n";
  EXPECT_EQ(read_settings_text(text, "s.toml", s), std::vector<std::string>());
  EXPECT_EQ(s.accounts.at(0).keys.at(0).secret, "from a file");
  EXPECT_NE(to_toml(s).find("secret_file = \"" + path + "\""), std::string::npos);
  EXPECT_EQ(to_toml(s).find(kHidden), std::string::npos);
  std::remove(path.c_str());
  EXPECT_EQ(first_problem(text), "s.toml:5: account.key.secret_file: cannot read " + path +
                                     ": No such file or directory");
}

TEST(SettingsFile, TheTokenForMetricsIsNotShown) {
  Settings s;
  EXPECT_EQ(to_toml(s).find(kHidden), std::string::npos);
  ASSERT_TRUE(read_settings_text("[metrics]\ntoken = \"0123456789abcdef\"\n", "s.toml", s).empty());
  EXPECT_EQ(s.metrics.token, "0123456789abcdef");
  const std::string shown = to_toml(s);
  EXPECT_EQ(shown.find("0123456789abcdef"), std::string::npos);
  EXPECT_NE(shown.find("token = " + toml_string(kHidden)), std::string::npos) << shown;
  EXPECT_NE(shown.find("replaces secrets"), std::string::npos);
}

class Precedence : public testing::Test {
 protected:
  Precedence() { std::ofstream(path_) << "[server]\nregion = \"from-file\"\nin_memory = true\n"; }
  ~Precedence() override { std::remove(path_.c_str()); }

  Settings load(std::map<std::string, std::string> environment, FlagValues flags) {
    Loaded loaded =
        load_settings({.config = path_,
                       .environment = [&](const char* name) -> const char* {
                         const auto found = environment.find(name);
                         return found == environment.end() ? nullptr : found->second.c_str();
                       },
                       .flags = std::move(flags)});
    problems_ = loaded.problems;
    return loaded.settings;
  }

  const std::string path_ = testing::TempDir() + "stanchion_precedence_test.toml";
  std::vector<std::string> problems_;
};

TEST_F(Precedence, FlagsWinOverTheEnvironmentWhichWinsOverTheFile) {
  EXPECT_EQ(load({}, {}).server.region, "from-file");
  EXPECT_EQ(load({{"STANCHION_REGION", "from-env"}}, {}).server.region, "from-env");
  EXPECT_EQ(
      load({{"STANCHION_REGION", "from-env"}}, {{"server.region", "from-flag"}}).server.region,
      "from-flag");
}

TEST_F(Precedence, ADirectoryGivenCloserWinsOverInMemory) {
  EXPECT_TRUE(load({}, {}).server.in_memory);
  EXPECT_FALSE(load({{"STANCHION_DATA", "d"}}, {}).server.in_memory);
  EXPECT_FALSE(load({}, {{"server.data", "d"}}).server.in_memory);
  EXPECT_TRUE(load({{"STANCHION_DATA", "d"}}, {{"server.in_memory", "true"}}).server.in_memory);
}

TEST_F(Precedence, AProblemNamesTheVariableOrTheFlag) {
  load({{"STANCHION_THREADS", "many"}}, {});
  EXPECT_EQ(problems_, std::vector<std::string>{
                           "STANCHION_THREADS: \"many\" is not a whole number from 0 up"});
  load({}, {{"server.listen", "0.0.0.0:1"}});
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_TRUE(problems_[0].starts_with("--listen: 0.0.0.0 can be reached from other machines"));
}

TEST_F(Precedence, AVariableThatIsNearlyOneIsASlip) {
  const auto problems = [](std::vector<std::string> variables) {
    return load_settings({.config = std::nullopt,
                          .environment = {},
                          .flags = {},
                          .variables = std::move(variables)})
        .problems;
  };
  EXPECT_EQ(problems({"STANCHION_LISTNE", "STANCHION_CONFG"}),
            (std::vector<std::string>{
                "STANCHION_LISTNE: there is no such setting; did you mean STANCHION_LISTEN?",
                "STANCHION_CONFG: there is no such setting; did you mean STANCHION_CONFIG?"}));
  // Variables of Kubernetes, of a user's own tests, and of other programs.
  EXPECT_EQ(problems({"STANCHION_LISTEN", "STANCHION_CONFIG", "STANCHION_PORT",
                      "STANCHION_SERVICE_HOST", "STANCHION_SERVICE_PORT", "STANCHION_PORT_9324_TCP",
                      "STANCHION_PORT_9324_TCP_ADDR", "STANCHION_ENDPOINT", "STANCHION_URL",
                      "STANCHION_HOST", "STANCHIO_LISTEN", "PATH"}),
            std::vector<std::string>());
}

TEST_F(Precedence, AFileThatIsNamedMustBeThere) {
  const Loaded loaded =
      load_settings({.config = "/nonexistent/x.toml", .environment = {}, .flags = {}});
  EXPECT_EQ(loaded.problems,
            std::vector<std::string>{"cannot read /nonexistent/x.toml: No such file or directory"});
}

}  // namespace
}  // namespace stanchion::settings
