#include "net/http_server.h"

#include <gtest/gtest.h>
#include <sys/un.h>

#include <filesystem>
#include <random>

#include "net/http_test_kit.h"

namespace stanchion::net {
namespace {

using test::Event;
using test::get;
using test::post;
using test::RawClient;
using test::RawResponse;
using test::TestServer;

TEST(HttpServer, OneConnectionCarriesManyRequests) {
  TestServer server;
  RawClient client(server.port());
  for (int i = 0; i < 100; ++i) {
    const std::string body = "body " + std::to_string(i);
    ASSERT_TRUE(client.send(post("/a", body)));
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "POST /a|" + body);
    EXPECT_EQ(response.head.find("Connection:"), std::string::npos);
    EXPECT_NE(response.head.find("\r\nDate: "), std::string::npos);
  }
  EXPECT_EQ(server.server->stats().accepted, 1u);
  EXPECT_EQ(server.server->stats().requests, 100u);
}

TEST(HttpServer, TheHandlerSeesHeadersAndPeer) {
  TestServer server({}, 1, [](Exchange exchange) {
    const HttpRequest& request = exchange.request();
    std::string seen;
    for (const HttpHeader& header : request.headers) {
      seen += std::string(header.name) + "=" + std::string(header.value) + ";";
    }
    EXPECT_EQ(request.header("x-THING"), "a  b");
    EXPECT_EQ(request.header("missing"), std::nullopt);
    EXPECT_EQ(request.peer.address, "127.0.0.1");
    EXPECT_TRUE(request.peer.loopback);
    EXPECT_FALSE(request.peer.tls);
    exchange.answer(HttpResponse(200, seen));
  });
  RawClient client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\nX-Thing:  a  b \r\nEmpty:\r\n\r\n");
  EXPECT_EQ(client.read_response().body, "Host=h;X-Thing=a  b;Empty=;");
}

TEST(HttpServer, ARequestMayArriveByteByByte) {
  TestServer server;
  RawClient client(server.port());
  for (const char byte : post("/slow", "hello")) ASSERT_TRUE(client.send({&byte, 1}));
  EXPECT_EQ(client.read_response().body, "POST /slow|hello");
}

TEST(HttpServer, PipelinedAnswersLeaveInTheOrderOfTheRequests) {
  TestServer server;
  RawClient client(server.port());
  client.send(get("/park/0") + get("/now") + get("/park/1") + get("/park/2"));
  ASSERT_TRUE(server.handler.parked.wait(3));
  server.handler.settle(2, HttpResponse(200, "two"));
  server.handler.settle(1, HttpResponse(200, "one"));
  server.handler.settle(0, HttpResponse(200, "zero"));
  for (const char* expected : {"zero", "GET /now|", "one", "two"}) {
    EXPECT_EQ(client.read_response().body, expected);
  }
}

TEST(HttpServer, MoreThanTheBoundOfPipelinedRequestsAreAllAnswered) {
  HttpServerOptions options;
  options.limits.pipelined_max = 4;
  TestServer server(options);
  RawClient client(server.port());
  constexpr int kRequests = 50;
  std::string all;
  for (int i = 0; i < kRequests; ++i) all += get("/park/" + std::to_string(i));
  client.send(all);
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_TRUE(server.handler.parked.wait(i + 1));
    EXPECT_LE(server.server->stats().requests, static_cast<std::uint64_t>(i + 4));
    server.handler.settle(static_cast<std::size_t>(i), HttpResponse(200, std::to_string(i)));
    EXPECT_EQ(client.read_response().body, std::to_string(i));
  }
}

TEST(HttpServer, ThousandsOfPipelinedRequestsAreAnsweredInOrder) {
  TestServer server;
  RawClient client(server.port());
  constexpr int kRequests = 3000;
  std::string all;
  for (int i = 0; i < kRequests; ++i) all += post("/n", std::to_string(i));
  std::thread sender([&] { client.send(all); });
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_EQ(client.read_response().body, "POST /n|" + std::to_string(i));
  }
  sender.join();
}

