// Where credentials are found, with small servers in place of AWS's endpoints, and when they are
// fetched again.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <deque>
#include <fstream>
#include <map>
#include <mutex>

#include "client/credential_chain.h"
#include "client/credential_keeper.h"
#include "net/http_test_kit.h"
#include "os/temporary_directory.h"

namespace stanchion::client {
namespace {

using net::test::eventually;
using net::test::TestServer;
using Variables = std::map<std::string, std::string>;

Environment environment_of(Variables variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

std::string found_by(Variables variables, ChainOptions options = {}) {
  variables.emplace("HOME", "/nowhere");
  variables.emplace("AWS_EC2_METADATA_DISABLED", "true");
  const auto found = standard_chain(options, environment_of(variables))();
  if (!found) return found.error().to_string();
  return found->access_key_id + " " + found->secret_access_key + " " + found->session_token;
}

// A file that is removed with the test.
class File {
 public:
  explicit File(const std::string& text) { std::ofstream(path()) << text; }
  std::string path() const { return directory_.path() + "/file"; }

 private:
  os::TemporaryDirectory directory_;
};

TEST(Chain, TheEnvironmentIsFirst) {
  const File credentials("[default]\naws_access_key_id = F\naws_secret_access_key = G\n");
  Variables variables{{"AWS_SHARED_CREDENTIALS_FILE", credentials.path()}};
  EXPECT_EQ(found_by(variables), "F G ");
  variables["AWS_ACCESS_KEY_ID"] = "A";
  EXPECT_EQ(found_by(variables),
            "NoCredentials: $AWS_ACCESS_KEY_ID is set, but $AWS_SECRET_ACCESS_KEY is not");
  variables["AWS_SECRET_ACCESS_KEY"] = "B";
  EXPECT_EQ(found_by(variables), "A B ");
  variables["AWS_SESSION_TOKEN"] = "C";
  EXPECT_EQ(found_by(variables), "A B C");
  EXPECT_EQ(found_by(variables, {.profile = "default"}), "F G ") << "a profile that was asked for";
}

TEST(Chain, TheCredentialsFileIsBeforeTheConfigFile) {
  const File credentials("[a]\naws_access_key_id = F\naws_secret_access_key = G\n");
  const File config(
      "[profile a]\naws_access_key_id = H\naws_secret_access_key = I\n"
      "[profile b]\naws_access_key_id = J\naws_secret_access_key = K\naws_session_token = L\n"
      "[profile half]\naws_access_key_id = J\n[profile role]\nrole_arn = arn\n");
  Variables variables{{"AWS_SHARED_CREDENTIALS_FILE", credentials.path()},
                      {"AWS_CONFIG_FILE", config.path()},
                      {"AWS_PROFILE", "a"}};
  EXPECT_EQ(found_by(variables), "F G ");
  variables["AWS_PROFILE"] = "b";
  EXPECT_EQ(found_by(variables), "J K L");
  EXPECT_EQ(found_by(variables, {.profile = "a"}), "F G ");
  EXPECT_EQ(found_by(variables, {.profile = "half"}),
            "NoCredentials: the profile half has aws_access_key_id but no aws_secret_access_key");
  EXPECT_NE(found_by(variables, {.profile = "role"}).find("role_arn"), std::string::npos);
  variables["AWS_PROFILE"] = "none";
  EXPECT_NE(found_by(variables).find("there is no profile none"), std::string::npos);
}

TEST(Chain, NothingIsSaidWithWhereItWasLookedFor) {
  EXPECT_NE(found_by({}).find("$AWS_ACCESS_KEY_ID"), std::string::npos);
  EXPECT_EQ(found_by({}, {.local = true}), "  ") << "a server on this machine, without a signature";
}

// A server that answers with the texts given here.
class Answers {
 public:
  // By method and target, and what the header of a token says.
  using ByRequest = std::map<std::string, net::HttpResponse>;
  explicit Answers(ByRequest by_request) : by_request_(std::move(by_request)) {}

  void set(const std::string& request, int status, std::string body = "") {
    const std::lock_guard lock(mutex_);
    by_request_.insert_or_assign(request, net::HttpResponse(status, std::move(body)));
  }
  std::size_t asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

  std::function<void(net::Exchange)> handler(const char* token_header) {
    return [this, token_header](net::Exchange exchange) {
      const net::HttpRequest& request = exchange.request();
      const std::string asked_for = std::string(request.method) + " " +
                                    std::string(request.target) + " " +
                                    std::string(request.header(token_header).value_or(""));
      const std::lock_guard lock(mutex_);
      ++asked_;
      const auto found = by_request_.find(asked_for);
      exchange.answer(found == by_request_.end() ? net::HttpResponse(404) : found->second);
    };
  }

 private:
  std::mutex mutex_;
  ByRequest by_request_;
  std::size_t asked_ = 0;
};

constexpr const char* kKeys =
    R"({"Code":"Success","AccessKeyId":"A","SecretAccessKey":"B","Token":"C",)"
    R"("Expiration":"2036-11-16T09:00:01Z","Type":"x"})";

TEST(Chain, AContainersEndpointIsAskedWithItsToken) {
  Answers answers({{"GET /creds ", net::HttpResponse(200, kKeys)},
                   {"GET /creds word", net::HttpResponse(200, kKeys)},
                   {"GET /broken ", net::HttpResponse(500)},
                   {"GET /html ", net::HttpResponse(200, "<html>")}});
  TestServer server({}, 1, answers.handler("Authorization"));
  const std::string base = "http://127.0.0.1:" + std::to_string(server.port());
  const auto with = [&](const std::string& path, Variables more = {}) {
    more["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = base + path;
    return found_by(more, {.local = true});
  };
  EXPECT_EQ(with("/creds"), "A B C");
  EXPECT_EQ(with("/creds", {{"AWS_CONTAINER_AUTHORIZATION_TOKEN", "word"}}), "A B C");
  const File token("word\n");
  EXPECT_EQ(with("/creds", {{"AWS_CONTAINER_AUTHORIZATION_TOKEN", "old"},
                            {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.path()}}),
            "A B C");
  EXPECT_NE(with("/creds", {{"AWS_CONTAINER_AUTHORIZATION_TOKEN", "a\r\nb"}}).find("line"),
            std::string::npos);
  EXPECT_NE(
      with("/creds", {{"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/nowhere"}}).find("/nowhere"),
      std::string::npos);
  const std::size_t before = answers.asked();
  EXPECT_NE(with("/broken").find("answers with 500"), std::string::npos);
  EXPECT_EQ(answers.asked() - before, 3u) << "a server at fault is asked again";
  EXPECT_NE(with("/html").find("NoCredentials"), std::string::npos);
  EXPECT_NE(with("/none").find("answers with 404"), std::string::npos);
}

TEST(Chain, ARelativeUriIsAPathAndNoPartOfTheHost) {
  for (const char* uri : {"creds", ".example.com/creds", ":80/creds", "@example.com/creds"})
    EXPECT_NE(found_by({{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", uri}}).find("must begin with /"),
              std::string::npos)
        << uri;
}

// Opening one waits until somebody writes to it.
TEST(Chain, ANamedPipeIsRefusedAndNotWaitedFor) {
  const os::TemporaryDirectory directory;
  const std::string pipe = directory.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const char* variable : {"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"})
    EXPECT_NE(found_by({{variable, pipe}}).find("a named pipe"), std::string::npos) << variable;
  EXPECT_NE(found_by({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/"},
                      {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", pipe}})
                .find("a named pipe"),
            std::string::npos);
  EXPECT_NE(found_by({{"AWS_CONFIG_FILE", directory.path()}}).find("a directory"),
            std::string::npos);
}

TEST(Chain, AFileCanBeSaidToBeEmpty) {
  EXPECT_EQ(
      found_by({{"AWS_SHARED_CREDENTIALS_FILE", "/dev/null"}, {"AWS_CONFIG_FILE", "/dev/null"}},
               {.local = true}),
      "  ");
}

TEST(Chain, ATokenIsNotSentInPlainToStrangers) {
  EXPECT_NE(found_by({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/creds"}})
                .find("without https"),
            std::string::npos);
}

TEST(Chain, AnInstanceIsAskedByVersionTwo) {
  const std::string path = "/latest/meta-data/iam/security-credentials/";
  Answers answers({{"PUT /latest/api/token ", net::HttpResponse(200, "word")},
                   {"GET " + path + " word", net::HttpResponse(200, "role\n")},
                   {"GET " + path + "role word", net::HttpResponse(200, kKeys)}});
  TestServer server({}, 1, answers.handler("X-aws-ec2-metadata-token"));
  Variables variables{{"AWS_EC2_METADATA_DISABLED", "false"},
                      {"AWS_EC2_METADATA_SERVICE_ENDPOINT",
                       "http://127.0.0.1:" + std::to_string(server.port()) + "/"}};
  // Who gives no token within a second or two is taken for no instance, so that it is asked again.
  EXPECT_TRUE(eventually([&] { return found_by(variables) == "A B C"; })) << found_by(variables);
  const auto finds = [&](const char* text) {
    return eventually([&] { return found_by(variables).find(text) != std::string::npos; });
  };
  answers.set("GET " + path + " word", 200, "a/../b");
  EXPECT_TRUE(finds("does not name its role")) << found_by(variables);
  answers.set("GET " + path + " word", 404);
  EXPECT_TRUE(finds("has no role")) << found_by(variables);
  answers.set("PUT /latest/api/token ", 404);
  EXPECT_TRUE(finds("gives no token but 404")) << found_by(variables);
  variables["AWS_EC2_METADATA_DISABLED"] = "True";
  EXPECT_NE(found_by(variables).find("no credentials were found"), std::string::npos);
}

TEST(ParseCredentials, TakesTheTimeAtWhichTheyExpire) {
  const auto parsed = parse_credentials(kKeys);
  ASSERT_TRUE(parsed);
  using namespace std::chrono;
  EXPECT_EQ(parsed->expires, sys_days(2036y / November / 16) + 9h + 1s);
  EXPECT_FALSE(parse_credentials(
      R"({"AccessKeyId":"A","SecretAccessKey":"B","Expiration":"tomorrow at noon.... Z"})"));
  EXPECT_FALSE(parse_credentials(R"({"AccessKeyId":"A"})"));
  EXPECT_NE(parse_credentials(R"({"Code":"Failed","Message":"why"})").error().message.find("why"),
            std::string::npos);
}

// A keeper whose loop is run by hand; the source returns what is in `next`.
class Keeper : public testing::Test {
 protected:
  Keeper()
      : keeper(
            [this]() -> Outcome<Credentials> {
              ++fetches;
              return next;
            },
            [this](std::function<void()> task) {
              const std::lock_guard lock(mutex);
              tasks.push_back(std::move(task));
              posted.happen();
            },
            [this](const Error* error) {
              told.push_back(error == nullptr ? "" : error->message);
            }) {}

  // Runs what the n-th fetch posted.
  void finish_fetch(int n) {
    ASSERT_TRUE(posted.wait(n));
    const std::lock_guard lock(mutex);
    ASSERT_FALSE(tasks.empty());
    tasks.front()();
    tasks.pop_front();
  }

  static Credentials expiring(std::int64_t seconds) {
    return {"A", "B", "", std::chrono::system_clock::time_point(std::chrono::seconds(seconds))};
  }
  static Instant at(std::int64_t seconds) { return from_millis(seconds * 1'000); }

  Outcome<Credentials> next = Credentials{"A", "B", "", {}};
  std::atomic<int> fetches = 0;
  std::mutex mutex;
  std::deque<std::function<void()>> tasks;
  net::test::Event posted;
  std::vector<std::string> told;
  CredentialKeeper keeper;
};

TEST_F(Keeper, FetchesOnceForAllWhoWait) {
  EXPECT_EQ(keeper.get(at(0)), nullptr);
  EXPECT_EQ(keeper.get(at(0)), nullptr);
  finish_fetch(1);
  EXPECT_EQ(told, std::vector<std::string>{""});
  ASSERT_NE(keeper.get(at(1'000'000)), nullptr);
  EXPECT_EQ(fetches, 1);
}

TEST_F(Keeper, FetchesAnewBeforeTheyExpireAndUsesTheOldOnesMeanwhile) {
  next = expiring(1'000);
  keeper.get(at(0));
  finish_fetch(1);
  EXPECT_NE(keeper.get(at(699)), nullptr);
  EXPECT_EQ(fetches, 1);
  next = expiring(2'000);
  EXPECT_NE(keeper.get(at(700)), nullptr);
  finish_fetch(2);
  EXPECT_EQ(keeper.generation(), 2u);
  EXPECT_NE(keeper.get(at(1'500)), nullptr);
  EXPECT_EQ(told.size(), 1u) << "nobody waited for the second";
}

TEST_F(Keeper, AFailedRefreshIsTriedAgainAndMattersOnceTheOldOnesHaveExpired) {
  next = expiring(1'000);
  keeper.get(at(0));
  finish_fetch(1);
  next = Error{.code = code::kNoCredentials, .message = "gone"};
  EXPECT_NE(keeper.get(at(800)), nullptr);
  finish_fetch(2);
  EXPECT_NE(keeper.get(at(805)), nullptr);
  EXPECT_EQ(fetches, 2) << "too early to try again";
  EXPECT_NE(keeper.get(at(810)), nullptr);
  finish_fetch(3);
  EXPECT_EQ(keeper.get(at(995)), nullptr) << "they would expire on the way";
  finish_fetch(4);
  EXPECT_EQ(told.back(), "gone");
}

TEST_F(Keeper, WhatHasExpiredWhenItComesIsAnError) {
  next = expiring(100);
  EXPECT_EQ(keeper.get(at(200)), nullptr);
  finish_fetch(1);
  EXPECT_EQ(told.back(), "the credentials that were found have expired");
}

TEST_F(Keeper, ThoseThatAServerRefusedAreFetchedAgainOnce) {
  keeper.get(at(0));
  finish_fetch(1);
  keeper.refuse(1);
  EXPECT_EQ(keeper.get(at(0)), nullptr);
  finish_fetch(2);
  keeper.refuse(1);
  EXPECT_NE(keeper.get(at(0)), nullptr) << "the refused ones are gone already";
  EXPECT_EQ(fetches, 2);
}

}  // namespace
}  // namespace stanchion::client
