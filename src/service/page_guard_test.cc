#include "service/page_guard.h"

#include <gtest/gtest.h>

namespace stanchion::service {
namespace {

using Headers = std::vector<wire::HeaderView>;

bool may_call(const Headers& headers, const PageGuard& guard = PageGuard()) {
  const auto error = guard.check_call({"POST", "/", headers, ""});
  if (error) {
    EXPECT_EQ(error->code, ErrorCode::kAccessDenied);
  }
  return !error;
}

bool may_do(Action action, const Headers& headers, std::string_view target = "/") {
  return !PageGuard::check_action({"GET", target, headers, ""}, action);
}

TEST(PageGuard, KnowsTheServerByTheNamesOfLoopback) {
  const PageGuard guard;
  for (const std::string_view host :
       {"", "localhost", "localhost:9324", "LOCALHOST.", "127.0.0.1:9324", "127.9.9.9", "127.1",
        "[::1]:9324", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]:9324", "[::ffff:7f00:1]",
        "sqs.eu-west-1.localhost:9324"})
    EXPECT_TRUE(guard.knows(host)) << host;
  for (const std::string_view host :
       {"evil.example:9324", "127.0.0.1.evil.example", "localhost.evil.example", "evil.com.",
        "0.0.0.0:9324", "[::]:9324", "[::ffff:192.0.2.1]", "192.0.2.7", "stanchion:9324",
        "queues.local", "queues.internal", "notlocalhost", ".localhost", "[::1]evil.example",
        "[::1", "localhost:evil", ":9324", "127.evil.example", "[::127.0.0.1]"})
    EXPECT_FALSE(guard.knows(host)) << host;
}

TEST(PageGuard, KnowsTheServerByTheNamesItIsGiven) {
  const PageGuard guard({.hosts = {"stanchion", "*.queues.example.com", "192.0.2.7"}});
  for (const std::string_view host : {"stanchion", "Stanchion:9324", "a.queues.example.com",
                                      "a.b.Queues.Example.com:80", "192.0.2.7:1", "localhost"})
    EXPECT_TRUE(guard.knows(host)) << host;
  for (const std::string_view host :
       {"stanchion.evil.example", "queues.example.com", "evilqueues.example.com", "192.0.2.8"})
    EXPECT_FALSE(guard.knows(host)) << host;
  EXPECT_TRUE(PageGuard({.hosts = {"*"}}).knows("whatever.example"));
}

TEST(PageGuard, WhereOtherMachinesMayCallAddressesAndPrivateNamesAreTheServers) {
  const PageGuard guard({.open = true});
  for (const std::string_view host :
       {"192.0.2.7:9324", "[2001:db8::1]:9324", "stanchion:9324", "SQS.Local", "queues.internal.",
        "a.test", "x.home.arpa", "localhost"})
    EXPECT_TRUE(guard.knows(host)) << host;
  for (const std::string_view host :
       {"evil.example:9324", "192.0.2.7.evil.example", "evil.com.", "notlocal.evillocal"})
    EXPECT_FALSE(guard.knows(host)) << host;
}

TEST(PageGuard, RefusesWhatSaysThatAPageMadeIt) {
  EXPECT_TRUE(may_call({}));
  EXPECT_TRUE(may_call({{"Sec-Fetch-Site", "none"}}));  // The address bar.
  EXPECT_FALSE(may_call({{"Origin", "https://evil.example"}}));
  EXPECT_FALSE(may_call({{"origin", "null"}}));
  EXPECT_FALSE(may_call({{"Sec-Fetch-Site", "cross-site"}}));
  EXPECT_FALSE(may_call({{"Host", "evil.example"}, {"X-Stanchion-Control", "1"}}));
}

TEST(PageGuard, BehindAProxyBothHostsHaveToBeTheServers) {
  const PageGuard guard({.hosts = {"queues.example.com"}, .trust_forwarded = true});
  EXPECT_TRUE(may_call({{"Host", "127.0.0.1"}, {"X-Forwarded-Host", "queues.example.com"}}, guard));
  EXPECT_FALSE(may_call({{"Host", "127.0.0.1"}, {"X-Forwarded-Host", "evil.example"}}, guard));
  EXPECT_FALSE(may_call({{"Host", "evil.example"}, {"X-Forwarded-Host", "localhost"}}, guard));
}

// What a form, an image, a frame, a beacon or a fetch without CORS can send.
const Headers kOfAPage[] = {
    {},
    {{"Content-Type", "application/x-www-form-urlencoded"}, {"Accept", "*/*"}},
    {{"Content-Type", "text/plain"}, {"Range", "bytes=0-"}},
    {{"Content-Type", "application/x-amz-json-1.0"}},
    {{"Authorization", "Basic dXNlcjpwYXNz"}},  // Of http://user:pass@127.0.0.1:9324/.
    {{"Authorization", "Negotiate abc"}},
    {{"X-Forwarded-For", "192.0.2.1"}, {"X-Requested-With", "x"}, {"Cookie", "X-Amz-Date=1"}},
    {{"Upgrade", "websocket"}, {"Sec-WebSocket-Key", "abc"}},
};

const Headers kOfAProgram[] = {
    {{"Authorization", "AWS4-HMAC-SHA256 Credential=any/20260801/us-east-1/sqs/aws4_request"}},
    {{"x-amz-date", "20260801T000000Z"}},
    {{"X-Amz-Target", "AmazonSQS.SendMessage"}},
    {{"amz-sdk-invocation-id", "1"}},
    {{"Accept", "*/*"}, {"X-Stanchion-Control", "1"}},
};

TEST(PageGuard, NothingIsChangedByWhatAPageCanSend) {
  for (const std::string_view name : kActionNames) {
    const Action action = *find_action(name);
    const bool reads = name.starts_with("Get") || name.starts_with("List") || is_extension(action);
    EXPECT_EQ(traits_of(action).effect == Effect::kReads, reads) << name;
    for (const Headers& headers : kOfAPage) EXPECT_EQ(may_do(action, headers), reads) << name;
    for (const Headers& headers : kOfAProgram) EXPECT_TRUE(may_do(action, headers)) << name;
    // A signature in the URL proves nothing where nobody verifies it.
    EXPECT_EQ(may_do(action, {}, "/?X-Amz-Signature=00&X-Amz-Date=20260801T000000Z"), reads);
  }
}

TEST(PageGuard, SaysWhatAPresignedUrlLacks) {
  const Headers headers{{"Host", "localhost:9324"}};
  const std::string_view url = "/?Action=PurgeQueue&X-Amz-Credential=K&X-Amz-Signature=00";
  const auto error = PageGuard::check_action({"GET", url, headers, ""}, Action::kPurgeQueue);
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("X-Stanchion-Control: 1"), std::string::npos);
  EXPECT_NE(error->message.find("The signature in the URL is not enough"), std::string::npos);
  EXPECT_TRUE(may_do(Action::kPurgeQueue, {{"X-Stanchion-Control", "1"}}, url));
  EXPECT_TRUE(may_do(Action::kListQueues, {}, url));
}

}  // namespace
}  // namespace stanchion::service
