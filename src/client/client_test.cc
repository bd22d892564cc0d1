// The client with a server that answers what the test wants, also what no good server would.
#include "client/client.h"

#include <gtest/gtest.h>

#include <deque>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "client/batcher.h"
#include "net/http_test_kit.h"
#include "os/clock.h"
#include "wire/sigv4.h"

namespace stanchion::client {
namespace {

using net::HttpResponse;
using net::test::TestServer;
using std::chrono::milliseconds;

constexpr const char* kHello = "5d41402abc4b2a76b9719d911017c592";  // MD5 of "hello".

std::string sent_answer(const std::string& md5 = kHello) {
  return R"({"MessageId":"m","MD5OfMessageBody":")" + md5 + "\"}";
}

HttpResponse error_answer(int status, const std::string& type) {
  HttpResponse response(status, R"({"__type":")" + type + R"(","message":"said"})");
  response.add_header("x-amzn-RequestId", "the-id");
  return response;
}

// Answers calls in turn with the queued answers, and remembers the calls.
class Sqs {
 public:
  explicit Sqs(std::deque<HttpResponse> answers = {})
      : answers_(std::move(answers)), server_({}, 1, [this](net::Exchange exchange) {
          const std::lock_guard lock(mutex_);
          net::HttpRequest& request = exchange.request();
          std::vector<wire::HeaderView> headers;
          for (const auto& [name, value] : request.headers) headers.emplace_back(name, value);
          if (on_call)
            on_call(wire::HttpCall{request.method, request.target, headers, request.body});
          bodies_.push_back(request.body);
          if (answers_.empty()) return exchange.answer(HttpResponse(200, "{}"));
          exchange.answer(std::move(answers_.front()));
          answers_.pop_front();
        }) {}

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }
  TestServer& server() { return server_; }
  std::vector<std::string> bodies() {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }

  std::function<void(const wire::HttpCall&)> on_call;  // Set before the first call.

 private:
  std::mutex mutex_;
  std::deque<HttpResponse> answers_;
  std::vector<std::string> bodies_;
  TestServer server_;
};

Options options_for(const Sqs& sqs) {
  return {.region = "eu-west-1",
          .endpoint = sqs.url(),
          .credentials = anonymous_credentials(),
          .retry = {.delay_base = milliseconds(1), .throttled_delay_base = milliseconds(1)}};
}

Client must_open(Options options) {
  auto opened = Client::open(std::move(options));
  if (!opened) ADD_FAILURE() << opened.error().to_string();
  return std::move(*opened);
}

const SendMessageRequest kSendHello{.queue_url = "http://h/1/q", .message_body = "hello"};
const SendMessageRequest kSendOnce{.queue_url = "http://h/1/q.fifo",
                                   .message_body = "hello",
                                   .message_deduplication_id = "d",
                                   .message_group_id = "g"};

TEST(Signing, IsWhatAServerVerifies) {
  Sqs sqs;
  std::promise<std::string> verdict;
  sqs.on_call = [&](const wire::HttpCall& call) {
    wire::Verifier verifier([](std::string_view id) -> std::optional<wire::AccessKey> {
      if (id != "AKID") return std::nullopt;
      return wire::AccessKey{"secret/+", "token", kNever};
    });
    os::SystemClock clock;
    const auto signer = verifier.verify(call, {.region = "eu-west-1"}, clock.now());
    verdict.set_value(signer ? "good" : signer.error().message);
    EXPECT_EQ(call.header("X-Amz-Target"), "AmazonSQS.ListQueues");
    EXPECT_EQ(call.header("Content-Type"), "application/x-amz-json-1.0");
    EXPECT_TRUE(call.header("User-Agent").ends_with(" billing/1.2"));
  };
  Options options = options_for(sqs);
  options.credentials = static_credentials({"AKID", "secret/+", "token", {}});
  options.user_agent = "billing/1.2";
  EXPECT_TRUE(must_open(options).list_queues());
  EXPECT_EQ(verdict.get_future().get(), "good");
}

TEST(Retries, ThrottlingAndFaultsOfTheServerAreRepeated) {
  Sqs sqs({error_answer(403, "x#RequestThrottled"), error_answer(503, "x#ServiceUnavailable"),
           HttpResponse(200, sent_answer())});
  auto sent = must_open(options_for(sqs)).send_message(kSendHello);
  ASSERT_TRUE(sent) << sent.error().to_string();
  EXPECT_EQ(sent.attempts(), 3);
  EXPECT_FALSE(sent.may_be_duplicated()) << "both refusals say that nothing was done";
  EXPECT_EQ(sqs.bodies().size(), 3u);
}

