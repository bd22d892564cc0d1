#include "server/greeting.h"

#include <gtest/gtest.h>

#include "settings/settings_file.h"

namespace stanchion::server {
namespace {

constexpr Instant kNow = from_millis(1'800'000'000'000);

settings::Settings with_key(settings::KeySettings key) {
  settings::Settings settings;
  settings.accounts = {{"123456789012", {std::move(key)}}};
  return settings;
}

TEST(LineToTry, HasAnyCredentialsWithoutAccounts) {
  EXPECT_EQ(line_to_try({}, 4000, "stanchion", kNow),
            "AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=thing aws --endpoint-url "
            "http://127.0.0.1:4000 --region us-east-1 sqs create-queue --queue-name hello");
}

TEST(LineToTry, CallsAnAddressThatCanBeCalled) {
  settings::Settings settings;
  settings.server.listen.host = "::";
  settings.server.insecure = true;
  EXPECT_NE(line_to_try(settings, 4000, "stanchion", kNow).find("'http://[::1]:4000'"),
            std::string::npos);
}

TEST(LineToTry, ReadsASecretFromItsFileAndNeverShowsOne) {
  const settings::Settings settings =
      with_key({.id = "AKIA", .secret = "shh", .secret_file = "/a b/it's"});
  EXPECT_EQ(line_to_try(settings, 4000, "stanchion", kNow),
            "AWS_ACCESS_KEY_ID=AKIA AWS_SECRET_ACCESS_KEY=\"$(cat '/a b/it'\\''s')\" aws "
            "--endpoint-url http://127.0.0.1:4000 --region us-east-1 sqs create-queue --queue-name "
            "hello");
}

TEST(LineToTry, AsksForTheHealthIfASecretWouldHaveToBeShown) {
  const std::string health = "/opt/stanchion health --url http://127.0.0.1:4000";
  for (const settings::KeySettings& key :
       {settings::KeySettings{.id = "AKIA", .secret = "shh"},
        settings::KeySettings{
            .id = "AKIA", .secret = "shh", .secret_file = "f", .session_token = "t"},
        settings::KeySettings{.id = "AKIA", .secret = "shh", .secret_file = "f", .expires = kNow}})
    EXPECT_EQ(line_to_try(with_key(key), 4000, "/opt/stanchion", kNow), health);
}

TEST(LineToTry, TakesAnyCertificateOfThisMachine) {
  settings::Settings settings;
  settings.tls = {"cert.pem", "key.pem"};
  EXPECT_NE(line_to_try(settings, 4000, "stanchion", kNow)
                .find("aws --no-verify-ssl --endpoint-url https://127.0.0.1:4000 "),
            std::string::npos);
  settings.accounts = with_key({.id = "AKIA", .secret = "shh"}).accounts;
  EXPECT_EQ(line_to_try(settings, 4000, "stanchion", kNow),
            "stanchion health --url https://127.0.0.1:4000 --no-verify");
}

TEST(LineToTry, NamesTheWholePathOfASocket) {
  settings::Settings settings;
  settings.server.unix_socket = "/run/a b";
  EXPECT_EQ(line_to_try(settings, 4000, "stanchion", kNow),
            "stanchion health --url 'unix:/run/a b'");
}

}  // namespace
}  // namespace stanchion::server