TEST(HttpServer, AChunkedBodyIsPutTogether) {
  TestServer server;
  RawClient client(server.port());
  const std::string head = "POST /c HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string chunks = "5\r\nhello\r\n7;ext=\"x\"\r\n, world\r\n0\r\nTrailer: yes\r\n\r\n";
  client.send(head + chunks + get("/next"));
  EXPECT_EQ(client.read_response().body, "POST /c|hello, world");
  EXPECT_EQ(client.read_response().body, "GET /next|");
  client.send(head);
  for (const char byte : chunks) ASSERT_TRUE(client.send({&byte, 1}));
  EXPECT_EQ(client.read_response().body, "POST /c|hello, world");
}

TEST(HttpServer, AClientThatAsksIsToldToContinue) {
  TestServer server;
  RawClient client(server.port());
  client.send("POST /e HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("data");
  EXPECT_EQ(client.read_response().body, "POST /e|data");
}

TEST(HttpServer, ContinueWaitsForTheAnswersBeforeIt) {
  TestServer server;
  RawClient client(server.port());
  client.send(get("/park") +
              "POST /e HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_TRUE(server.handler.parked.wait());
  server.handler.settle(0, HttpResponse(200, "parked"));
  EXPECT_EQ(client.read_response().body, "parked");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("data");
  EXPECT_EQ(client.read_response().body, "POST /e|data");
}

TEST(HttpServer, HeadGetsTheLengthAndNotTheBody) {
  TestServer server;
  RawClient client(server.port());
  client.send("HEAD /h HTTP/1.1\r\nHost: t\r\n\r\n" + get("/after"));
  const RawResponse response = client.read_response(false);
  EXPECT_NE(response.head.find("Content-Length: 8\r\n"), std::string::npos);
  EXPECT_EQ(client.read_response().body, "GET /after|");
}

TEST(HttpServer, OptionsReachesTheHandler) {
  TestServer server;
  RawClient client(server.port());
  client.send("OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_EQ(client.read_response().body, "OPTIONS *|");
}

TEST(HttpServer, NoContentHasNoLength) {
  TestServer server({}, 1, [](Exchange exchange) { exchange.answer(HttpResponse(204)); });
  RawClient client(server.port());
  client.send(get("/"));
  const RawResponse response = client.read_response();
  EXPECT_EQ(response.status, 204);
  EXPECT_EQ(response.head.find("Content-Length"), std::string::npos);
}

TEST(HttpServer, Http10ClosesUnlessAskedToStay) {
  TestServer server;
  RawClient leaver(server.port());
  leaver.send("GET /old HTTP/1.0\r\n\r\n");
  EXPECT_EQ(leaver.read_response().body, "GET /old|");
  EXPECT_TRUE(leaver.reads_end());
  RawClient stayer(server.port());
  for (int i = 0; i < 2; ++i) {
    stayer.send("GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_NE(stayer.read_response().head.find("Connection: keep-alive\r\n"), std::string::npos);
  }
}

TEST(HttpServer, ConnectionCloseIsKeptByBothSides) {
  TestServer server({}, 1, [](Exchange exchange) {
    HttpResponse response(200, "bye");
    response.close = exchange.request().target == "/server-closes";
    exchange.answer(std::move(response));
  });
  for (const char* request : {"GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n",
                              "GET /server-closes HTTP/1.1\r\nHost: t\r\n\r\n"}) {
    RawClient client(server.port());
    client.send(request);
    EXPECT_NE(client.read_response().head.find("Connection: close\r\n"), std::string::npos);
    EXPECT_TRUE(client.reads_end());
  }
}

TEST(HttpServer, LargeBodiesGoBothWays) {
  TestServer server;
  RawClient client(server.port());
  std::string body(1024 * 1024, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 31 >> 3);
  for (int round = 0; round < 3; ++round) {
    std::thread sender([&] { client.send(post("/echo", body) + post("/echo", "small")); });
    EXPECT_TRUE(client.read_response().body == body);
    EXPECT_EQ(client.read_response().body, "small");
    sender.join();
  }
}

TEST(HttpServer, AHandlerHearsThatItsClientLeft) {
  TestServer server;
  RawClient client(server.port());
  client.send(get("/park"));
  ASSERT_TRUE(server.handler.parked.wait());
  client.close();
  ASSERT_TRUE(server.handler.abandoned.wait());
  server.handler.settle(0, HttpResponse(200, "too late"));  // Harmless.
  RawClient other(server.port());
  other.send(get("/alive"));
  EXPECT_EQ(other.read_response().body, "GET /alive|");
}

TEST(HttpServer, EveryPendingExchangeOfAClientThatLeftIsAbandoned) {
  TestServer server;
  RawClient client(server.port());
  client.send(get("/park/0") + get("/park/1") + get("/park/2"));
  ASSERT_TRUE(server.handler.parked.wait(3));
  const linger reset{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(client.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  client.close();
  EXPECT_TRUE(server.handler.abandoned.wait(3));
  server.handler.settle(1, std::nullopt);
}

TEST(HttpServer, AClientThatOnlyStoppedSendingIsStillAnswered) {
  TestServer server;
  RawClient client(server.port());
  client.send(get("/park"));
  client.shutdown_write();
  ASSERT_TRUE(server.handler.abandoned.wait());
  server.handler.settle(0, HttpResponse(200, "here"));
  EXPECT_EQ(client.read_response().body, "here");
  EXPECT_TRUE(client.reads_end());
}

TEST(HttpServer, AnExchangeThatIsDroppedIsAnsweredWith500) {
  TestServer server;
  RawClient client(server.port());
  client.send(get("/drop") + get("/next"));
  EXPECT_EQ(client.read_response().status, 500);
  EXPECT_EQ(client.read_response().body, "GET /next|");
}

TEST(HttpServer, AnExchangeMayBeDroppedOnAnyThread) {
  TestServer server;
  RawClient client(server.port());
  Event kept;
  std::unique_ptr<Exchange> exchange;
  TestServer holder({}, 1, [&](Exchange given) {
    exchange = std::make_unique<Exchange>(std::move(given));
    kept.happen();
  });
  RawClient waiting(holder.port());
  waiting.send(get("/"));
  ASSERT_TRUE(kept.wait());
  exchange.reset();
  EXPECT_EQ(waiting.read_response().status, 500);
}

TEST(HttpServer, AnExchangeKnowsWhenItsConnectionIsClosed) {
  Event kept;
  std::unique_ptr<Exchange> exchange;
  TestServer server({}, 1, [&](Exchange given) {
    exchange = std::make_unique<Exchange>(std::move(given));
    kept.happen();
  });
  RawClient client(server.port());
  client.send(get("/"));
  ASSERT_TRUE(kept.wait());
  const auto ask = [&] {
    bool cut_off = false;
    Event asked;
    server.pool[0].post([&] {
      cut_off = exchange->cut_off();
      asked.happen();
    });
    EXPECT_TRUE(asked.wait());
    return cut_off;
  };
  EXPECT_FALSE(ask());
  server.server->stop();
  EXPECT_TRUE(ask());
  exchange.reset();
}

TEST(HttpServer, AHeaderValueCannotEndItsLine) {
  TestServer server({}, 1, [](Exchange exchange) {
    HttpResponse response(200, "ok");
    response.add_header("X-Echo", "a\r\nSet-Cookie: b");
    exchange.answer(std::move(response));
  });
  RawClient client(server.port());
  client.send(get("/"));
  EXPECT_NE(client.read_response().head.find("X-Echo: a  Set-Cookie: b\r\n"), std::string::npos);
}

TEST(HttpServer, ManyConnectionsOnSeveralReactors) {
  TestServer server({}, 3);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 300; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    ASSERT_TRUE(clients.back()->connected());
  }
  for (int round = 0; round < 3; ++round) {
    for (const auto& client : clients) client->send(post("/m", std::to_string(round)));
    for (const auto& client : clients) {
      EXPECT_EQ(client->read_response().body, "POST /m|" + std::to_string(round));
    }
  }
  EXPECT_EQ(server.server->stats().open, 300u);
  EXPECT_EQ(server.server->stats().requests, 900u);
}

// Clients that pipeline and disconnect at random, and a handler that answers at once, later, or
// through another reactor.
TEST(HttpServer, AnyMixOfClientsAndAnswersStaysInOrder) {
  std::atomic<ReactorPool*> pool = nullptr;
  TestServer server({}, 3, [&pool](Exchange exchange) {
    const std::string body = exchange.request().body;
    const auto answer = [body](Exchange& e) { e.answer(HttpResponse(200, body)); };
    Reactor& home = exchange.reactor();
    const std::size_t kind = std::hash<std::string>()(body) % 4;
    if (kind == 0) return answer(exchange);
    exchange.on_abandoned([] {});
    Reactor& other = kind == 1 ? home : (*pool.load())[kind - 1];
    other.post([answer, &home, exchange = std::move(exchange)]() mutable {
      home.post([answer, exchange = std::move(exchange)]() mutable { answer(exchange); });
    });
  });
  pool = &server.pool;
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 6; ++seed) {
    threads.emplace_back([&server, seed] {
      std::minstd_rand random(seed + 1);
      for (int connection = 0; connection < 40; ++connection) {
        RawClient client(server.port());
        const int requests = static_cast<int>(random() % 40);
        const int read = random() % 3 == 0 ? static_cast<int>(random() % 40) : requests;
        const auto body = [&](int i) {
          return std::to_string(seed) + "/" + std::to_string(connection) + "/" + std::to_string(i);
        };
        std::string all;
        for (int i = 0; i < requests; ++i) all += post("/mix", body(i));
        EXPECT_TRUE(client.send(all));
        for (int i = 0; i < std::min(read, requests); ++i) {
          ASSERT_EQ(client.read_response().body, body(i));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(HttpServer, ANameIsListenedOnAtEachOfItsAddresses) {
  TestServer server({.host = "localhost"});
  RawClient client(server.port());
  client.send(get("/"));
  EXPECT_EQ(client.read_response().status, 200);
}

TEST(HttpServer, AHostThatIsNotOursIsRefused) {
  test::TestHandler handler;
  ReactorPool pool({.reactors = 1});
  const auto started = HttpServer::start(pool, {.host = "192.0.2.1"}, handler);
  ASSERT_FALSE(started.has_value());
  EXPECT_NE(started.error().message.find("192.0.2.1"), std::string::npos);
}

TEST(HttpServer, APortThatIsTakenIsRefused) {
  TestServer server;
  test::TestHandler handler;
  ReactorPool pool({.reactors = 1});
  const auto second = HttpServer::start(pool, {.port = server.port()}, handler);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().os_error, EADDRINUSE);
}

TEST(HttpServer, DrainFinishesWhatIsInProgressAndClosesTheRest) {
  TestServer server({}, 2);
  RawClient idle(server.port());
  idle.send(get("/once"));
  EXPECT_EQ(idle.read_response().status, 200);
  RawClient busy(server.port());
  busy.send(get("/park"));
  ASSERT_TRUE(server.handler.parked.wait());
  RawClient sending(server.port());
  // A request that has begun counts as in progress; the answer before it shows that it was read.
  sending.send(get("/seen") + "POST /late HTTP/1.1\r\nHost: t\r\nContent-Le");
  EXPECT_EQ(sending.read_response().body, "GET /seen|");
  Event drained;
  server.server->drain([&] { drained.happen(); });
  EXPECT_TRUE(idle.reads_end());
  server.handler.settle(0, HttpResponse(200, "parked"));
  const RawResponse parked = busy.read_response();
  EXPECT_EQ(parked.body, "parked");
  EXPECT_NE(parked.head.find("Connection: close\r\n"), std::string::npos);
  EXPECT_TRUE(busy.reads_end());
  sending.send("ngth: 4\r\n\r\nbody");
  EXPECT_EQ(sending.read_response().body, "POST /late|body");
  EXPECT_TRUE(sending.reads_end());
  EXPECT_TRUE(drained.wait());
  EXPECT_FALSE(RawClient(server.port()).connected());
}

TEST(HttpServer, DrainAnswersConnectionsThatWereNotYetAccepted) {
  TestServer server;
  Event busy;
  Event go_on;
  server.pool[0].post([&] {
    busy.happen();
    EXPECT_TRUE(go_on.wait());
  });
  ASSERT_TRUE(busy.wait());
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    ASSERT_TRUE(clients.back()->send(get("/waiting")));
  }
  Event drained;
  server.server->drain([&] { drained.happen(); });
  go_on.happen();
  for (const auto& client : clients) {
    EXPECT_EQ(client->read_response().body, "GET /waiting|");
    EXPECT_TRUE(client->reads_end());
  }
  EXPECT_TRUE(drained.wait());
}

TEST(HttpServer, StopAbandonsWhatIsPending) {
  TestServer server({}, 2);
  RawClient client(server.port());
  client.send(get("/park"));
  ASSERT_TRUE(server.handler.parked.wait());
  server.server->stop();
  EXPECT_TRUE(server.handler.abandoned.wait());
  EXPECT_TRUE(client.reads_end());
  EXPECT_EQ(server.server->stats().open, 0u);
}

TEST(HttpServer, AUnixSocketServesAndReplacesAStaleOne) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("net_test." + std::to_string(::getpid())))
          .string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int stale = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(stale, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(stale);
  HttpServerOptions options;
  options.unix_path = path;
  {
    TestServer server(options, 2);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const std::string request = "GET /u HTTP/1.0\r\n\r\n";
    ASSERT_EQ(::send(fd, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
    std::string received;
    char bytes[1024];
    for (ssize_t n = 0; (n = ::recv(fd, bytes, sizeof bytes, 0)) > 0;) {
      received.append(bytes, static_cast<std::size_t>(n));
    }
    ::close(fd);
    EXPECT_TRUE(received.ends_with("\r\n\r\nGET /u|")) << received;
    test::TestHandler handler;
    ReactorPool pool({.reactors = 1});
    EXPECT_FALSE(HttpServer::start(pool, options, handler).has_value());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

// The end may be reported together with the request before it, and is then not reported again.
TEST(HttpServer, AClientThatLeavesWithItsRequestIsNoticed) {
  TestServer server;
  constexpr int kClients = 50;
  for (int i = 0; i < kClients; ++i) {
    RawClient client(server.port());
    ASSERT_TRUE(client.send(post("/park", "x")));
  }
  EXPECT_TRUE(server.handler.parked.wait(kClients));
  EXPECT_TRUE(server.handler.abandoned.wait(kClients));
}

TEST(HttpServer, AClientThatHasSentAllItWantsIsAnsweredAndClosed) {
  TestServer server;
  for (int i = 0; i < 50; ++i) {
    RawClient client(server.port());
    ASSERT_TRUE(client.send(post("/a", "x") + post("/b", "y")));
    client.shutdown_write();
    EXPECT_EQ(client.read_response().body, "POST /a|x");
    EXPECT_EQ(client.read_response().body, "POST /b|y");
    EXPECT_TRUE(client.reads_end());
  }
}

}  // namespace
}  // namespace stanchion::net
