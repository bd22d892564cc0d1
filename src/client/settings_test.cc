#include "client/settings.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "client/profile.h"
#include "os/temporary_directory.h"

namespace stanchion::client {
namespace {

using Variables = std::map<std::string, std::string>;

Environment environment_of(Variables variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

class SettingsOf : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    const std::string path = directory.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  os::TemporaryDirectory directory;
};

TEST(ParseIni, TakesSectionsSettingsAndWhatIsNested) {
  const IniFile file = parse_ini(
      "ignored = 1\n# comment\n[default]\r\nregion = eu-west-1 # here\r\nempty =\n"
      "secret=a#b;c\nnonsense\n\n[profile  x ]\nservices = s\n[services s]\nsqs =\n"
      "  endpoint_url = http://h:1\ns3 =\n  endpoint_url = http://other\n[broken\na = 1\n");
  EXPECT_EQ(file.at("default").at("region"), "eu-west-1");
  EXPECT_EQ(file.at("default").at("empty"), "");
  EXPECT_EQ(file.at("default").at("secret"), "a#b;c");
  EXPECT_EQ(file.at("profile x").at("services"), "s");
  EXPECT_EQ(file.at("services s").at("sqs.endpoint_url"), "http://h:1");
  EXPECT_EQ(file.at("services s").at("s3.endpoint_url"), "http://other");
  EXPECT_EQ(file.size(), 3u);
}

TEST_F(SettingsOf, TheRegionComesFromOptionsThenEnvironmentThenProfile) {
  const std::string config = file("config", "[default]\nregion = eu-west-3\n");
  Variables variables{{"AWS_CONFIG_FILE", config}};
  const auto region = [&](Options options = {}) {
    auto settings = read_settings(options, environment_of(variables));
    return settings ? settings->region + " " + settings->endpoint : settings.error().to_string();
  };
  EXPECT_EQ(region(), "eu-west-3 https://sqs.eu-west-3.amazonaws.com");
  variables["AWS_DEFAULT_REGION"] = "eu-west-2";
  EXPECT_EQ(region(), "eu-west-2 https://sqs.eu-west-2.amazonaws.com");
  variables["AWS_REGION"] = "cn-north-1";
  EXPECT_EQ(region(), "cn-north-1 https://sqs.cn-north-1.amazonaws.com.cn");
  EXPECT_EQ(region({.region = "us-west-2"}), "us-west-2 https://sqs.us-west-2.amazonaws.com");
  EXPECT_EQ(region({.region = "evil.example/"}), "InvalidSettings: \"evil.example/\" is no region");
}

TEST_F(SettingsOf, TheEndpointComesFromOptionsThenEnvironmentThenProfile) {
  const std::string config = file(
      "config",
      "[default]\nendpoint_url = http://d:1\n[profile s]\nservices = s\nendpoint_url = http://p:1\n"
      "[services s]\nsqs =\n  endpoint_url = http://s:1\n");
  Variables variables{{"AWS_CONFIG_FILE", config}};
  const auto endpoint = [&](Options options = {}) {
    auto settings = read_settings(options, environment_of(variables));
    return settings ? settings->endpoint : settings.error().to_string();
  };
  EXPECT_EQ(endpoint(), "http://d:1");
  EXPECT_EQ(endpoint({.profile = "s"}), "http://s:1");
  variables["AWS_ENDPOINT_URL"] = "http://e:1";
  EXPECT_EQ(endpoint(), "http://e:1");
  variables["AWS_ENDPOINT_URL_SQS"] = "http://q:1";
  EXPECT_EQ(endpoint({.profile = "s"}), "http://q:1");
  EXPECT_EQ(endpoint({.endpoint = "https://o"}), "https://o");
  EXPECT_TRUE(endpoint({.endpoint = "nonsense"}).starts_with("InvalidSettings: \"nonsense\""));
  variables["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "true";
  EXPECT_EQ(endpoint({.region = "eu-west-1"}), "https://sqs.eu-west-1.amazonaws.com");
}

TEST_F(SettingsOf, WhatIsMissingIsSaid) {
  const auto nothing = read_settings({}, environment_of({{"HOME", "/nowhere"}}));
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, code::kInvalidSettings);
  EXPECT_NE(nothing.error().message.find("$AWS_REGION"), std::string::npos);
  const auto profile = read_settings({.profile = "x"}, environment_of({{"HOME", "/nowhere"}}));
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().message,
            "there is no profile x in /nowhere/.aws/credentials or /nowhere/.aws/config");
  const auto unreadable =
      read_settings({}, environment_of({{"AWS_CONFIG_FILE", directory.path()}}));
  ASSERT_FALSE(unreadable);
  EXPECT_NE(unreadable.error().message.find("cannot read"), std::string::npos);
  const auto large = read_settings(
      {}, environment_of({{"AWS_CONFIG_FILE", file("large", std::string(2'000'000, 'x'))}}));
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().message.find("larger"), std::string::npos);
}

TEST(WithEndpointOfQueue, IsTheServerAndRegionOfTheUrlUnlessAnotherIsNamed) {
  const auto of = [](const std::string& url, Options options = {}, Variables variables = {}) {
    options = with_endpoint_of_queue(options, url, environment_of(std::move(variables)));
    return options.endpoint + " " + options.region;
  };
  EXPECT_EQ(of("https://sqs.eu-west-1.amazonaws.com/1/q"),
            "https://sqs.eu-west-1.amazonaws.com eu-west-1");
  EXPECT_EQ(of("https://sqs.cn-north-1.amazonaws.com.cn/1/q", {.region = "eu-west-1"}),
            "https://sqs.cn-north-1.amazonaws.com.cn cn-north-1");
  EXPECT_EQ(of("https://eu-west-1.queue.amazonaws.com/1/q"),
            "https://eu-west-1.queue.amazonaws.com eu-west-1");
  EXPECT_EQ(of("https://queue.amazonaws.com/1/q"), "https://queue.amazonaws.com us-east-1");
  EXPECT_EQ(of("http://127.0.0.1:9324/0/q"), "http://127.0.0.1:9324 ");
  EXPECT_EQ(of("http://127.0.0.1:9324/0/q", {.endpoint = "http://e"}), "http://e ");
  EXPECT_EQ(of("http://127.0.0.1:9324/0/q", {}, {{"AWS_ENDPOINT_URL", "http://e"}}), " ");
  EXPECT_EQ(of("orders"), " ");
}

TEST(IsLocal, IsThisMachineByAddressNameOrSocket) {
  const auto local = [](const char* url) { return is_local(*net::parse_url(url)); };
  EXPECT_TRUE(local("http://127.0.0.1:9324"));
  EXPECT_TRUE(local("https://localhost"));
  EXPECT_TRUE(local("http://[::1]:9324"));
  EXPECT_TRUE(local("unix:/run/s.sock"));
  EXPECT_FALSE(local("http://10.0.0.1:9324"));
  EXPECT_FALSE(local("https://sqs.eu-west-1.amazonaws.com"));
  EXPECT_FALSE(local("http://127.evil.example"));
}

}  // namespace
}  // namespace stanchion::client
