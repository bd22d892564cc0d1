// Mistakes of clients, and requests that are too large or too slow.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "net/exchange_state.h"
#include "net/http_test_kit.h"

namespace stanchion::net {
namespace {

using std::chrono::milliseconds;
using test::eventually;
using test::get;
using test::post;
using test::RawClient;
using test::RawResponse;
using test::TestServer;

// The answer to `bytes`, which has to be the last one of its connection.
int refused_with(TestServer& server, std::string_view bytes) {
  RawClient client(server.port());
  client.send(bytes);
  const RawResponse response = client.read_response();
  EXPECT_NE(response.head.find("Connection: close\r\n"), std::string::npos) << bytes;
  client.shutdown_write();
  EXPECT_TRUE(client.reads_end()) << bytes;
  return response.status;
}

TEST(HttpLimits, MalformedRequestsAreRefused) {
  TestServer server;
  const std::string head = "POST / HTTP/1.1\r\nHost: t\r\n";
  EXPECT_EQ(refused_with(server, "nonsense\r\n\r\n"), 400);
  EXPECT_EQ(refused_with(server, "GET / HTTP/1.1\r\n\r\n"), 400);  // No Host.
  EXPECT_EQ(refused_with(server, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
  EXPECT_EQ(refused_with(server, "GET / HTTP/2.0\r\nHost: t\r\n\r\n"), 505);
  EXPECT_EQ(refused_with(server, "GET / HTTP/1.1\r\nHost : t\r\n\r\n"), 400);
  EXPECT_EQ(refused_with(server, "GET / HTTP/1.1\nHost: t\n\r\n\r\n"), 400);
  for (const char* folded : {"A: b\r\n folded", "A:\r\n folded", "A: \r\n\tfolded", "A: b\r\n ",
                             "A:\r\n ", "Transfer-Encoding:\r\n chunked",
                             "Transfer-Encoding: chunked\r\n ", "Content-Length:\r\n 3"})
    EXPECT_EQ(refused_with(server, head + folded + "\r\n\r\n"), 400) << folded;
  EXPECT_EQ(refused_with(server, head + "Content-Encoding: GZIP\r\nContent-Length: 9\r\n\r\n"),
            415);
  EXPECT_EQ(refused_with(server, head + "Content-Length: -1\r\n\r\n"), 400);
  EXPECT_EQ(refused_with(server, head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n"), 400);
  EXPECT_EQ(refused_with(server, head + "Content-Length: 99999999999999999999\r\n\r\n"), 400);
  EXPECT_EQ(refused_with(server, head + "Expect: tea\r\n\r\n"), 417);
  EXPECT_EQ(server.server->stats().requests, 0u);
}

TEST(HttpLimits, AHostThatIsNoneIsRefused) {
  TestServer server;
  const auto with_host = [](std::string_view host) {
    return "GET / HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n";
  };
  for (const char* bad : {"a b", "a/b", "a\"b", "<a>", "a\\b", "user@host", "a?b", "a#b", "\xFF"})
    EXPECT_EQ(refused_with(server, with_host(bad)), 400) << bad;
  for (const char* good : {"", "localhost:9324", "[::1]:9324", "127.0.0.1", "a_b.example.com"}) {
    RawClient client(server.port());
    client.send(with_host(good));
    EXPECT_EQ(client.read_response().status, 200) << good;
  }
}

TEST(HttpLimits, RequestsWhoseEndIsInDoubtAreRefused) {
  TestServer server;
  const std::string head = "POST / HTTP/1.1\r\nHost: t\r\n";
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  EXPECT_EQ(refused_with(server, head + chunked + "Content-Length: 3\r\n\r\n"), 400);
  EXPECT_EQ(refused_with(server, head + "Content-Length: 3\r\n" + chunked + "\r\n"), 400);
  EXPECT_EQ(refused_with(server, head + "Transfer-Encoding: gzip, chunked\r\n\r\n"), 501);
  EXPECT_EQ(refused_with(server, head + "Transfer-Encoding: identity\r\n\r\n"), 501);
  EXPECT_EQ(refused_with(server, head + chunked + "\r\nzz\r\n"), 400);
  EXPECT_EQ(refused_with(server, head + chunked + "\r\n1\r\nabcd\r\n"), 400);
  EXPECT_EQ(refused_with(server, "POST / HTTP/1.0\r\n" + chunked + "\r\n"), 400);
  EXPECT_EQ(server.server->stats().requests, 0u);
}

TEST(HttpLimits, ABadRequestIsAnsweredBehindThoseBeforeIt) {
  TestServer server;
  RawClient client(server.port());
  client.send(get("/park") + "bad\r\n\r\n");
  ASSERT_TRUE(server.handler.parked.wait());
  server.handler.settle(0, HttpResponse(200, "first"));
  EXPECT_EQ(client.read_response().body, "first");
  EXPECT_EQ(client.read_response().status, 400);
}

TEST(HttpLimits, HeadersThatAreTooLargeAreRefused) {
  HttpServerOptions options;
  options.limits.header_bytes_max = 1024;
  options.limits.header_count_max = 10;
  TestServer server(options);
  const std::string head = "GET / HTTP/1.1\r\nHost: t\r\n";
  const auto padded = [&](std::size_t size) {
    return head + "A: " + std::string(size - head.size() - 7, 'x') + "\r\n\r\n";
  };
  ASSERT_EQ(padded(1024).size(), 1024u);
  RawClient client(server.port());
  client.send(padded(1024));
  EXPECT_EQ(client.read_response().status, 200);
  EXPECT_EQ(refused_with(server, padded(1025)), 431);
  EXPECT_EQ(refused_with(server, std::string(1025, 'x')), 431);  // A head without end.
  std::string many = head;
  for (int i = 0; i < 10; ++i) many += "A: b\r\n";
  EXPECT_EQ(refused_with(server, many + "\r\n"), 431);
  EXPECT_EQ(
      refused_with(server, "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n" +
                               ("1;" + std::string(2000, 'x'))),
      431);
}

TEST(HttpLimits, BodiesThatAreTooLargeAreRefused) {
  HttpServerOptions options;
  options.limits.body_bytes_max = 1000;
  TestServer server(options);
  RawClient client(server.port());
  client.send(post("/echo", std::string(1000, 'x')));
  EXPECT_EQ(client.read_response().body.size(), 1000u);
  EXPECT_EQ(refused_with(server, post("/echo", std::string(1001, 'x'))), 413);
  const std::string chunked = "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string chunk = "1f4\r\n" + std::string(500, 'x') + "\r\n";
  EXPECT_EQ(refused_with(server, chunked + chunk + chunk + "1\r\nx\r\n0\r\n\r\n"), 413);
  // A client that asks with "Expect: 100-continue" is spared the upload.
  EXPECT_EQ(refused_with(server,
                         "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1001\r\n"
                         "Expect: 100-continue\r\n\r\n"),
            413);
}

// Approximate memory of a connection with an unfinished request, besides its bytes.
constexpr std::size_t kAround = ExchangeState::kOwnBytes + 16 * 1024;

TEST(HttpLimits, WhatIsHeldIsCountedFromTheFirstByteToTheLast) {
  TestServer server;
  const auto held = [&] { return server.server->stats().held_bytes; };
  const auto holds = [&](std::size_t bytes) {
    return eventually([&] { return held() >= bytes && held() <= 2 * bytes + kAround; });
  };
  const std::string request = post("/park", std::string(600 * 1024, 'x'));
  RawClient client(server.port());
  EXPECT_EQ(held(), 0u);
  client.send(std::string_view(request).substr(0, 20));  // Half a head,
  EXPECT_TRUE(holds(20));
  client.send(std::string_view(request).substr(20, 30 * 1024));  // a small half of a body,
  EXPECT_TRUE(holds(30 * 1024));
  client.send(std::string_view(request).substr(30 * 1024 + 20));  // all of it while it waits,
  ASSERT_TRUE(server.handler.parked.wait());
  EXPECT_TRUE(holds(600 * 1024));
  client.send(std::string_view(request).substr(0, 40 * 1024));  // and more behind it.
  EXPECT_TRUE(holds(640 * 1024));
  client.send(std::string_view(request).substr(40 * 1024));
  server.handler.settle(0, HttpResponse(200, "first"));
  EXPECT_EQ(client.read_response().body, "first");
  ASSERT_TRUE(server.handler.parked.wait(2));
  server.handler.settle(1, HttpResponse(200, "second"));
  EXPECT_EQ(client.read_response().body, "second");
  EXPECT_TRUE(eventually([&] { return held() == 0; }));
  client.send(std::string_view(request).substr(0, 300 * 1024));
  EXPECT_TRUE(holds(300 * 1024));
  client.close();
  EXPECT_TRUE(eventually([&] { return held() == 0; }));
}

TEST(HttpLimits, ARequestThatIsForgottenTakesNextToNothing) {
  std::vector<Exchange> kept;
  test::Event taken;
  TestServer server({}, 1, [&](Exchange exchange) {
    exchange.forget_request();
    EXPECT_TRUE(exchange.request().body.empty() && exchange.request().headers.empty());
    EXPECT_TRUE(exchange.hold(100));
    kept.push_back(std::move(exchange));
    taken.happen();
  });
  const auto held = [&] { return server.server->stats().held_bytes; };
  RawClient client(server.port());
  for (int i = 0; i < 4; ++i) {
    client.send(post("/hold", std::string(2 << 20, 'x')));
    ASSERT_TRUE(taken.wait(i + 1));
  }
  EXPECT_TRUE(eventually([&] { return held() <= 4 * (ExchangeState::kOwnBytes + 200); }));
  EXPECT_GE(held(), 4 * 100u);
  server.pool[0].post([&] {
    for (Exchange& exchange : kept) exchange.answer(HttpResponse(200, "done"));
  });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(client.read_response().body, "done");
  EXPECT_TRUE(eventually([&] { return held() == 0; }));
}

TEST(HttpLimits, WhoeverIsSlowMakesRoomForWhoeverIsNot) {
  HttpServerOptions options;
  options.limits.held_bytes_max = 2 << 20;
  TestServer server(options);
  const std::string large = post("/echo", std::string(100 * 1024, 'x'));
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 60; ++i) {
    slow.push_back(std::make_unique<RawClient>(server.port()));
    slow.back()->send(std::string_view(large).substr(0, 60 * 1024));
    // Others are served all the while.
    RawClient quick(server.port());
    quick.send(post("/echo", std::string(10 * 1024, 'x')));
    ASSERT_EQ(quick.read_response().status, 200) << i;
  }
  const HttpStats stats = server.server->stats();
  EXPECT_LE(stats.held_bytes, options.limits.held_bytes_max);
  EXPECT_GE(stats.shed, 20u);
  // The last connection was not slow for long; the first one was told to come again.
  slow.back()->send(std::string_view(large).substr(60 * 1024));
  EXPECT_EQ(slow.back()->read_response().status, 200);
  EXPECT_EQ(slow.front()->read_response().status, 503);
}

TEST(HttpLimits, AnswersThatComeBehindALongWaitHaveALimit) {
  HttpServerOptions options;
  options.limits.held_bytes_max = 4 << 20;
  TestServer server(options, 1, {});
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    clients.back()->send(get("/park"));
    for (int j = 0; j < 10; ++j) clients.back()->send(post("/echo", std::string(200'000, 'x')));
  }
  EXPECT_TRUE(eventually([&] { return server.server->stats().shed >= 5; }));
  EXPECT_TRUE(eventually(
      [&] { return server.server->stats().held_bytes <= options.limits.held_bytes_max; }));
}

class WordingHandler : public test::TestHandler {
 public:
  HttpResponse refuse(const HttpRequest& request, int status, std::string_view reason) override {
    HttpResponse response(status, std::string(request.target) + "|" + std::string(reason));
    response.add_header("X-Type", request.header("Content-Type").value_or("none"));
    return response;
  }
};

TEST(HttpLimits, TheHandlerWordsRefusalsWithWhatIsKnownOfTheRequest) {
  ReactorPool pool({.reactors = 1});
  WordingHandler handler;
  HttpServerOptions options;
  options.limits.body_bytes_max = 10;
  const auto server = HttpServer::start(pool, options, handler);
  ASSERT_TRUE(server && pool.start());
  RawClient client((*server)->port());
  client.send(
      "POST /here HTTP/1.1\r\nHost: t\r\nContent-Length: 11\r\nContent-Type: text/x\r\n\r\n");
  const RawResponse too_large = client.read_response();
  EXPECT_EQ(too_large.body, "/here|The request body is too large.");
  EXPECT_NE(too_large.head.find("X-Type: text/x\r\n"), std::string::npos);
  RawClient other((*server)->port());
  other.send("nonsense\r\n\r\n");
  EXPECT_EQ(other.read_response().body, "|The request is not valid HTTP.");
  (*server)->stop();
  pool.stop();
}

TEST(HttpLimits, AMebibyteOfTextFitsHoweverItIsEscaped) {
  TestServer server;
  RawClient client(server.port());
  const std::size_t longest = std::string_view("\\u0041").size() * 1024 * 1024;
  client.send(post("/echo", std::string(longest + 256 * 1024, 'x')));
  EXPECT_EQ(client.read_response().body.size(), longest + 256 * 1024);
}

TEST(HttpLimits, AnUploadThatIsCutShortStillReadsTheReason) {
  HttpServerOptions options;
  options.limits.body_bytes_max = 1000;
  TestServer server(options);
  for (int i = 0; i < 20; ++i) {
    RawClient client(server.port());
    client.send(post("/echo", std::string(4 * 1024 * 1024, 'x')));
    EXPECT_EQ(client.read_response().status, 413);
  }
}

TEST(HttpLimits, AHeadThatDoesNotEndTimesOut) {
  HttpServerOptions options;
  options.limits.header_timeout = milliseconds(50);
  TestServer server(options);
  EXPECT_EQ(refused_with(server, "GET / HTTP/1.1\r\nHost"), 408);
  EXPECT_EQ(server.server->stats().timeouts, 1u);
}

TEST(HttpLimits, ABodyThatDoesNotEndTimesOut) {
  HttpServerOptions options;
  options.limits.body_timeout = milliseconds(50);
  TestServer server(options);
  EXPECT_EQ(refused_with(server, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhal"),
            408);
}

TEST(HttpLimits, TricklingDoesNotExtendTheTime) {
  HttpServerOptions options;
  options.limits.header_timeout = milliseconds(100);
  TestServer server(options);
  RawClient client(server.port());
  client.send("GET / HTTP/1.1\r\nA: ");
  std::atomic<bool> done = false;
  std::thread trickler([&] {
    while (!done && client.send("x")) std::this_thread::yield();
  });
  EXPECT_EQ(client.read_response().status / 100, 4);  // 408, or 431 on a very fast machine.
  done = true;
  trickler.join();
}

TEST(HttpLimits, AnIdleConnectionIsClosedInTime) {
  HttpServerOptions options;
  options.limits.idle_timeout = milliseconds(50);
  TestServer server(options);
  RawClient silent(server.port());
  EXPECT_TRUE(silent.reads_end());
  // The time runs from the beginning of a connection: a client that is late tries another one.
  std::optional<RawClient> used;
  ASSERT_TRUE(eventually([&] {
    used.emplace(server.port());
    used->send(get("/a"));
    return used->read_response().status == 200;
  }));
  EXPECT_TRUE(used->reads_end());
}

TEST(HttpLimits, APendingAnswerIsNotIdle) {
  HttpServerOptions options;
  options.limits.idle_timeout = milliseconds(50);
  options.limits.header_timeout = milliseconds(50);
  TestServer server(options);
  // A client that is late tries another connection. The first answer tells that it was not.
  std::optional<RawClient> waiting;
  ASSERT_TRUE(eventually([&] {
    waiting.emplace(server.port());
    waiting->send(get("/a") + get("/park"));
    return waiting->read_response().status == 200;
  }));
  ASSERT_TRUE(server.handler.parked.wait());
  RawClient silent(server.port());
  EXPECT_TRUE(silent.reads_end());  // The idle time of a later connection has passed.
  server.handler.settle(0, HttpResponse(200, "still here"));
  EXPECT_EQ(waiting->read_response().body, "still here");
}

TEST(HttpLimits, AClientThatDoesNotReadIsCutOff) {
  HttpServerOptions options;
  options.limits.write_timeout = milliseconds(100);
  test::Event answered;
  TestServer server(options, 1, [&](Exchange exchange) {
    exchange.answer(HttpResponse(200, std::string(64 * 1024 * 1024, 'x')));
    answered.happen();
  });
  RawClient client(server.port());
  client.send(get("/huge") + get("/park"));
  ASSERT_TRUE(answered.wait());
  // The parked request behind it, if it was read, is abandoned; the connection closes either way.
  RawClient probe(server.port());
  probe.send(get("/echo"));
  EXPECT_EQ(probe.read_response().status, 200);
  EXPECT_TRUE(test::eventually([&] { return server.server->stats().open <= 1; }));
  EXPECT_GE(server.server->stats().timeouts, 1u);
}

TEST(HttpLimits, WhatWaitsForClientsTogetherHasALimit) {
  constexpr std::size_t kHuge = 64 << 20;
  HttpServerOptions options;
  options.limits.held_bytes_max = kHuge * 3 / 2;
  TestServer server(options, 1, [&](Exchange exchange) {
    exchange.answer(HttpResponse(200, std::string(kHuge, 'x')));
  });
  const auto held = [&] { return server.server->stats().held_bytes; };
  RawClient first(server.port());
  first.send(get("/huge"));
  ASSERT_TRUE(eventually([&] { return held() > kHuge / 2; }));
  // Both together would be too much, and there is no time to make room: the second answer is cut
  // off.
  RawClient second(server.port());
  second.send(get("/huge"));
  ASSERT_TRUE(eventually([&] { return server.server->stats().open == 1; }));
  EXPECT_LT(second.read_response().body.size(), kHuge);
  EXPECT_EQ(first.read_response().body.size(), kHuge);
  EXPECT_TRUE(eventually([&] { return held() == 0; }));
}

// A client that takes most of an answer, and then nothing, costs as much as one that takes nothing.
TEST(HttpLimits, AnAnswerIsHeldUntilItsLastByteIsTaken) {
  constexpr std::size_t kHuge = 64 << 20;
  TestServer server({}, 1, [&](Exchange exchange) {
    exchange.answer(HttpResponse(200, std::string(kHuge, 'x')));
  });
  const auto held = [&] { return server.server->stats().held_bytes; };
  RawClient client(server.port());
  // Otherwise the kernel might take all that is left, where its buffers may be that large.
  const int small = 64 << 10;
  ASSERT_EQ(::setsockopt(client.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
  client.send(get("/huge"));
  std::string taken(kHuge * 3 / 4, '\0');
  ASSERT_EQ(::recv(client.fd(), taken.data(), taken.size(), MSG_WAITALL),
            static_cast<ssize_t>(taken.size()));
  EXPECT_GE(held(), kHuge);
  client.close();
  EXPECT_TRUE(eventually([&] { return held() == 0; }));
}

TEST(HttpLimits, AnswersOfOneTurnDoNotPileUp) {
  constexpr std::size_t kAnswer = 1 << 20;
  HttpServerOptions options;
  options.limits.held_bytes_max = 4 * kAnswer;
  std::vector<Exchange> kept;
  test::Event all_kept;
  TestServer server(options, 1, [&](Exchange exchange) {
    kept.push_back(std::move(exchange));
    if (kept.size() == 12) all_kept.happen();
  });
  RawClient client(server.port());
  for (int i = 0; i < 12; ++i) client.send(get("/keep"));
  ASSERT_TRUE(all_kept.wait());
  std::size_t most = 0;
  test::Event done;
  server.pool[0].post([&] {
    // The last one stays open, so that the connection goes on collecting.
    for (std::size_t i = 0; i + 1 < kept.size(); ++i) {
      kept[i].answer(HttpResponse(200, std::string(kAnswer, 'x')));
      most = std::max(most, server.server->stats().held_bytes);
    }
    kept.clear();
    done.happen();
  });
  ASSERT_TRUE(done.wait());
  EXPECT_LE(most, options.limits.held_bytes_max + 2 * kAnswer);
}

TEST(HttpLimits, AnAddressHasItsShareOfConnections) {
  HttpServerOptions options;
  options.host = "localhost";
  options.limits.per_address_max = 2;
  TestServer server(options);
  const auto status_of = [](RawClient& client) {
    client.send(get("/a"));
    return client.read_response();
  };
  RawClient first(server.port());
  RawClient second(server.port());
  EXPECT_EQ(status_of(first).status, 200);
  EXPECT_EQ(status_of(second).status, 200);
  RawClient third(server.port());
  const RawResponse refused = status_of(third);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.body, "Too many connections from this address.\n");
  RawClient other(server.port(), "127.0.0.2");
  EXPECT_EQ(status_of(other).status, 200);
  third.close();
  first.close();
  EXPECT_TRUE(eventually([&] { return server.server->stats().open == 2; }));
  RawClient fourth(server.port());
  EXPECT_EQ(status_of(fourth).status, 200);
}

TEST(HttpLimits, ConnectionsOverTheLimitAreToldSo) {
  HttpServerOptions options;
  options.limits.connections_max = 2;
  TestServer server(options);
  RawClient first(server.port());
  RawClient second(server.port());
  for (RawClient* client : {&first, &second}) {
    client->send(get("/a"));
    EXPECT_EQ(client->read_response().status, 200);
  }
  RawClient third(server.port());
  third.send(get("/a"));
  EXPECT_EQ(third.read_response().status, 503);
  third.close();
  first.close();
  EXPECT_TRUE(test::eventually([&] { return server.server->stats().open <= 1; }));
  RawClient fourth(server.port());
  fourth.send(get("/a"));
  EXPECT_EQ(fourth.read_response().status, 200);
  EXPECT_EQ(server.server->stats().refused, 1u);
}

TEST(HttpLimits, SilentConnectionsGiveWayWhereTheyMust) {
  constexpr std::size_t kMax = 8;
  for (const std::size_t reactors : {1, 2}) {
    HttpServerOptions options;
    options.limits.connections_max = kMax;
    options.limits.silent_give_way = true;
    TestServer server(options, reactors);
    RawClient waiting(server.port());
    waiting.send(get("/park"));
    ASSERT_TRUE(server.handler.parked.wait());
    // Far more than there may be; some have begun a request.
    std::vector<std::unique_ptr<RawClient>> silent;
    for (int i = 0; i < 200; ++i) {
      silent.push_back(std::make_unique<RawClient>(server.port()));
      if (i % 3 == 0) silent.back()->send("POST /a HT");
    }
    ASSERT_TRUE(eventually([&] { return server.server->stats().accepted == 201; }));
    EXPECT_TRUE(eventually([&] { return server.server->stats().open <= kMax; }));
    EXPECT_TRUE(silent.front()->reads_end()) << "the longest silent one is gone";
    for (int i = 0; i < 20; ++i) {
      RawClient late(server.port());
      late.send(get("/a"));
      EXPECT_EQ(late.read_response().status, 200);
    }
    EXPECT_EQ(server.server->stats().refused, 0u);
    server.handler.settle(0, HttpResponse(200, "at last"));
    EXPECT_EQ(waiting.read_response().body, "at last");
  }
}

TEST(HttpLimits, SilentConnectionsStayWithinTheLimitOnManyReactors) {
  constexpr std::size_t kMax = 16;
  HttpServerOptions options;
  options.limits.connections_max = kMax;
  options.limits.silent_give_way = true;
  TestServer server(options, 12);
  std::vector<std::unique_ptr<RawClient>> silent;
  for (std::size_t i = 0; i < 20 * kMax; ++i)
    silent.push_back(std::make_unique<RawClient>(server.port()));
  ASSERT_TRUE(eventually([&] { return server.server->stats().accepted == 20 * kMax; }));
  // The last one counts before the one that gives way to it has gone.
  EXPECT_TRUE(eventually([&] { return server.server->stats().open <= kMax; }));
  RawClient late(server.port());
  late.send(get("/a"));
  EXPECT_EQ(late.read_response().status, 200);
}

TEST(HttpLimits, AConnectionIsHeardBeforeItGivesWay) {
  HttpServerOptions options;
  options.limits.connections_max = 4;
  options.limits.silent_give_way = true;
  TestServer server(options);
  // All of them have sent a request by the time the reactor sees the first one.
  test::Event blocked, go_on;
  server.pool[0].post([&] {
    blocked.happen();
    ASSERT_TRUE(go_on.wait());
  });
  ASSERT_TRUE(blocked.wait());
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 32; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    clients.back()->send(get("/a"));
  }
  go_on.happen();
  for (const auto& client : clients) EXPECT_EQ(client->read_response().status, 200);
}

}  // namespace
}  // namespace stanchion::net
