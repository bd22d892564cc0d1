#include "server/http_dispatcher.h"

#include <gtest/gtest.h>

namespace stanchion::server {
namespace {

struct Asked {
  bool from_here = true;
  std::string_view host = "localhost:9324";
  std::vector<net::HttpHeader> more = {{"X-Stanchion-Control", "1"}};
};

bool may(const Asked& asked, bool open) {
  net::HttpRequest request;
  request.peer.loopback = asked.from_here;
  request.headers = asked.more;
  request.headers.push_back({"Host", asked.host});
  return may_move_clock(request, open, service::PageGuard({.open = open}));
}

TEST(Clock, IsMovedByProgramsOnThisMachine) {
  for (const std::string_view host : {"localhost:9324", "127.0.0.1", "[::1]:9324"})
    EXPECT_TRUE(may({.host = host}, false)) << host;
  EXPECT_FALSE(may({.more = {}}, false));
}

TEST(Clock, IsNotMovedFromElsewhereWhateverHostIsClaimed) {
  EXPECT_FALSE(may({.from_here = false}, false));
  EXPECT_FALSE(may({.from_here = false, .host = "queues.example.com"}, false));
  EXPECT_FALSE(may({.host = "queues.example.com"}, false));
}

TEST(Clock, IsMovedByAnyProgramIfAnyoneMayDoAnything) {
  EXPECT_TRUE(may({.from_here = false, .host = "stanchion:9324"}, true));
  EXPECT_FALSE(may({.from_here = false, .more = {}}, true));
  EXPECT_FALSE(may({.host = "evil.example:9324"}, true));
  EXPECT_FALSE(may({.more = {{"X-Stanchion-Control", "1"}, {"Origin", "http://evil"}}}, true));
}

bool sees_names(const Asked& asked, bool has_accounts = false,
                service::PageGuardOptions pages = {}) {
  net::HttpRequest request;
  request.peer.loopback = asked.from_here;
  request.headers = asked.more;
  request.headers.push_back({"Host", asked.host});
  return may_see_queue_names(request, has_accounts, service::PageGuard(std::move(pages)));
}

TEST(Health, NamesQueuesToWhoeverMayDoEverythingAnyway) {
  EXPECT_TRUE(sees_names({.more = {}}));
  EXPECT_TRUE(
      sees_names({.from_here = false, .host = "10.0.0.1", .more = {}}, false, {.open = true}));
  EXPECT_TRUE(sees_names({.more = {{"Sec-Fetch-Site", "none"}}}));
}

TEST(Health, NamesQueuesToNoWebPageAndWithAccountsToNobody) {
  EXPECT_FALSE(sees_names({.host = "evil.example:9324", .more = {}}));
  EXPECT_FALSE(sees_names({.more = {{"Origin", "http://evil.example"}}}));
  EXPECT_FALSE(sees_names({.more = {{"Sec-Fetch-Site", "cross-site"}}}));
  for (const std::string_view host : {"localhost", "127.0.0.1", "evil.example", ""})
    EXPECT_FALSE(sees_names({.host = host, .more = {}}, true)) << host;
}

std::string shards(const HttpDispatcher::Readiness& readiness) {
  return HttpDispatcher::shard_members(readiness);
}

TEST(Health, NamesShardsThatNobodyServesAndThoseThatAreHeldBackWithTheReason) {
  EXPECT_EQ(shards({.why_not = ""}), "");
  EXPECT_EQ(shards({.why_not = "", .without_owner = {{ShardIndex(3), ""}, {ShardIndex(7), ""}}}),
            R"(,"shardsWithoutOwner":[3,7])");
  EXPECT_EQ(shards({.why_not = "",
                    .without_owner = {{ShardIndex(3), ""}, {ShardIndex(7), "n1 \"has\""}}}),
            R"(,"shardsWithoutOwner":[3,7],"shardsHeldBack":[{"shard":7,"reason":"n1 \"has\""}])");
}

TEST(Health, NamesShardsThatTheNodeHasGivenUp) {
  EXPECT_EQ(shards({.why_not = "",
                    .given_up = {{ShardIndex(0), "its log is damaged"}},
                    .without_owner = {{ShardIndex(1), ""}}}),
            R"(,"shardsGivenUp":[{"shard":0,"reason":"its log is damaged"}])"
            R"(,"shardsWithoutOwner":[1])");
}

TEST(Health, NamesShardsWhoseLogsTakeNothingWithTheirOwners) {
  EXPECT_EQ(shards({.why_not = "",
                    .without_owner = {{ShardIndex(1), ""}},
                    .stalled = {{ShardIndex(1), {"n2", from_millis(1'000), "it has no leader"}}}}),
            R"(,"shardsWithoutOwner":[1],"shardsStalled":[{"shard":1,"owner":"n2",)"
            R"("sinceMillis":1000,"reason":"it has no leader"}])");
}

}  // namespace
}  // namespace stanchion::server
