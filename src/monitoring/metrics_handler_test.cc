#include "monitoring/metrics_handler.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "broker/shard_test_kit.h"

namespace stanchion::monitoring {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kToken = "0123456789abcdef";

struct Asked {
  std::string_view method = "GET";
  std::string_view host = "localhost:9324";
  std::string_view authorization = "";
};

// The status of the refusal; 200 if there is none.
int status(const Asked& asked, std::string_view token = "", bool needs_token = false) {
  net::HttpRequest request;
  request.method = asked.method;
  request.headers.push_back({"Host", asked.host});
  if (!asked.authorization.empty())
    request.headers.push_back({"Authorization", asked.authorization});
  const auto refusal = refusal_of_metrics(request, token, needs_token, service::PageGuard());
  return refusal ? refusal->status : 200;
}

TEST(MetricsHandler, WithoutAccountsWhoeverKnowsTheServersNameMaySeeThePage) {
  EXPECT_EQ(status({}), 200);
  EXPECT_EQ(status({.method = "HEAD"}), 200);
  EXPECT_EQ(status({.host = "evil.example:9324"}), 403);
}

TEST(MetricsHandler, ThePageIsOnlyRead) {
  for (const std::string_view method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    EXPECT_EQ(status({.method = method}), 405) << method;
    EXPECT_EQ(status({.method = method, .authorization = "Bearer 0123456789abcdef"}, kToken), 405);
  }
}

TEST(MetricsHandler, WithAccountsAndWithoutATokenNobodyMaySeeIt) {
  EXPECT_EQ(status({}, "", true), 403);
  EXPECT_EQ(status({.authorization = "Bearer "}, "", true), 403);
}

TEST(MetricsHandler, TheTokenMustBeRightToTheLastByte) {
  for (const bool accounts : {false, true}) {
    EXPECT_EQ(status({.authorization = "Bearer 0123456789abcdef"}, kToken, accounts), 200);
    for (const std::string_view wrong :
         {"", "Bearer", "Bearer ", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0",
          "Bearer 0123456789abcdeF", "Basic 0123456789abcdef", "0123456789abcdef"})
      EXPECT_EQ(status({.authorization = wrong}, kToken, accounts), 401) << wrong;
  }
}

// No page of a browser can send the token without asking first.
TEST(MetricsHandler, WhoHasTheTokenMayCallTheServerByAnyName) {
  EXPECT_EQ(status({.host = "queues.example.com", .authorization = "Bearer 0123456789abcdef"},
                   kToken, true),
            200);
}

class WantedQueues : public testing::Test {
 protected:
  WantedQueues() {
    auto opened = broker::Broker::open(
        {.shards = 1, .parallel_recovery = false},
        [](ShardIndex) -> Result<broker::Broker::Storage> {
          return broker::Broker::Storage{std::make_unique<broker::HeldJournal>(), nullptr};
        },
        clock_, entropy_);
    EXPECT_TRUE(opened) << opened.error().message;
    broker_ = std::move(*opened);
    broker_->start(
        {&loop_}, background_, [] {}, [](const Failure&) { FAIL(); });
    loop_.run();
    for (const char* name : {"orders", "orders-eu", "bills"}) ask(CreateQueue{ref(name), {}, {}});
    ask(CreateQueue{ref("steps.fifo"), {{"FifoQueue", "true"}}, {}});
  }

  static QueueRef ref(const std::string& name) { return {"000000000000", "us-east-1", name}; }

  void ask(Request request) {
    broker_->submit(loop_, std::move(request), [](const Reply& reply) { EXPECT_TRUE(reply); });
    loop_.run();
  }

  using Names = std::vector<std::string>;
  Names wanted(std::string_view setting, std::size_t per_account_max = broker::kAllQueues) {
    Names names;
    broker_->collect(loop_, {.queues = wanted_queues(setting), .per_account_max = per_account_max},
                     [&](broker::Figures all) {
                       for (const broker::QueueFigures& queue : all.shards.at(0).queues)
                         names.push_back(queue.queue.name);
                       left_out_ = all.shards.at(0).left_out;
                     });
    loop_.run();
    return names;
  }

  broker::NumberClock clock_;
  broker::CountingEntropy entropy_;
  broker::ManualLoop loop_;
  broker::ManualBackground background_;
  std::unique_ptr<broker::Broker> broker_;
  std::map<std::string, std::size_t> left_out_;
};

TEST_F(WantedQueues, AreAllOrNone) {
  EXPECT_EQ(wanted("all"), (Names{"bills", "orders", "orders-eu", "steps.fifo"}));
  EXPECT_EQ(wanted("none"), Names{});
}

TEST_F(WantedQueues, AreSoManyOfAnAccount) {
  for (const char* name : {"a", "b"}) ask(CreateQueue{{"111111111111", "us-east-1", name}, {}, {}});
  ask(CreateQueue{{"222222222222", "us-east-1", "z"}, {}, {}});
  using LeftOut = std::map<std::string, std::size_t>;
  EXPECT_EQ(wanted("all", 1), (Names{"bills", "a", "z"}));
  EXPECT_EQ(left_out_, (LeftOut{{"000000000000", 3}, {"111111111111", 1}}));
  EXPECT_EQ(wanted("all", 2), (Names{"bills", "orders", "a", "b", "z"}));
  EXPECT_EQ(left_out_, (LeftOut{{"000000000000", 2}}));
  EXPECT_EQ(wanted("orders*", 2), (Names{"orders", "orders-eu"}));
  EXPECT_EQ(left_out_, LeftOut{});
}

TEST_F(WantedQueues, AreThoseThatAPatternNames) {
  EXPECT_EQ(wanted("orders"), Names{"orders"});
  EXPECT_EQ(wanted("orders*"), (Names{"orders", "orders-eu"}));
  EXPECT_EQ(wanted("*.fifo, bills"), (Names{"bills", "steps.fifo"}));
  EXPECT_EQ(wanted("Orders,,"), Names{});
  EXPECT_EQ(wanted("*"), wanted("all"));
}

TEST_F(WantedQueues, AreActiveWhileTheyHoldMessagesOrAreCalled) {
  clock_.at += 7h;
  EXPECT_EQ(wanted("active"), Names{}) << "nobody has called any of them";
  SendMessage send{ref("bills"), "me", {}};
  send.message.body = "x";
  ask(send);
  ask(GetQueueAttributes{ref("orders"), {}});
  EXPECT_EQ(wanted("active"), (Names{"bills", "orders"}));
  clock_.at += 7h;
  EXPECT_EQ(wanted("active"), Names{"bills"}) << "it still holds a message";
  ask(PurgeQueue{ref("bills")});
  EXPECT_EQ(wanted("active"), Names{"bills"}) << "it was called";
  clock_.at += 7h;
  EXPECT_EQ(wanted("active"), Names{});
}

}  // namespace
}  // namespace stanchion::monitoring
