// The distributor with a server that answers when the test wants, and what it wants.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/http_test_kit.h"
#include "tests/worker/worker_kit.h"
#include "worker/distributor.h"

namespace stanchion::worker {
namespace {

using net::HttpResponse;

// Queues with one message each, called like their queue, beside a queue of work that is full.
class FullSystem {
 public:
  using Extend = std::function<void(net::Exchange)>;

  // `on_extension` answers extensions of the queue of that name; those of others are granted.
  FullSystem(std::string queue, Extend on_extension)
      : queue_(std::move(queue)),
        on_extension_(std::move(on_extension)),
        server_({}, 1, [this](net::Exchange exchange) { answer(std::move(exchange)); }) {}
  // An exchange is given up by its reactor.
  ~FullSystem() {
    std::promise<void> gone;
    run([&] {
      waiting_.clear();
      gone.set_value();
    });
    gone.get_future().wait();
  }

  std::string url_of(const std::string& name) const { return url() + "/0/" + name; }
  client::Client open_client() const {
    return std::move(*client::Client::open({.region = "eu-west-1",
                                            .endpoint = url(),
                                            .credentials = client::anonymous_credentials(),
                                            .verify_md5 = false}));
  }
  bool was_given_back(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return std::ranges::count(given_back_, name) > 0;
  }
  // REQUIRES: a call has come.
  void run(std::function<void()> on_reactor) { reactor_.load()->post(std::move(on_reactor)); }

 private:
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }

  static std::string queue_of(const std::string& body) {
    const std::size_t begin = body.find("/0/") + 3;
    return body.substr(begin, body.find('"', begin) - begin);
  }

  void answer(net::Exchange exchange) {
    reactor_ = &exchange.reactor();
    std::string action;
    for (const auto& [name, value] : exchange.request().headers)
      if (name == "X-Amz-Target" || name == "x-amz-target") action = value;
    const std::string body = exchange.request().body;
    const std::string queue = queue_of(body);
    if (action.ends_with(".GetQueueAttributes"))
      return exchange.answer(
          HttpResponse(200, R"({"Attributes":{"ApproximateNumberOfMessages":"1000"}})"));
    if (action.ends_with(".ReceiveMessage")) {
      // The second receive waits for the end.
      if (std::ranges::count(received_, queue) > 0) return waiting_.push_back(std::move(exchange));
      received_.push_back(queue);
      return exchange.answer(
          HttpResponse(200, R"({"Messages":[{"MessageId":")" + queue +
                                R"(","ReceiptHandle":"r","MD5OfBody":"m","Body":"b"}]})"));
    }
    if (body.find(R"("VisibilityTimeout":0)") != std::string::npos) {
      const std::lock_guard lock(mutex_);
      given_back_.push_back(queue);
    } else if (queue == queue_) {
      return on_extension_(std::move(exchange));
    }
    exchange.answer(HttpResponse(200, R"({"Successful":[{"Id":"0"}],"Failed":[]})"));
  }

  const std::string queue_;
  const Extend on_extension_;
  std::atomic<net::Reactor*> reactor_ = nullptr;
  std::mutex mutex_;
  std::vector<std::string> given_back_;
  // The reactor's.
  std::vector<std::string> received_;
  std::vector<net::Exchange> waiting_;
  net::test::TestServer server_;
};

TEST(DistributorFaults, AMessageGoesBackAfterTheAnswerToItsExtensionWhichMightOvertakeIt) {
  std::promise<std::shared_ptr<net::Exchange>> extended;
  FullSystem system("late", [&](net::Exchange exchange) {
    extended.set_value(std::make_shared<net::Exchange>(std::move(exchange)));
  });
  client::Client client = system.open_client();
  auto opened = MessageDistributor::open(
      client,
      {.tenants = {{.queue_url = system.url_of("late")}, {.queue_url = system.url_of("other")}},
       .work_queue_url = system.url_of("work"),
       // The message is lost three seconds after its extension was sent, if nothing is given back.
       .visibility = std::chrono::seconds(6)});
  ASSERT_TRUE(opened) << opened.error().to_string();
  auto comes = extended.get_future();
  ASSERT_EQ(comes.wait_for(kPatience), std::future_status::ready);
  std::shared_ptr<net::Exchange> extension = comes.get();
  std::thread destroyer([&] { opened->reset(); });
  // By then both messages would have gone back, if nothing kept them.
  EXPECT_TRUE(comes_true([&] { return system.was_given_back("other"); }));
  EXPECT_FALSE(system.was_given_back("late"));
  system.run([extension = std::move(extension)] {
    extension->answer(HttpResponse(200, R"({"Successful":[{"Id":"0"}],"Failed":[]})"));
  });
  destroyer.join();
  EXPECT_TRUE(system.was_given_back("late"));
}

TEST(DistributorFaults, MessagesOfAQueueThatIsGoneAreDroppedAtOnceAndItIsSaid) {
  int extensions = 0;
  FullSystem system("gone", [&](net::Exchange exchange) {
    ++extensions;
    exchange.answer(
        HttpResponse(400, R"({"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"gone"})"));
  });
  client::Client client = system.open_client();
  Record errors;
  auto opened = MessageDistributor::open(
      client, {.tenants = {{.queue_url = system.url_of("gone")}},
               .work_queue_url = system.url_of("work"),
               .visibility = std::chrono::seconds(1),
               .on_error = [&](const std::string& what) { errors.add(what); }});
  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_TRUE(comes_true([&] {
    const TenantMetrics tenant = (*opened)->metrics()[0];
    return tenant.received == 1 && tenant.in_flight == 0;
  }));
  opened->reset();
  ASSERT_EQ(errors.seen().size(), 1u);
  EXPECT_TRUE(errors.seen()[0].starts_with("gone: cannot extend the visibility of 1 messages: "))
      << errors.seen()[0];
  EXPECT_FALSE(system.was_given_back("gone"));
  EXPECT_EQ(extensions, 1);
}

}  // namespace
}  // namespace stanchion::worker
