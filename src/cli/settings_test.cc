#include "cli/settings.h"

#include <gtest/gtest.h>

namespace stanchion::cli {
namespace {

std::string listen_as_text(const std::string& text) {
  const auto address = parse_listen(text);
  if (!address) return "refused";
  return address->host + " " + std::to_string(address->port);
}

std::string complaint(const ServeSettings& settings) {
  const Status ok = check(settings);
  return ok ? "" : ok.error().message;
}

bool names(const std::string& message, std::string_view setting) {
  return message.starts_with(setting);
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

TEST(ServeSettings, TheDefaultsAreFine) {
  EXPECT_EQ(complaint({}), "");
}

TEST(ServeSettings, OtherMachinesAreLetInOnlyIfThatIsAskedFor) {
  ServeSettings settings;
  settings.listen.host = "0.0.0.0";
  EXPECT_TRUE(names(complaint(settings), "--listen 0.0.0.0"));
  settings.insecure = true;
  EXPECT_EQ(complaint(settings), "");
}

TEST(ServeSettings, AnAccountHasTwelveDigits) {
  for (const char* account : {"", "1", "1234567890123", "12345678901x", "-12345678901"}) {
    ServeSettings settings;
    settings.account = account;
    EXPECT_TRUE(names(complaint(settings), "--account")) << account;
  }
}

TEST(ServeSettings, ARegionIsAShortWord) {
  ServeSettings settings;
  settings.region = "";
  EXPECT_TRUE(names(complaint(settings), "--region"));
  settings.region = std::string(65, 'x');
  EXPECT_TRUE(names(complaint(settings), "--region"));
}

// An ARN and a queue URL are taken apart at these characters.
TEST(ServeSettings, ARegionHasOnlyLettersDigitsAndHyphens) {
  for (const char* region : {"us:east", "us/east", "us east", "us_east\n", "é"}) {
    ServeSettings settings;
    settings.region = region;
    EXPECT_TRUE(names(complaint(settings), "--region")) << region;
  }
}

TEST(ServeSettings, ThreadsAndShardsAreBounded) {
  ServeSettings settings;
  settings.shards = 256;
  settings.threads = 256;
  EXPECT_EQ(complaint(settings), "");
  settings.shards = 257;
  EXPECT_TRUE(names(complaint(settings), "--shards"));
  settings.shards = 0;
  settings.threads = 257;
  EXPECT_TRUE(names(complaint(settings), "--shards and --threads"));
}

}  // namespace
}  // namespace stanchion::cli
