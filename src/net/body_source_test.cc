// Answers whose body is made while the client takes it.
#include <gtest/gtest.h>

#include <atomic>

#include "net/http_test_kit.h"

namespace stanchion::net {
namespace {

using test::Event;
using test::eventually;
using test::get;
using test::RawClient;
using test::TestServer;

constexpr std::size_t kPartSize = 64 * 1024;

// A server whose every other answer is "begin\n" and then so many parts, each of one letter.
class Bodies : public testing::Test {
 protected:
  void start(int parts, BodyPart at_the_end = BodyPart::kLast, HttpLimits limits = {}) {
    server = std::make_unique<TestServer>(
        HttpServerOptions{.limits = limits}, 1, [this, parts, at_the_end](Exchange exchange) {
          exchange.answer(HttpResponse(200, "begin\n"), source(parts, at_the_end));
        });
  }

  BodySource source(int parts, BodyPart at_the_end) {
    ++alive;
    std::shared_ptr<int> counted(new int(0), [this](const int* made) {
      delete made;
      --alive;
    });
    return [this, parts, at_the_end, made = std::move(counted)](std::string& into) {
      ++asked;
      into.append(kPartSize, static_cast<char>('a' + *made % 26));
      return ++*made < parts ? BodyPart::kMore : at_the_end;
    };
  }

  // The body of an answer in chunks.
  static std::string read_chunks(RawClient& client) {
    std::string body;
    while (true) {
      const std::string line = client.read_until("\r\n");
      if (line.size() < 3) return body + "(cut off)";
      const std::size_t size = std::stoul(line, nullptr, 16);
      std::string chunk;
      while (chunk.size() < size + 2) {
        const std::string more = client.read_until("\r\n");
        if (more.empty()) return body + "(cut off)";
        chunk += more;
      }
      if (size == 0) return body;
      body += chunk.substr(0, size);
    }
  }

  static std::string expected(int parts) {
    std::string body = "begin\n";
    for (int i = 0; i < parts; ++i) body.append(kPartSize, static_cast<char>('a' + i % 26));
    return body;
  }

  std::atomic<int> alive = 0;  // Sources.
  std::atomic<int> asked = 0;  // For parts.
  std::unique_ptr<TestServer> server;
};

TEST_F(Bodies, ArriveWholeAndTheConnectionGoesOn) {
  start(100);
  RawClient client(server->port());
  for (int i = 0; i < 2; ++i) {
    client.send(get("/body"));
    const std::string head = client.read_until("\r\n\r\n");
    EXPECT_NE(head.find("Transfer-Encoding: chunked\r\n"), std::string::npos) << head;
    EXPECT_EQ(head.find("Content-Length"), std::string::npos) << head;
    EXPECT_EQ(head.find("Connection: close"), std::string::npos) << head;
    EXPECT_TRUE(read_chunks(client) == expected(100));
  }
  client.send(test::post("/echo", "hello"));
  EXPECT_EQ(client.read_response().body, "hello");
  EXPECT_EQ(alive, 0);
}

TEST_F(Bodies, OfTwoConnectionsAreMadeInTurns) {
  start(1'000);
  RawClient large(server->port()), small(server->port());
  large.send(get("/body"));
  ASSERT_TRUE(eventually([&] { return asked > 0; }));
  small.send(test::post("/echo", "hello"));
  EXPECT_EQ(small.read_response().body, "hello");
  EXPECT_EQ(alive, 1) << "the other body cannot be made while nobody reads it";
  large.read_until("\r\n\r\n");
  EXPECT_TRUE(read_chunks(large) == expected(1'000));
}

TEST_F(Bodies, AreInTheOrderOfTheirRequests) {
  start(3);
  RawClient client(server->port());
  client.send(get("/park") + get("/body") + test::post("/echo", "behind"));
  ASSERT_TRUE(server->handler.parked.wait());
  EXPECT_EQ(asked, 0);
  server->handler.settle(0, HttpResponse(200, "first"));
  EXPECT_EQ(client.read_response().body, "first");
  client.read_until("\r\n\r\n");
  EXPECT_TRUE(read_chunks(client) == expected(3));
  EXPECT_EQ(client.read_response().body, "behind");
}

TEST_F(Bodies, EndWithTheConnectionInHttp10) {
  start(3);
  RawClient client(server->port());
  client.send("GET /body HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_EQ(head.find("Transfer-Encoding"), std::string::npos) << head;
  EXPECT_NE(head.find("Connection: close\r\n"), std::string::npos) << head;
  EXPECT_TRUE(client.read_until("never there") == expected(3));
  EXPECT_TRUE(client.reads_end());
}

TEST_F(Bodies, AreNotMadeForHead) {
  start(3);
  RawClient client(server->port());
  client.send("HEAD /body HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_EQ(client.read_response(false).status, 200);
  client.send(test::post("/echo", "hello"));
  EXPECT_EQ(client.read_response().body, "hello");
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(alive, 0);
}

TEST_F(Bodies, CostAClientThatDoesNotReadOnePart) {
  start(1'000'000);
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 20; ++i) {
    silent.push_back(std::make_unique<RawClient>(server->port()));
    silent.back()->send(get("/body"));
  }
  // Everything that the kernel takes is made, and then no more.
  int before = -1;
  const auto stands_still = [&] {
    RawClient other(server->port());
    other.send(test::post("/echo", "x"));
    if (other.read_response().body != "x") return false;
    return std::exchange(before, asked.load()) == asked && alive == 20;
  };
  ASSERT_TRUE(eventually(stands_still));
  EXPECT_LE(server->server->stats().held_bytes, 20 * (kPartSize + 8 * 1024));
  for (const auto& client : silent) client->close();
  EXPECT_TRUE(eventually([&] { return alive == 0; }));
}

TEST_F(Bodies, AreCutOffIfNobodyReads) {
  HttpLimits limits;
  limits.write_timeout = std::chrono::milliseconds(100);
  start(1'000'000, BodyPart::kLast, limits);
  RawClient client(server->port());
  client.send(get("/body"));
  ASSERT_TRUE(eventually([&] { return asked > 0; }));
  EXPECT_TRUE(eventually([&] { return server->server->stats().open == 0; }));
  EXPECT_EQ(alive, 0);
}

TEST_F(Bodies, ThatCannotGoOnDoNotLookComplete) {
  start(3, BodyPart::kCut);
  RawClient client(server->port());
  client.send(get("/body"));
  client.read_until("\r\n\r\n");
  EXPECT_TRUE(read_chunks(client).ends_with("(cut off)"));
  EXPECT_EQ(alive, 0);
}

TEST_F(Bodies, AreFinishedByADrain) {
  start(500);
  RawClient client(server->port());
  client.send(get("/body"));
  ASSERT_TRUE(eventually([&] { return asked > 0; }));
  Event drained;
  server->server->drain([&] { drained.happen(); });
  client.read_until("\r\n\r\n");
  EXPECT_TRUE(read_chunks(client) == expected(500));
  EXPECT_TRUE(client.reads_end());
  EXPECT_TRUE(drained.wait());
}

TEST_F(Bodies, ForAClientThatHasLeftAreDropped) {
  start(1'000'000);
  {
    RawClient client(server->port());
    client.send(get("/park") + get("/body"));
    ASSERT_TRUE(server->handler.parked.wait());
    ASSERT_TRUE(eventually([&] { return alive == 1; }));
  }
  ASSERT_TRUE(server->handler.abandoned.wait());
  server->handler.settle(0, HttpResponse(200, "nobody reads this"));
  EXPECT_TRUE(eventually([&] { return alive == 0; }));
}

}  // namespace
}  // namespace stanchion::net
