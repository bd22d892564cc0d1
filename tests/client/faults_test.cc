// What happens to calls when the real server is killed, started again, silent, or asks for keys and
// TLS.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <future>
#include <memory>
#include <set>
#include <string>

#include "client/batcher.h"
#include "client/client.h"
#include "net/tls_test_kit.h"
#include "os/temporary_directory.h"
#include "tests/client/server_process.h"

namespace stanchion::client {
namespace {

using std::chrono::milliseconds;
using test::ServerProcess;

Client must_open(Options options) {
  auto opened = Client::open(std::move(options));
  if (!opened) ADD_FAILURE() << opened.error().to_string();
  return std::move(*opened);
}

std::string must_create(Client& client, const std::string& name, StringMap attributes = {}) {
  auto made = client.create_queue({.queue_name = name, .attributes = std::move(attributes)});
  if (!made) ADD_FAILURE() << made.error().to_string();
  return made ? made->queue_url : "";
}

TEST(Faults, AServerThatIsStartedAgainIsCalledAsIfNothingHadHappened) {
  const os::TemporaryDirectory data;
  const std::vector<std::string> arguments{"--data", data.path()};
  auto server = std::make_unique<ServerProcess>(arguments);
  const std::string port = server->port();
  Client client = must_open({.endpoint = server->url()});
  const std::string url = must_create(client, "kept");
  ASSERT_TRUE(client.send_message({.queue_url = url, .message_body = "before"}));
  server->kill();
  server = std::make_unique<ServerProcess>(arguments, port);
  auto sent = client.send_message({.queue_url = url, .message_body = "after"});
  ASSERT_TRUE(sent) << sent.error().to_string();
  EXPECT_FALSE(sent.may_be_duplicated());
  auto received = client.receive_message({.queue_url = url, .max_number_of_messages = 10});
  ASSERT_TRUE(received);
  EXPECT_EQ(received->messages.size(), 2u);
}

TEST(Faults, ACallIsRepeatedUntilTheServerIsBack) {
  auto server = std::make_unique<ServerProcess>();
  const std::string port = server->port();
  Client client = must_open({.endpoint = server->url(),
                             .retry = {.attempts_max = 100'000, .delay_max = milliseconds(50)}});
  server->kill();
  std::promise<Outcome<ListQueuesResult>> listed;
  client.list_queues({}, [&](auto outcome) { listed.set_value(std::move(outcome)); });
  server = std::make_unique<ServerProcess>(std::vector<std::string>{"--in-memory"}, port);
  auto outcome = listed.get_future().get();
  ASSERT_TRUE(outcome) << outcome.error().to_string();
  EXPECT_GE(outcome.attempts(), 1);
}

// How often a call asked a server that had no room for it until another client went.
void count_attempts_at_a_full_server(int& attempts) {
  const ServerProcess server({"--in-memory", "--limits-connections", "1"});
  auto first = std::make_unique<Client>(must_open({.endpoint = server.url()}));
  const std::string url = must_create(*first, "full");

  // The only connection is the first client's, for as long as it exists.
  Client patient = must_open({.endpoint = server.url(),
                              .retry = {.attempts_max = 100'000, .delay_max = milliseconds(10)}});
  std::promise<Outcome<SendMessageResult>> sent;
  patient.send_message({.queue_url = url, .message_body = "a"},
                       [&](auto outcome) { sent.set_value(std::move(outcome)); });
  Client impatient = must_open({.endpoint = server.url(), .retry = {.attempts_max = 1}});
  for (int i = 0; i < 20; ++i) {
    auto refused = impatient.list_queues();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().http_status, 503) << refused.error().to_string();
    EXPECT_FALSE(refused.error().may_have_happened);
  }
  first.reset();
  auto outcome = sent.get_future().get();
  ASSERT_TRUE(outcome) << outcome.error().to_string();
  attempts = outcome.attempts();
  EXPECT_FALSE(outcome.may_be_duplicated()) << "what was turned away was not done";
}

TEST(Faults, AServerThatTurnsClientsAwayIsAskedAgainUntilItHasRoom) {
  // On a busy machine the call may come to the server only when there is room already.
  int attempts = 1;
  for (int round = 0; round < 50 && attempts == 1 && !HasFailure(); ++round)
    count_attempts_at_a_full_server(attempts);
  EXPECT_GT(attempts, 1);
}

TEST(Faults, NobodyListeningIsAnErrorThatSaysWhereAndThatNothingWasSent) {
  std::string url;
  { url = ServerProcess().url(); }
  Client client = must_open({.endpoint = url, .retry = {.delay_base = milliseconds(1)}});
  auto failed = client.send_message({.queue_url = url + "/0/q", .message_body = "a"});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, code::kConnectionFailed);
  EXPECT_EQ(failed.error().fault, Fault::kNetwork);
  EXPECT_FALSE(failed.error().may_have_happened);
  EXPECT_EQ(failed.attempts(), 4);
  EXPECT_NE(failed.error().message.find("cannot connect to 127.0.0.1:"), std::string::npos);
}

// Leaves the client with two connections that wait for the next call: a call on one of those is
// written as soon as the client's thread takes it.
void open_two_connections(Client& client, const std::string& url) {
  std::promise<void> received;
  client.receive_message({.queue_url = url, .wait_time_seconds = 20}, [&](const auto& outcome) {
    EXPECT_TRUE(outcome);
    received.set_value();
  });
  EXPECT_TRUE(client.send_message({.queue_url = url, .message_body = "wake up"}));
  received.get_future().wait();
}

// Returns when the client's thread has taken every call that was made before.
void wait_until_taken(Client& client) {
  std::promise<void> ended;
  client.cancel(client.list_queues({}, [&](const auto&) { ended.set_value(); }));
  ended.get_future().wait();
}

TEST(Faults, ASendWhoseConnectionBreaksIsNotRepeatedAndADeleteIs) {
  ServerProcess server;
  Client client = must_open({.endpoint = server.url(), .retry = {.delay_base = milliseconds(1)}});
  const std::string url = must_create(client, "broken");
  open_two_connections(client, url);
  server.pause();
  std::promise<Outcome<SendMessageResult>> sent;
  std::promise<Outcome<DeleteMessageResult>> deleted;
  client.send_message({.queue_url = url, .message_body = "a"},
                      [&](auto outcome) { sent.set_value(std::move(outcome)); });
  client.delete_message({url, "r"}, [&](auto outcome) { deleted.set_value(std::move(outcome)); });
  wait_until_taken(client);
  server.kill();
  auto send = sent.get_future().get();
  ASSERT_FALSE(send);
  EXPECT_EQ(send.error().code, code::kConnectionLost);
  EXPECT_TRUE(send.error().may_have_happened);
  EXPECT_EQ(send.attempts(), 1);
  auto remove = deleted.get_future().get();
  ASSERT_FALSE(remove);
  EXPECT_GT(remove.attempts(), 1);
  EXPECT_TRUE(remove.error().may_have_happened);
}

TEST(Faults, ASilentServerIsGivenUp) {
  ServerProcess server;
  Client patient = must_open({.endpoint = server.url()});
  const std::string url = must_create(patient, "silent");
  Client client = must_open({.endpoint = server.url(), .request_timeout = milliseconds(300)});
  server.pause();
  auto late = client.send_message({.queue_url = url, .message_body = "a"});
  server.resume();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, code::kTimeout);
  EXPECT_TRUE(late.error().may_have_happened);
}

TEST(Faults, FifoSendsWithAnIdAreThereOnceAcrossKills) {
  const os::TemporaryDirectory data;
  const std::vector<std::string> arguments{"--data", data.path()};
  auto server = std::make_unique<ServerProcess>(arguments);
  const std::string port = server->port();
  Client client = must_open({.endpoint = server->url(),
                             .retry = {.attempts_max = 100'000, .delay_max = milliseconds(20)}});
  const std::string url = must_create(client, "once.fifo", {{"FifoQueue", "true"}});
  constexpr int kCount = 300;
  std::atomic<int> good = 0;
  {
    Batcher batcher(client);
    for (int i = 0; i < kCount; ++i) {
      batcher.send({.queue_url = url,
                    .message_body = std::to_string(i),
                    .message_deduplication_id = "d" + std::to_string(i),
                    .message_group_id = "g"},
                   [&](const auto& outcome) {
                     EXPECT_TRUE(outcome) << outcome.error().to_string();
                     good += outcome.ok() ? 1 : 0;
                   });
      if (i % 100 != 50) continue;
      server->kill();
      server = std::make_unique<ServerProcess>(arguments, port);
    }
  }
  EXPECT_EQ(good, kCount);
  std::vector<std::string> bodies;
  while (bodies.size() < kCount) {
    auto received = client.receive_message({.queue_url = url, .max_number_of_messages = 10});
    ASSERT_TRUE(received) << received.error().to_string();
    if (received->messages.empty()) break;
    DeleteMessageBatchRequest done{.queue_url = url};
    for (const Message& message : received->messages) {
      bodies.push_back(message.body);
      done.entries.push_back({.receipt_handle = message.receipt_handle});
    }
    ASSERT_TRUE(client.delete_message_batch(done));
  }
  ASSERT_EQ(bodies.size(), static_cast<std::size_t>(kCount));
  for (int i = 0; i < kCount; ++i)
    EXPECT_EQ(bodies[static_cast<std::size_t>(i)], std::to_string(i)) << "in the order of sending";
}

TEST(Batching, ManySendsAndDeletesGoOutInFewCallsAndNoneIsLost) {
  ServerProcess server;
  Client client = must_open({.endpoint = server.url()});
  const std::string url = must_create(client, "many");
  constexpr int kCount = 1'000;
  Batcher batcher(client);
  std::atomic<int> sent = 0;
  for (int i = 0; i < kCount; ++i)
    batcher.send({.queue_url = url, .message_body = std::to_string(i)},
                 [&](const auto& outcome) { sent += outcome.ok() ? 1 : 0; });
  batcher.drain();
  EXPECT_EQ(sent, kCount);
  std::set<std::string> bodies;
  std::atomic<int> deleted = 0;
  while (bodies.size() < kCount) {
    auto received = client.receive_message({.queue_url = url, .max_number_of_messages = 10});
    ASSERT_TRUE(received && !received->messages.empty());
    for (const Message& message : received->messages) {
      bodies.insert(message.body);
      // One after the other: they are calls of their own, and what is deleted has no visibility.
      batcher.change_visibility({url, message.receipt_handle, 60},
                                [&, receipt = message.receipt_handle](const auto& changed) {
                                  EXPECT_TRUE(changed);
                                  batcher.remove({url, receipt}, [&](const auto& removed) {
                                    deleted += removed.ok() ? 1 : 0;
                                  });
                                });
    }
  }
  batcher.drain();
  EXPECT_EQ(deleted, kCount);
  auto counts = client.get_queue_attributes({url, {"All"}});
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->attributes.at("ApproximateNumberOfMessages"), "0");
  EXPECT_EQ(counts->attributes.at("ApproximateNumberOfMessagesNotVisible"), "0");
}

TEST(Tls, TheServersCertificateIsVerified) {
  const os::TemporaryDirectory directory;
  const net::TlsFiles files{directory.path() + "/cert.pem", directory.path() + "/key.pem"};
  net::test::write_certificate(files, "queues.example");
  ServerProcess server({"--in-memory", "--tls-certificate", files.certificate_chain, "--tls-key",
                        files.private_key});
  ASSERT_TRUE(server.url().starts_with("https://"));
  const auto listed = [&](TlsOptions tls) {
    return must_open(
               {.endpoint = server.url(), .retry = {.attempts_max = 1}, .tls = std::move(tls)})
        .list_queues();
  };
  EXPECT_TRUE(listed({.ca_file = files.certificate_chain, .server_name = "queues.example"}));
  EXPECT_TRUE(listed({.verify = false}));
  auto stranger = listed({});
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().code, code::kConnectionFailed);
  EXPECT_NE(stranger.error().message.find("TlsOptions::ca_file"), std::string::npos)
      << stranger.error().message;
  EXPECT_FALSE(listed({.ca_file = files.certificate_chain, .server_name = "other.example"}));
  EXPECT_FALSE(listed({.ca_file = "/nowhere.pem"}));
}

TEST(Signatures, AServerWithAccountsTakesTheRightKeyOnly) {
  const os::TemporaryDirectory directory;
  const std::string config = directory.path() + "/s.toml";
  std::ofstream(config) << "[[account]]\nid = \"111111111111\"\n[[account.key]]\n"
                           "id = \"AKIAALICE\"\nsecret = \"alice's secret/+=1\"\n";
  ServerProcess server({"--in-memory", "--config", config});
  const auto listed = [&](CredentialsSource credentials) {
    return must_open({.endpoint = server.url(), .credentials = std::move(credentials)})
        .list_queues();
  };
  auto good = listed(static_credentials({"AKIAALICE", "alice's secret/+=1", "", {}}));
  EXPECT_TRUE(good) << good.error().to_string();
  auto wrong = listed(static_credentials({"AKIAALICE", "guess", "", {}}));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, "InvalidSignatureException");
  auto unsigned_call = listed(anonymous_credentials());
  ASSERT_FALSE(unsigned_call);
  EXPECT_EQ(unsigned_call.error().code, "MissingAuthenticationTokenException");
}

}  // namespace
}  // namespace stanchion::client