TEST(Retries, AreBounded) {
  std::deque<HttpResponse> answers;
  for (int i = 0; i < 9; ++i) answers.push_back(error_answer(503, "x#ServiceUnavailable"));
  Sqs sqs(std::move(answers));
  auto failed = must_open(options_for(sqs)).list_queues();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.attempts(), 4);
  EXPECT_EQ(failed.error().http_status, 503);
  EXPECT_EQ(failed.error().request_id, "the-id");
  EXPECT_EQ(sqs.bodies().size(), 4u);
}

TEST(Retries, ASendThatMayHaveHappenedIsNotRepeatedInSilence) {
  const auto answers = [] {
    return std::deque<HttpResponse>{error_answer(500, "x#InternalFailure"),
                                    HttpResponse(200, sent_answer())};
  };
  {
    Sqs sqs(answers());
    auto failed = must_open(options_for(sqs)).send_message(kSendHello);
    ASSERT_FALSE(failed);
    EXPECT_TRUE(failed.error().may_have_happened);
    EXPECT_EQ(failed.attempts(), 1);
  }
  {
    Sqs sqs(answers());
    Options options = options_for(sqs);
    options.retry.repeat_ambiguous_sends = true;
    auto sent = must_open(options).send_message(kSendHello);
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent.attempts(), 2);
    EXPECT_TRUE(sent.may_be_duplicated());
  }
  {
    Sqs sqs(answers());
    auto sent = must_open(options_for(sqs)).send_message(kSendOnce);
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent.attempts(), 2);
    EXPECT_FALSE(sent.may_be_duplicated());
  }
}

TEST(Retries, ABatchIsRepeatedOnlyIfEveryEntryMayBe) {
  Sqs sqs({error_answer(500, "x#InternalFailure")});
  SendMessageBatchRequest batch{"http://h/1/q.fifo", {{.message_body = "hello"}}};
  batch.entries.push_back({.message_body = "hello", .message_deduplication_id = "d"});
  auto failed = must_open(options_for(sqs)).send_message_batch(batch);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.attempts(), 1);
  EXPECT_TRUE(failed.error().may_have_happened);
}

TEST(Retries, TheErrorRemembersThatAnEarlierAttemptMayHaveHappened) {
  Sqs sqs({error_answer(500, "x#InternalFailure"), error_answer(400, "x#QueueDoesNotExist")});
  auto failed = must_open(options_for(sqs)).delete_queue({"http://h/1/q"});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, "QueueDoesNotExist");
  EXPECT_TRUE(failed.error().may_have_happened);
  EXPECT_EQ(failed.attempts(), 2);
}

TEST(Retries, AFifoReceiveIsRepeatedUnderTheSameAttemptId) {
  Sqs sqs({error_answer(500, "x#InternalFailure")});
  ASSERT_TRUE(must_open(options_for(sqs)).receive_message({.queue_url = "http://h/1/q.fifo"}));
  const auto bodies = sqs.bodies();
  ASSERT_EQ(bodies.size(), 2u);
  EXPECT_EQ(bodies[0], bodies[1]);
  EXPECT_NE(bodies[0].find("ReceiveRequestAttemptId"), std::string::npos);
}

TEST(CredentialsOfCalls, ThatWereRefusedAreFetchedAgainAndTheCallRepeated) {
  Sqs sqs({error_answer(403, "x#ExpiredTokenException")});
  std::atomic<int> fetches = 0;
  Options options = options_for(sqs);
  options.credentials = [&]() -> Outcome<Credentials> {
    return Credentials{"key" + std::to_string(++fetches), "s", "", {}};
  };
  auto listed = must_open(options).list_queues();
  ASSERT_TRUE(listed) << listed.error().to_string();
  EXPECT_EQ(listed.attempts(), 2);
  EXPECT_EQ(fetches, 2);
}

TEST(CredentialsOfCalls, ThatAreMissingFailTheCallBeforeItIsSent) {
  Sqs sqs;
  Options options = options_for(sqs);
  options.credentials = []() -> Outcome<Credentials> {
    return Error{.code = code::kNoCredentials, .message = "none", .fault = Fault::kLocal};
  };
  auto failed = must_open(options).list_queues();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, code::kNoCredentials);
  EXPECT_EQ(failed.attempts(), 0);
  EXPECT_TRUE(sqs.bodies().empty());
}

TEST(Checksums, ASendThatArrivedDamagedIsAnError) {
  Sqs sqs({HttpResponse(200, sent_answer(std::string(32, '0')))});
  auto failed = must_open(options_for(sqs)).send_message(kSendHello);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, code::kChecksumMismatch);
  EXPECT_TRUE(failed.error().may_have_happened);
}

