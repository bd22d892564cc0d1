#include "load/connections.h"

#include <gtest/gtest.h>

#include <map>

#include "net/http_test_kit.h"

namespace stanchion::load {
namespace {

using net::test::post;
using net::test::TestServer;

// Sends the given requests on each connection in turn, and keeps the responses.
class Recorder : public Connections::Handler {
 public:
  void on_response(std::size_t connection, const net::ResponseReader& response) override {
    bodies[connection].emplace_back(response.body());
    ++responses;
    if (on_each) on_each(connection);
  }
  void on_broken(std::size_t connection, const Failure& failure) override {
    broken[connection] = failure.message;
  }

  std::map<std::size_t, std::vector<std::string>> bodies;
  std::map<std::size_t, std::string> broken;
  std::size_t responses = 0;
  std::function<void(std::size_t)> on_each;
};

std::unique_ptr<Connections> open_client(std::uint16_t port, std::size_t connections,
                                         Recorder& recorder, bool busy_poll = false) {
  auto client =
      Connections::open({.host = "127.0.0.1", .port = std::to_string(port), .busy_poll = busy_poll},
                        connections, recorder);
  EXPECT_TRUE(client) << client.error().message;
  return std::move(*client);
}

void wait_until(Connections& client, const std::function<bool()>& holds) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(net::test::kPatienceSeconds);
  // The event may show on the other side, so the wait is cut into slices.
  while (!holds() && std::chrono::steady_clock::now() < end)
    client.wait(std::chrono::steady_clock::now() + std::chrono::milliseconds(5));
  EXPECT_TRUE(holds());
}

TEST(Connections, ManyConnectionsCarryManyRequests) {
  TestServer server;
  Recorder recorder;
  auto client = open_client(server.port(), 50, recorder);
  client->connect_all();
  wait_until(*client, [&] { return client->open_count() == 50; });
  recorder.on_each = [&](std::size_t c) {
    if (recorder.bodies[c].size() < 20) client->send(c, post("/a", std::to_string(c)));
  };
  for (std::size_t c = 0; c < 50; ++c) client->send(c, post("/a", std::to_string(c)));
  wait_until(*client, [&] { return recorder.responses == 50 * 20; });
  EXPECT_EQ(recorder.bodies[7].back(), "POST /a|7");
  EXPECT_TRUE(recorder.broken.empty());
  EXPECT_EQ(server.server->stats().accepted, 50u);
}

TEST(Connections, LargeBodiesPassBothWays) {
  TestServer server;
  Recorder recorder;
  auto client = open_client(server.port(), 1, recorder);
  const std::string body(5'000'000, 'x');
  client->send(0, post("/echo", body));
  wait_until(*client, [&] { return recorder.responses == 1; });
  EXPECT_EQ(recorder.bodies[0].at(0), body);
}

TEST(Connections, AConnectionThatTheServerClosesIsOpenedAgainByTheNextRequest) {
  TestServer server({}, 1, [](net::Exchange exchange) {
    net::HttpResponse response(200, "once");
    response.close = true;
    exchange.answer(std::move(response));
  });
  Recorder recorder;
  auto client = open_client(server.port(), 1, recorder);
  recorder.on_each = [&](std::size_t c) {
    if (recorder.responses < 3) client->send(c, post("/a", ""));
  };
  client->send(0, post("/a", ""));
  wait_until(*client, [&] { return recorder.responses == 3; });
  EXPECT_TRUE(recorder.broken.empty());
  EXPECT_EQ(server.server->stats().accepted, 3u);
}

TEST(Connections, AServerThatIsNotThereIsReported) {
  std::uint16_t port = 0;
  {
    TestServer gone;
    port = gone.port();
  }
  Recorder recorder;
  auto client = open_client(port, 2, recorder);
  client->send(1, post("/a", ""));
  wait_until(*client, [&] { return !recorder.broken.empty(); });
  EXPECT_NE(recorder.broken[1].find("cannot connect"), std::string::npos);
}

TEST(Connections, AResponseThatWillNotComeIsReported) {
  auto server = std::make_unique<TestServer>();
  Recorder recorder;
  auto client = open_client(server->port(), 1, recorder);
  client->send(0, post("/park", ""));
  wait_until(*client, [&] { return server->server->stats().requests == 1; });
  server->server->stop();
  wait_until(*client, [&] { return !recorder.broken.empty(); });
  EXPECT_NE(recorder.broken[0].find("without an answer"), std::string::npos);
}

TEST(Connections, WaitingEndsAtItsTime) {
  TestServer server;
  Recorder recorder;
  auto client = open_client(server.port(), 1, recorder);
  for (int i = 0; i < 3; ++i) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
    EXPECT_EQ(client->wait(until), 0u);
    EXPECT_GE(std::chrono::steady_clock::now(), until);
  }
}

TEST(Connections, ABusyOneIsServedAsWellAndTellsHowLongItAskedInVain) {
  TestServer server;
  Recorder recorder;
  auto client = open_client(server.port(), 1, recorder, true);
  client->send(0, post("/a", "1"));
  wait_until(*client, [&] { return recorder.responses == 1; });
  EXPECT_EQ(recorder.bodies[0].back(), "POST /a|1");
  const auto spun = client->spun();
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
  while (client->wait(until) > 0) continue;  // The answer may have come with more than one event.
  EXPECT_GE(std::chrono::steady_clock::now(), until);
  EXPECT_GT(client->spun(), spun);
}

}  // namespace
}  // namespace stanchion::load
