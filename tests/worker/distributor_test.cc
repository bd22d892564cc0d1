// The distributor of tenants' messages, against the real server.
#include "worker/distributor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/batcher.h"
#include "tests/worker/worker_kit.h"

namespace stanchion::worker {
namespace {

class Distributor : public WorkerServer {
 protected:
  std::unique_ptr<MessageDistributor> open_distributor(DistributorOptions options) {
    options.look_every = std::chrono::milliseconds(5);
    auto opened = MessageDistributor::open(client_, std::move(options));
    if (!opened) ADD_FAILURE() << opened.error().to_string();
    return opened ? std::move(*opened) : nullptr;
  }
  void flood(const std::string& url, int count, const std::string& body) {
    client::Batcher batcher(client_);
    for (int i = 0; i < count; ++i)
      batcher.send({.queue_url = url, .message_body = body},
                   [](const auto& sent) { EXPECT_TRUE(sent); });
  }
  // One period of service: the workers take as many as they handle at a time.
  std::vector<std::string> serve(const std::string& url, std::int64_t count) {
    std::vector<std::string> bodies;
    auto received = client_.receive_message({.queue_url = url, .max_number_of_messages = count});
    if (!received) return bodies;
    for (const auto& message : received->messages) {
      bodies.push_back(message.body);
      EXPECT_TRUE(client_.delete_message({url, message.receipt_handle}));
    }
    return bodies;
  }
  std::string waiting_in(const std::string& url) {
    return left_in(url).substr(0, left_in(url).find(' '));
  }
};

// An idle system serves a message in the first period after it was sent. The bar is twice that.
TEST_F(Distributor, WhileOneTenantFloodsTheOthersWaitNoLongerThanTwoPeriods) {
  constexpr std::int64_t kAtATime = 5;
  const std::string work = create("work");
  const std::string loud = create("loud");
  const std::vector<std::string> quiet{create("quiet-a"), create("quiet-b")};
  flood(loud, 400, "loud");
  auto distributor = open_distributor(
      {.tenants = {{.queue_url = loud}, {.queue_url = quiet[0]}, {.queue_url = quiet[1]}},
       .work_queue_url = work,
       .window = kAtATime});
  for (int round = 0; round < 8; ++round) {
    // The flood fills the queue of work as far as it may.
    ASSERT_TRUE(comes_true([&] { return waiting_in(work) == std::to_string(kAtATime); }));
    for (const std::string& url : quiet) send(url, "quiet");
    ASSERT_TRUE(comes_true([&] {
      return distributor->metrics()[1].received + distributor->metrics()[2].received >=
             static_cast<std::uint64_t>(round + 1) * 2;
    }));
    int periods = 0;
    for (std::size_t seen = 0; seen < quiet.size() && periods < 10;) {
      const auto bodies = serve(work, kAtATime);
      if (bodies.empty()) continue;
      ++periods;
      seen += static_cast<std::size_t>(std::count(bodies.begin(), bodies.end(), "quiet"));
      ASSERT_TRUE(comes_true([&] { return waiting_in(work) == std::to_string(kAtATime); }));
    }
    EXPECT_LE(periods, 2) << "in round " << round;
  }
}

TEST_F(Distributor, TenantsHaveSharesByTheirWeights) {
  const std::string work = create("work");
  const std::string one = create("one");
  const std::string three = create("three");
  flood(one, 200, "one");
  flood(three, 200, "three");
  auto distributor =
      open_distributor({.tenants = {{.queue_url = one}, {.queue_url = three, .weight = 3}},
                        .work_queue_url = work,
                        .window = 4});
  std::map<std::string, int> served;
  int total = 0;
  ASSERT_TRUE(comes_true([&] {
    const auto bodies = serve(work, 4);
    for (const std::string& body : bodies) ++served[body];
    total += static_cast<int>(bodies.size());
    return total >= 160;
  }));
  // 40 and 120; a tenant whose next ten are being received misses a turn now and then.
  EXPECT_GE(served["one"], 30);
  EXPECT_GE(served["three"], 80);
  EXPECT_GT(served["three"], served["one"]);
}

TEST_F(Distributor, EveryMessageIsMovedWithItsAttributesAndDeleted) {
  const std::string work = create("work");
  std::vector<std::string> urls;
  DistributorOptions options{.work_queue_url = work, .window = 1'000};
  for (int i = 0; i < 5; ++i) {
    urls.push_back(create("tenant-" + std::to_string(i)));
    options.tenants.push_back({.queue_url = urls.back()});
    for (int j = 0; j < 30; ++j) send(urls.back(), std::to_string(i * 30 + j));
  }
  auto sent = client_.send_message(
      {.queue_url = urls[0],
       .message_body = "with",
       .message_attributes = {{"kind", client::MessageAttributeValue::text("x")}}});
  ASSERT_TRUE(sent);
  auto distributor = open_distributor(std::move(options));
  ASSERT_TRUE(comes_true([&] { return waiting_in(work) == "151"; }));
  distributor.reset();
  for (const std::string& url : urls) EXPECT_EQ(left_in(url), "0 visible, 0 in flight");
  bool found = false;
  for (int i = 0; i < 151 && !found; i += 10) {
    auto received = client_.receive_message(
        {.queue_url = work, .max_number_of_messages = 10, .message_attribute_names = {"All"}});
    ASSERT_TRUE(received);
    for (const auto& message : received->messages)
      found = found ||
              (message.body == "with" && message.message_attributes.at("kind").string_value == "x");
  }
  EXPECT_TRUE(found);
}

TEST_F(Distributor, WhatIsInHandAtItsEndIsGivenBack) {
  const std::string work = create("work");
  const std::string tenant = create("tenant");
  flood(tenant, 30, "x");
  auto distributor =
      open_distributor({.tenants = {{.queue_url = tenant}}, .work_queue_url = work, .window = 3});
  ASSERT_TRUE(comes_true([&] { return waiting_in(work) == "3"; }));
  distributor.reset();
  EXPECT_EQ(left_in(work), "3 visible, 0 in flight");
  EXPECT_EQ(left_in(tenant), "27 visible, 0 in flight");
}

TEST_F(Distributor, SettingsThatCannotWorkAreErrorsThatSayWhatToSet) {
  const std::string work = create("work");
  const auto message_of = [&](DistributorOptions options) {
    auto opened = MessageDistributor::open(client_, std::move(options));
    return opened ? std::string("opened") : opened.error().message;
  };
  EXPECT_EQ(message_of({}), "there is no queue of work; set DistributorOptions::work_queue_url");
  EXPECT_EQ(message_of({.work_queue_url = work}),
            "there is no tenant; set DistributorOptions::tenants");
  EXPECT_EQ(message_of({.tenants = {{.queue_url = "t", .weight = 0}}, .work_queue_url = work}),
            "t: the weight must be above 0");
  EXPECT_EQ(message_of({.tenants = {{.queue_url = "t"}},
                        .work_queue_url = work,
                        .visibility = std::chrono::seconds(0)}),
            "DistributorOptions::visibility must be from 1 to 240 seconds");
  const std::string missing = work + "-missing";
  EXPECT_TRUE(message_of({.tenants = {{.queue_url = missing}}, .work_queue_url = work})
                  .starts_with(missing + ": "));
}

}  // namespace
}  // namespace stanchion::worker