TEST(Checksums, AttributesAreVerifiedToo) {
  Sqs sqs({HttpResponse(200, sent_answer())});
  SendMessageRequest request = kSendHello;
  request.message_attributes = {{"a", MessageAttributeValue::text("x")}};
  auto failed = must_open(options_for(sqs)).send_message(request);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("MD5OfMessageAttributes"), std::string::npos);
}

TEST(Checksums, AnEntryThatArrivedDamagedIsOneThatFailed) {
  const std::string good =
      R"({"Id":"0","MessageId":"m","MD5OfMessageBody":")" + std::string(kHello) + "\"}";
  const std::string bad =
      R"({"Id":"1","MessageId":"m","MD5OfMessageBody":")" + std::string(32, '0') + "\"}";
  Sqs sqs({HttpResponse(200, R"({"Successful":[)" + good + "," + bad + "]}")});
  auto sent = must_open(options_for(sqs))
                  .send_message_batch(
                      {"http://h/1/q", {{.message_body = "hello"}, {.message_body = "hello"}}});
  ASSERT_TRUE(sent);
  ASSERT_EQ(sent->successful.size(), 1u);
  ASSERT_EQ(sent->failed.size(), 1u);
  EXPECT_EQ(sent->failed[0].id, "1");
  EXPECT_EQ(sent->failed[0].code, code::kChecksumMismatch);
}

TEST(Checksums, AMessageThatArrivesDamagedIsSetAside) {
  const auto message = [](const std::string& id, const std::string& md5) {
    return R"({"MessageId":")" + id + R"(","ReceiptHandle":"r","Body":"hello","MD5OfBody":")" +
           md5 + "\"}";
  };
  const std::string body = R"({"Messages":[)" + message("bad", std::string(32, '0')) + "," +
                           message("good", kHello) + "]}";
  Sqs sqs({HttpResponse(200, body), HttpResponse(200, body)});
  Options options = options_for(sqs);
  auto received = must_open(options).receive_message({.queue_url = "http://h/1/q"});
  ASSERT_TRUE(received) << received.error().to_string();
  ASSERT_EQ(received->messages.size(), 1u);
  EXPECT_EQ(received->messages[0].message_id, "good");
  ASSERT_EQ(received->damaged.size(), 1u);
  EXPECT_EQ(received->damaged[0].message_id, "bad");
  options.verify_md5 = false;
  EXPECT_EQ(must_open(options).receive_message({.queue_url = "http://h/1/q"})->messages.size(), 2u);
}

TEST(Answers, ThatMakeNoSenseAreErrors) {
  Sqs sqs({HttpResponse(200, "<html>"), HttpResponse(302, ""), HttpResponse(200, "{}")});
  Client client = must_open(options_for(sqs));
  auto html = client.create_queue({.queue_name = "q"});
  ASSERT_FALSE(html);
  EXPECT_EQ(html.error().code, code::kBadAnswer);
  EXPECT_TRUE(html.error().may_have_happened);
  auto moved = client.list_queues();
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().http_status, 302);
  auto empty = client.create_queue({.queue_name = "q"});
  ASSERT_FALSE(empty);
  EXPECT_NE(empty.error().message.find("QueueUrl is missing"), std::string::npos);
}

TEST(Connections, AreKeptAndBoundedInNumber) {
  Sqs sqs;
  Options options = options_for(sqs);
  options.connections_max = 2;
  Client client = must_open(options);
  std::promise<void> all;
  std::atomic<int> left = 50;
  for (int i = 0; i < 50; ++i)
    client.list_queues({}, [&](const auto& outcome) {
      EXPECT_TRUE(outcome);
      if (--left == 0) all.set_value();
    });
  all.get_future().wait();
  EXPECT_LE(sqs.server().server->stats().accepted, 2u);
}

TEST(Connections, CallsBeyondTheLimitFailAtOnce) {
  Sqs sqs;
  Options options = options_for(sqs);
  options.endpoint += "/park";
  options.calls_max = 1;
  Client client = must_open(options);
  std::promise<void> ended;
  const CallId parked = client.list_queues({}, [&](const auto& outcome) {
    EXPECT_EQ(outcome.error().code, code::kCancelled);
    EXPECT_TRUE(outcome.error().may_have_happened);
    ended.set_value();
  });
  auto refused = client.list_queues();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, code::kTooManyCalls);
  ASSERT_TRUE(sqs.server().handler.parked.wait());
  client.cancel(parked);
  ended.get_future().wait();
  EXPECT_TRUE(sqs.server().handler.abandoned.wait()) << "the server is told that nobody waits";
}

