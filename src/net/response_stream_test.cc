// Answers that go on.
#include <gtest/gtest.h>

#include "net/http_test_kit.h"

namespace stanchion::net {
namespace {

using std::chrono::milliseconds;
using test::Event;
using test::eventually;
using test::get;
using test::RawClient;
using test::TestServer;

// A server whose every other answer goes on. The streams are used on the one reactor only.
class Streams : public testing::Test {
 protected:
  void start(HttpLimits limits = {}) {
    server = std::make_unique<TestServer>(
        HttpServerOptions{.limits = limits}, 1, [this](Exchange exchange) {
          HttpResponse begin(200, "begin\n");
          begin.add_plain_header("Content-Type", "text/event-stream");
          streams.push_back(std::make_unique<ResponseStream>(exchange.stream(std::move(begin))));
          streams.back()->on_gone([this] { gone.happen(); });
          begun.happen();
        });
  }
  void TearDown() override {
    if (server == nullptr) return;
    on_reactor([this] { streams.clear(); });
    server.reset();
  }

  void on_reactor(std::function<void()> work) {
    Event done;
    server->pool[0].post([&] {
      work();
      done.happen();
    });
    ASSERT_TRUE(done.wait());
  }
  bool send(std::size_t n, std::string_view piece) {
    bool sent = false;
    on_reactor([&] { sent = streams[n]->send(piece); });
    return sent;
  }
  // How many pieces of a MiB the stream takes before it drops one.
  int fill(std::size_t n) {
    const std::string piece(std::size_t{1} << 20, 'x');
    int taken = 0;
    while (taken < 1'000 && send(n, piece)) ++taken;
    return taken;
  }

  std::unique_ptr<TestServer> server;
  std::vector<std::unique_ptr<ResponseStream>> streams;
  Event begun;
  Event gone;
};

TEST_F(Streams, PiecesArriveAsTheyAreSentAndTheEndIsToldApart) {
  start();
  RawClient client(server->port());
  client.send(get("/stream"));
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_NE(head.find("Transfer-Encoding: chunked\r\n"), std::string::npos) << head;
  EXPECT_NE(head.find("Connection: close\r\n"), std::string::npos) << head;
  EXPECT_EQ(head.find("Content-Length"), std::string::npos) << head;
  EXPECT_EQ(client.read_until("begin\n\r\n"), "6\r\nbegin\n\r\n");
  EXPECT_TRUE(send(0, "one"));
  EXPECT_EQ(client.read_until("one\r\n"), "3\r\none\r\n");
  EXPECT_TRUE(send(0, std::string(300, 'x')));
  EXPECT_EQ(client.read_until("x\r\n"), "12c\r\n" + std::string(300, 'x') + "\r\n");
  on_reactor([&] { streams.clear(); });
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "0\r\n\r\n");
  EXPECT_TRUE(client.reads_end());
  EXPECT_FALSE(gone.happened());
}

TEST_F(Streams, AClientOfHttp10ReadsUntilTheConnectionEnds) {
  start();
  RawClient client(server->port());
  client.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_EQ(head.find("Transfer-Encoding"), std::string::npos) << head;
  EXPECT_NE(head.find("Connection: close\r\n"), std::string::npos) << head;
  EXPECT_EQ(client.read_until("begin\n"), "begin\n");
  EXPECT_TRUE(send(0, "more"));
  EXPECT_EQ(client.read_until("more"), "more");
  on_reactor([&] { streams.clear(); });
  EXPECT_TRUE(client.reads_end());
}

TEST_F(Streams, HeadGetsTheHeadAlone) {
  start();
  RawClient client(server->port());
  client.send("HEAD /stream HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_EQ(client.read_response(false).status, 200);
  EXPECT_TRUE(client.reads_end());
  EXPECT_TRUE(gone.wait());
  EXPECT_FALSE(send(0, "more"));
}

TEST_F(Streams, AnswersBeforeAStreamComeFirstAndRequestsBehindItAreNotTaken) {
  start();
  RawClient client(server->port());
  client.send(get("/park") + get("/stream") + get("/echo"));
  ASSERT_TRUE(begun.wait());
  EXPECT_FALSE(send(0, "lost"));  // The stream cannot begin yet.
  server->handler.settle(0, HttpResponse(200, "first"));
  EXPECT_EQ(client.read_response().body, "first");
  EXPECT_NE(client.read_until("begin\n\r\n").find("chunked"), std::string::npos);
  client.send(get("/echo"));
  EXPECT_TRUE(send(0, "more"));
  EXPECT_EQ(client.read_until("more\r\n"), "4\r\nmore\r\n");
  on_reactor([&] { streams.clear(); });
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "0\r\n\r\n");
  EXPECT_TRUE(client.reads_end());
}

TEST_F(Streams, AStreamThatEndsBeforeItsTurnIsAnOrdinaryAnswer) {
  start();
  RawClient client(server->port());
  client.send(get("/park") + get("/stream"));
  ASSERT_TRUE(begun.wait());
  on_reactor([&] { streams.clear(); });
  server->handler.settle(0, HttpResponse(200, "first"));
  EXPECT_EQ(client.read_response().body, "first");
  EXPECT_EQ(client.read_response().body, "begin\n");
  client.send(get("/park"));
  ASSERT_TRUE(server->handler.parked.wait(2));
}

TEST_F(Streams, AStreamMayEndAtOnceAndOnAnyThread) {
  TestServer other({}, 1, [](Exchange exchange) {
    std::thread([stream = exchange.stream(HttpResponse(200, "only"))]() mutable {}).join();
  });
  RawClient client(other.port());
  client.send(get("/stream"));
  EXPECT_NE(client.read_until("\r\n\r\n").find("chunked"), std::string::npos);
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "4\r\nonly\r\n0\r\n\r\n");
  EXPECT_TRUE(client.reads_end());
}

TEST_F(Streams, AClientThatLeavesIsNoticedHoweverItLeaves) {
  start();
  {
    RawClient client(server->port());
    client.send(get("/stream"));
    client.read_until("begin\n");
  }
  EXPECT_TRUE(gone.wait(1));
  RawClient half(server->port());
  half.send(get("/stream"));
  half.read_until("begin\n\r\n");
  half.shutdown_write();
  EXPECT_TRUE(gone.wait(2));
  EXPECT_TRUE(half.reads_end());
  EXPECT_FALSE(send(0, "more"));
  EXPECT_FALSE(send(1, "more"));
  EXPECT_TRUE(eventually([&] { return server->server->stats().open == 0; }));
}

TEST_F(Streams, SilenceEndsNoStream) {
  HttpLimits limits;
  limits.idle_timeout = limits.header_timeout = milliseconds(40);
  start(limits);
  // A client that is late with its request tries another connection.
  std::optional<RawClient> client;
  ASSERT_TRUE(eventually([&] {
    client.emplace(server->port());
    client->send(get("/stream"));
    return client->read_until("begin\n\r\n").ends_with("begin\n\r\n");
  }));
  // A connection that is opened later is closed for its silence: so much time has passed.
  RawClient idle(server->port());
  EXPECT_TRUE(idle.reads_end());
  EXPECT_TRUE(send(0, "still here"));
  EXPECT_EQ(client->read_until("here\r\n"), "a\r\nstill here\r\n");
}

TEST_F(Streams, ForAClientThatDoesNotReadOnePieceWaitsAndNoMore) {
  start();
  RawClient client(server->port());
  client.send(get("/stream"));
  client.read_until("begin\n\r\n");
  // While the kernel still takes more, so does the stream. In the end it drops the smallest piece.
  int taken = fill(0);
  while (taken < 1'000 && send(0, "x")) taken += 1 + fill(0);
  ASSERT_LT(taken, 1'000);
  EXPECT_LE(server->server->stats().held_bytes, std::size_t{2} << 20);
  // Once the client reads, pieces arrive whole again.
  for (int i = 0; i < taken; ++i) client.read_until("x\r\n");
  EXPECT_TRUE(eventually([&] { return send(0, "next"); }));
  EXPECT_EQ(client.read_until("next\r\n"), "4\r\nnext\r\n");
}

TEST_F(Streams, AClientThatNeverReadsIsCutOff) {
  HttpLimits limits;
  limits.write_timeout = milliseconds(100);
  start(limits);
  RawClient client(server->port());
  client.send(get("/stream"));
  ASSERT_TRUE(begun.wait());
  fill(0);
  EXPECT_TRUE(gone.wait());
  EXPECT_TRUE(eventually([&] { return server->server->stats().open == 0; }));
  EXPECT_EQ(server->server->stats().held_bytes, 0u);
}

TEST_F(Streams, SlowReadersMakeRoomWhenMemoryIsShort) {
  HttpLimits limits;
  limits.held_bytes_max = 2 << 20;
  start(limits);
  // How much of a piece the kernel leaves to us is not known, but it is never nothing.
  const auto shed = [&] { return server->server->stats().shed; };
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 100 && shed() == 0; ++i) {
    slow.push_back(std::make_unique<RawClient>(server->port()));
    slow.back()->send(get("/stream"));
    ASSERT_TRUE(begun.wait(i + 1));
    fill(static_cast<std::size_t>(i));
  }
  EXPECT_TRUE(eventually([&] { return shed() > 0; }));
  EXPECT_TRUE(
      eventually([&] { return server->server->stats().held_bytes <= limits.held_bytes_max; }));
  // Whoever reads is served meanwhile.
  RawClient other(server->port());
  other.send(test::post("/echo", "hello"));
  EXPECT_EQ(other.read_response().body, "hello");
}

TEST_F(Streams, ADrainEndsStreamsAndDoesNotWaitForSlowClients) {
  start();
  RawClient client(server->port());
  client.send(get("/stream"));
  client.read_until("begin\n\r\n");
  RawClient slow(server->port());
  slow.send(get("/stream"));
  ASSERT_TRUE(begun.wait(2));
  fill(1);
  Event drained;
  server->server->drain([&] { drained.happen(); });
  EXPECT_TRUE(drained.wait());
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "0\r\n\r\n");
  EXPECT_TRUE(client.reads_end());
  EXPECT_TRUE(gone.wait(2));
}

// The end by the drain is noted on the reactor, the stream is destroyed on this thread, and only then
// would the callback have its turn.
TEST_F(Streams, NobodyHearsOfTheEndOfAStreamThatAnotherThreadHasDestroyed) {
  start();
  RawClient client(server->port());
  client.send(get("/stream"));
  client.read_until("begin\n\r\n");
  Event before, drain, after, destroyed, drained;
  server->pool[0].post([&] {
    before.happen();
    ASSERT_TRUE(drain.wait());
  });
  ASSERT_TRUE(before.wait());
  server->server->drain([&] { drained.happen(); });
  server->pool[0].post([&] {
    after.happen();
    ASSERT_TRUE(destroyed.wait());
  });
  drain.happen();
  ASSERT_TRUE(after.wait());
  streams.clear();
  destroyed.happen();
  EXPECT_TRUE(drained.wait());
  on_reactor([] {});
  on_reactor([] {});
  EXPECT_FALSE(gone.happened());
}

TEST_F(Streams, AStreamIsOneOfTheConnectionsThatAreCounted) {
  HttpLimits limits;
  limits.connections_max = 1;
  start(limits);
  RawClient client(server->port());
  client.send(get("/stream"));
  client.read_until("begin\n\r\n");
  EXPECT_EQ(RawClient(server->port()).read_response().status, 503);
}

}  // namespace
}  // namespace stanchion::net