TEST(Connections, ACallThatWaitsForAConnectionCanBeTakenBack) {
  Sqs sqs;
  Options options = options_for(sqs);
  options.endpoint += "/park";
  options.connections_max = 1;
  Client client = must_open(options);
  std::promise<void> first, second;
  const CallId parked = client.list_queues({}, [&](const auto&) { first.set_value(); });
  ASSERT_TRUE(sqs.server().handler.parked.wait());
  const CallId waiting = client.list_queues({}, [&](const auto& outcome) {
    EXPECT_FALSE(outcome.error().may_have_happened);
    second.set_value();
  });
  client.cancel(waiting);
  second.get_future().wait();
  client.cancel(parked);
  first.get_future().wait();
}

TEST(Timeouts, AreErrorsThatSayWhetherTheCallWasSent) {
  Sqs sqs;
  Options options = options_for(sqs);
  options.endpoint += "/park";
  options.request_timeout = milliseconds(200);
  options.retry.attempts_max = 2;
  auto late = must_open(options).send_message(kSendHello);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, code::kTimeout);
  EXPECT_TRUE(late.error().may_have_happened);
  EXPECT_EQ(late.attempts(), 1);
  EXPECT_EQ(must_open(options).list_queues().attempts(), 2);
}

// A loop of the caller's.
class Loop {
 public:
  Executor executor() {
    return [this](std::function<void()> task) {
      {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(task));
      }
      posted_.happen();
    };
  }
  void run_one() {
    ASSERT_TRUE(posted_.wait(++run_));
    std::function<void()> task;
    {
      const std::lock_guard lock(mutex_);
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }

 private:
  std::mutex mutex_;
  std::deque<std::function<void()>> tasks_;
  net::test::Event posted_;
  int run_ = 0;
};

TEST(Completions, RunOnTheLoopOfTheCaller) {
  Sqs sqs;
  Loop loop;
  Options options = options_for(sqs);
  options.executor = loop.executor();
  Client client = must_open(options);
  std::thread::id ran_on;
  client.list_queues({}, [&](const auto& outcome) {
    EXPECT_TRUE(outcome);
    ran_on = std::this_thread::get_id();
    EXPECT_TRUE(client.list_queues()) << "this thread may wait";
  });
  loop.run_one();
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(Completions, OnTheClientsThreadDoNotWait) {
  Sqs sqs;
  Client client = must_open(options_for(sqs));
  std::promise<std::string> code;
  client.list_queues({}, [&](const auto&) { code.set_value(client.list_queues().error().code); });
  EXPECT_EQ(code.get_future().get(), code::kInvalidRequest);
}

TEST(BatcherOfCalls, PutsSingleSendsTogetherAndTellsEachItsResult) {
  std::string entries;
  for (int i = 0; i < 3; ++i)
    entries +=
        (i == 0 ? "" : ",") + (R"({"Id":")" + std::to_string(i) + R"(","MessageId":"m)" +
                               std::to_string(i) + R"(","MD5OfMessageBody":")" + kHello + "\"}");
  Sqs sqs({HttpResponse(200, R"({"Successful":[)" + entries +
                                 R"(],"Failed":[{"Id":"3","Code":"Nope","Message":"why",)"
                                 R"("SenderFault":true}]})")});
  Client client = must_open(options_for(sqs));
  std::mutex mutex;
  std::vector<std::string> ends;
  {
    Batcher batcher(client, {.linger = std::chrono::hours(1)});
    for (int i = 0; i < 5; ++i)
      batcher.send(kSendHello, [&](const auto& outcome) {
        const std::lock_guard lock(mutex);
        ends.push_back(outcome ? outcome->message_id : outcome.error().code);
      });
    batcher.send({.queue_url = "http://h/1/q", .message_body = "\xff"}, [&](const auto& outcome) {
      EXPECT_EQ(outcome.error().code, code::kInvalidRequest) << "and the others do not suffer";
    });
  }
  EXPECT_EQ(ends, (std::vector<std::string>{"m0", "m1", "m2", "Nope", code::kBadAnswer}));
  EXPECT_EQ(sqs.bodies().size(), 1u);
}

TEST(BatcherOfCalls, AFailedCallFailsEveryEntry) {
  Sqs sqs({error_answer(400, "x#QueueDoesNotExist")});
  Client client = must_open(options_for(sqs));
  Batcher batcher(client);
  std::atomic<int> failed = 0;
  for (int i = 0; i < 3; ++i)
    batcher.remove({"http://h/1/q", "r"}, [&](const auto& outcome) {
      EXPECT_EQ(outcome.error().code, "QueueDoesNotExist");
      ++failed;
    });
  batcher.drain();
  EXPECT_EQ(failed, 3);
}

}  // namespace
}  // namespace stanchion::client
