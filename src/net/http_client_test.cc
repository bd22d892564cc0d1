#include "net/http_client.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>

#include "net/client_call.h"
#include "net/http_test_kit.h"
#include "net/tls_test_kit.h"

namespace stanchion::net {
namespace {

using std::chrono::milliseconds;
using test::TestServer;

// A server that runs a script for each connection, which gets the connection's number.
class ScriptedServer {
 public:
  // A peer's connection; closed when the script returns.
  struct Peer {
    int fd;
    std::size_t number;

    // Whether the peer read all of it; a client that has read enough does not.
    bool send(std::string_view bytes) const {
      while (!bytes.empty()) {
        const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
      }
      return true;
    }
    // A head, and whatever came with it; empty once the client has closed.
    std::string read_request() const {
      std::string bytes;
      char byte = 0;
      while (!bytes.ends_with("\r\n\r\n") && ::recv(fd, &byte, 1, 0) == 1) bytes += byte;
      return bytes;
    }
    void wait_for_end() const {
      char bytes[4096];
      while (::recv(fd, bytes, sizeof bytes, 0) > 0) {
      }
    }
  };
  using Script = std::function<void(const Peer&)>;

  explicit ScriptedServer(Script script) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    EXPECT_EQ(::listen(listener_, 16), 0);
    thread_ = std::thread([this, script = std::move(script)] {
      for (std::size_t i = 0;; ++i) {
        const int fd = ::accept(listener_, nullptr, nullptr);
        if (fd < 0) return;
        ++accepted;
        script({fd, i});
        ::close(fd);
      }
    });
  }
  ~ScriptedServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }

  std::uint16_t port() const { return port_; }
  std::atomic<std::size_t> accepted{0};

 private:
  int listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

using Peer = ScriptedServer::Peer;

Url url_of(std::uint16_t port, std::string path = "/", bool tls = false) {
  return {tls, "127.0.0.1", std::to_string(port), std::move(path)};
}

// Either client, so that each test covers both.
class EitherClient {
 public:
  EitherClient(bool async, ClientOptions options) {
    if (async) {
      async_ = std::make_unique<AsyncHttpClient>(loop_, std::move(options));
    } else {
      blocking_ = std::make_unique<HttpClient>(std::move(options));
    }
  }

  Result<ClientResponse> call(ClientRequest request) {
    if (blocking_) return blocking_->call(std::move(request));
    std::optional<Result<ClientResponse>> result;
    async_->call(std::move(request), [&](auto got, bool) { result.emplace(std::move(got)); });
    EXPECT_FALSE(result) << "called back inside the call";
    loop_.restart();
    loop_.run();
    EXPECT_TRUE(result);
    EXPECT_EQ(async_->under_way(), 0u);
    return result ? std::move(*result) : fail("never called back");
  }

 private:
  boost::asio::io_context loop_;
  std::unique_ptr<HttpClient> blocking_;
  std::unique_ptr<AsyncHttpClient> async_;
};

class Client : public testing::TestWithParam<bool> {
 protected:
  EitherClient make(ClientOptions options = {}) const { return {GetParam(), std::move(options)}; }

  // The result of a call to a server that answers every request with these bytes.
  std::string outcome_of(std::string answer, ClientOptions options = {}) const {
    ScriptedServer server([&](const Peer& peer) {
      peer.read_request();
      peer.send(answer);
    });
    const auto got = make(std::move(options)).call({.url = url_of(server.port())});
    return got ? std::to_string(got->status) + " " + got->body : "failed: " + got.error().message;
  }
};

INSTANTIATE_TEST_SUITE_P(EveryKind, Client, testing::Bool(),
                         [](const auto& i) { return i.param ? "OnALoop" : "Blocking"; });

TEST_P(Client, ManyCallsUseOneConnection) {
  TestServer server;
  EitherClient client = make();
  for (int i = 0; i < 20; ++i) {
    const auto got = client.call(
        {.method = "POST", .url = url_of(server.port(), "/a"), .body = std::to_string(i)});
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->body, "POST /a|" + std::to_string(i));
    EXPECT_EQ(got->status, 200);
  }
  EXPECT_EQ(server.server->stats().accepted, 1u);
}

TEST_P(Client, LargeBodiesPassBothWays) {
  TestServer server;
  const std::string body(5'000'000, 'x');
  const auto got =
      make().call({.method = "POST", .url = url_of(server.port(), "/echo"), .body = body});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(got->body == body);
}

TEST_P(Client, EveryAddressOfANameIsTried) {
  // On most machines "localhost" is also ::1, where nobody listens.
  TestServer server;
  const auto got = make().call({.url = {false, "localhost", std::to_string(server.port()), "/a"}});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->body, "GET /a|");
}

TEST_P(Client, AUnixSocketIsCalledByItsPath) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("net_client." + std::to_string(::getpid()));
  TestServer server({.unix_path = path});
  EitherClient client = make();
  for (int i = 0; i < 3; ++i) {
    const auto got = client.call({.url = {false, path, "", "/a"}});
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->body, "GET /a|");
  }
  EXPECT_EQ(server.server->stats().accepted, 1u);
}

TEST_P(Client, HeadersAreGivenInWhateverCase) {
  ScriptedServer server([](const Peer& peer) {
    const std::string request = peer.read_request();
    const bool asked = request.find("\r\nX-Asked: yes\r\n") != std::string::npos;
    peer.send(asked ? "HTTP/1.1 200 OK\r\nx-TOLD:  so \r\nEmpty:\r\nContent-Length: 0\r\n\r\n"
                    : "");
  });
  const auto got = make().call({.url = url_of(server.port()), .headers = {{"X-Asked", "yes"}}});
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_NE(got->header("X-Told"), nullptr);
  EXPECT_EQ(*got->header("X-Told"), "so");
  EXPECT_EQ(*got->header("empty"), "");
  EXPECT_EQ(got->header("X-Other"), nullptr);
}

TEST_P(Client, BodiesEndByLengthByChunksOrByTheConnection) {
  EXPECT_EQ(outcome_of("HTTP/1.1 201 x\r\nContent-Length: 2\r\n\r\nab"), "201 ab");
  EXPECT_EQ(outcome_of("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "1\r\na\r\n2;e=1\r\nbc\r\n0\r\nTrailer: t\r\n\r\n"),
            "200 abc");
  EXPECT_EQ(outcome_of("HTTP/1.0 200 x\r\n\r\nuntil the end"), "200 until the end");
  EXPECT_EQ(outcome_of("HTTP/1.1 204 x\r\n\r\n"), "204 ");
  EXPECT_EQ(outcome_of("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\n"
                       "HTTP/1.1 200 x\r\nContent-Length: 1\r\n\r\nz"),
            "200 z");
}

TEST_P(Client, TheAnswerToHeadHasNoBodyWhateverItSays) {
  ScriptedServer server([](const Peer& peer) {
    for (int i = 0; i < 2; ++i)
      if (peer.read_request().starts_with("HEAD"))
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
  });
  EitherClient client = make();
  for (int i = 0; i < 2; ++i) {
    const auto got = client.call({.method = "HEAD", .url = url_of(server.port())});
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->body, "");
  }
  EXPECT_EQ(server.accepted, 1u);
}

TEST_P(Client, AnswersThatAreCutOffOrDamagedAreNone) {
  const std::string chunked = "HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& answer :
       {std::string(), std::string("HTTP/1.1 200"), std::string("HTTP/1.1 200 x\r\nA: b\r\n"),
        std::string("HTTP/1.1 200 x\r\nContent-Length: 3\r\n\r\nab"), chunked + "2\r\nab",
        chunked + "2\r\nab\r\n", chunked + "0\r\n", chunked + "-1\r\n", chunked + "zz\r\nab\r\n",
        chunked + "2\r\nabc\r\n0\r\n\r\n", chunked + "ffffffffffffffff1\r\n",
        std::string("HTTP/1.1 200 x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "0\r\n\r\n"),
        std::string("HTTP/1.1 200 x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
        std::string("HTTP/1.1 200 x\r\nContent-Length : 1\r\n\r\na"),
        std::string("HTTP/1.1 200 x\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n"),
        std::string("HTTP/1.1 101 Switching\r\n\r\n"), std::string("SMTP ready\r\n\r\n")})
    EXPECT_TRUE(outcome_of(answer).starts_with("failed: ")) << answer << " " << outcome_of(answer);
}

TEST_P(Client, WhatIsTooLargeIsNotTaken) {
  const ClientOptions small{.limits = {.head_bytes = 1000, .body_bytes = 1000}};
  const std::string many(2000, 'x');
  const std::string length = "HTTP/1.1 200 x\r\nContent-Length: ";
  EXPECT_TRUE(outcome_of(length + "1000\r\n\r\n" + many, small).starts_with("200 xxx"));
  EXPECT_TRUE(outcome_of(length + "1001\r\n\r\n" + many, small).starts_with("failed: "));
  EXPECT_TRUE(outcome_of("HTTP/1.1 200 " + many, small).starts_with("failed: "));
  EXPECT_TRUE(outcome_of("HTTP/1.1 200 x\r\nA: " + many + "\r\n\r\n", small).starts_with("failed"));
  EXPECT_TRUE(outcome_of("HTTP/1.1 200 x\r\n\r\n" + many, small).starts_with("failed: "));
  const std::string chunked = "HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_TRUE(
      outcome_of(chunked + "7d0\r\n" + many + "\r\n0\r\n\r\n", small).starts_with("failed"));
  std::string pieces = chunked;
  for (int i = 0; i < 1001; ++i) pieces += "1\r\nx\r\n";
  EXPECT_TRUE(outcome_of(pieces + "0\r\n\r\n", small).starts_with("failed: "));
  EXPECT_TRUE(outcome_of(chunked + "1;" + std::string(20'000, 'e') + "\r\n").starts_with("failed"));
}

TEST_P(Client, InterimAnswersWithoutEndAreGivenUp) {
  ScriptedServer server([](const Peer& peer) {
    peer.read_request();
    while (peer.send("HTTP/1.1 100 Continue\r\n\r\n")) {
    }
  });
  const auto got = make().call({.url = url_of(server.port())});
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().message.find("too large"), std::string::npos) << got.error().message;
}

TEST_P(Client, AServerThatSaysNothingIsWaitedForNoLongerThanAllowed) {
  ScriptedServer server([](const Peer& peer) { peer.wait_for_end(); });
  const auto got = make({.request_timeout = milliseconds(30)}).call({.url = url_of(server.port())});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message, "no reply in time");
}

TEST_P(Client, AServerThatAnswersByDropsIsNotWaitedForLonger) {
  // The timeout of a call is for the whole call: a byte now and then does not extend it.
  std::atomic<bool> over = false;
  ScriptedServer server([&](const Peer& peer) {
    peer.send("HTTP/1.1 200 OK\r\nX: ");
    while (!over && peer.send("x")) std::this_thread::yield();
  });
  const auto got = make({.request_timeout = milliseconds(30), .limits = {.head_bytes = 1 << 30}})
                       .call({.url = url_of(server.port())});
  over = true;
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message, "no reply in time");
}

TEST_P(Client, AServerThatTakesNoRequestIsNotWaitedForLonger) {
  std::atomic<bool> over = false;
  ScriptedServer server([&](const Peer&) {
    while (!over) std::this_thread::yield();
  });
  const auto got = make({.request_timeout = milliseconds(30)})
                       .call({.method = "POST",
                              .url = url_of(server.port()),
                              .body = std::string(50'000'000, 'x')});
  over = true;
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message, "no reply in time");
}

TEST_P(Client, AHandshakeThatStallsCountsAsConnecting) {
  ScriptedServer server([](const Peer& peer) { peer.wait_for_end(); });
  const auto got =
      make({.connect_timeout = milliseconds(30)}).call({.url = url_of(server.port(), "/", true)});
  ASSERT_FALSE(got);
  EXPECT_TRUE(got.error().message.starts_with("cannot connect to 127.0.0.1:"))
      << got.error().message;
}

TEST_P(Client, AServerThatIsNotThereIsReported) {
  std::uint16_t port = 0;
  {
    const ScriptedServer gone([](const Peer&) {});
    port = gone.port();
  }
  const auto got = make().call({.url = url_of(port)});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message,
            "cannot connect to 127.0.0.1:" + std::to_string(port) + ": Connection refused");
  EXPECT_EQ(got.error().os_error, ECONNREFUSED);
  const auto no_socket = make().call({.url = {false, "/nowhere/socket", "", "/"}});
  ASSERT_FALSE(no_socket);
  EXPECT_TRUE(no_socket.error().message.starts_with("cannot connect to /nowhere/socket"));
  const auto long_path = make().call({.url = {false, std::string(200, 'x'), "", "/"}});
  ASSERT_FALSE(long_path);
}

TEST_P(Client, ANameThatNobodyHasIsReported) {
  const auto got = make().call({.url = {false, "name.invalid", "80", "/"}});
  ASSERT_FALSE(got);
  EXPECT_TRUE(got.error().message.starts_with("name.invalid: ")) << got.error().message;
}

// A server that closes the connection on its second request without an answer.
ScriptedServer::Script closes_instead_of_second_answer(std::atomic<int>& requests) {
  return [&requests](const Peer& peer) {
    while (!peer.read_request().empty()) {
      if (++requests == 2) return;
      if (!peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")) return;
    }
  };
}

TEST_P(Client, ARepeatableRequestIsSentOnceMoreIfAKeptConnectionWasClosed) {
  std::atomic<int> requests = 0;
  ScriptedServer server(closes_instead_of_second_answer(requests));
  EitherClient client = make();
  for (int i = 0; i < 2; ++i) {
    const auto got = client.call({.url = url_of(server.port()), .repeatable = true});
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->body, "a");
  }
  EXPECT_EQ(requests, 3);
  EXPECT_EQ(server.accepted, 2u);
}

TEST_P(Client, OtherRequestsAreNeverSentTwice) {
  std::atomic<int> requests = 0;
  ScriptedServer server(closes_instead_of_second_answer(requests));
  EitherClient client = make();
  ASSERT_TRUE(client.call({.method = "POST", .url = url_of(server.port())}));
  const auto got = client.call({.method = "POST", .url = url_of(server.port())});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message, "the server closed the connection without an answer");
  EXPECT_EQ(requests, 2);
}

TEST_P(Client, ARequestIsNotRepeatedOnceItsAnswerHasBegun) {
  std::atomic<int> requests = 0;
  ScriptedServer server([&](const Peer& peer) {
    while (!peer.read_request().empty()) {
      if (++requests == 2) return void(peer.send("H"));
      if (!peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")) return;
    }
  });
  EitherClient client = make();
  ASSERT_TRUE(client.call({.url = url_of(server.port()), .repeatable = true}));
  const auto got = client.call({.url = url_of(server.port()), .repeatable = true});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message, "the server closed the connection within its answer");
  EXPECT_EQ(requests, 2);
}

TEST_P(Client, AServerThatClosesEveryConnectionIsTriedTwiceAtMost) {
  std::atomic<int> requests = 0;
  ScriptedServer server([&](const Peer& peer) {
    while (!peer.read_request().empty()) {
      if (++requests > 1) return;
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
    }
  });
  EitherClient client = make();
  ASSERT_TRUE(client.call({.url = url_of(server.port()), .repeatable = true}));
  ASSERT_FALSE(client.call({.url = url_of(server.port()), .repeatable = true}));
  EXPECT_EQ(requests, 3);
}

TEST_P(Client, AConnectionWithMoreThanItsAnswerIsNotUsedAgain) {
  ScriptedServer server([](const Peer& peer) {
    while (!peer.read_request().empty())
      if (!peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\n"
                     "Content-Length: 6\r\n\r\nforged"))
        return;
  });
  EitherClient client = make();
  for (int i = 0; i < 3; ++i) {
    const auto got = client.call({.url = url_of(server.port())});
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->body, "a");
  }
  EXPECT_EQ(server.accepted, 3u);
}

TEST_P(Client, AServerMaySayThatItCloses) {
  ScriptedServer server([](const Peer& peer) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 1\r\n\r\na");
    peer.wait_for_end();
  });
  EitherClient client = make();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(client.call({.url = url_of(server.port())}));
  EXPECT_EQ(server.accepted, 2u);
}

TEST_P(Client, WhatCouldBeReadAsAnotherRequestIsNotSent) {
  ScriptedServer server([](const Peer& peer) { peer.wait_for_end(); });
  EitherClient client = make();
  const Url url = url_of(server.port());
  for (const ClientRequest& request :
       {ClientRequest{.method = "GET / HTTP/1.1\r\nX:", .url = url},
        ClientRequest{.method = "", .url = url},
        ClientRequest{.url = url_of(server.port(), "/a b")},
        ClientRequest{.url = url_of(server.port(), "/a\r\nX: y")},
        ClientRequest{.url = url_of(server.port(), "a")},
        ClientRequest{.url = url, .headers = {{"A", "b\r\nC: d"}}},
        ClientRequest{.url = url, .headers = {{"A\r\nB", "c"}}},
        ClientRequest{.url = url, .headers = {{"", "c"}}},
        ClientRequest{.url = url, .headers = {{"content-length", "7"}}},
        ClientRequest{.url = url, .headers = {{"Transfer-Encoding", "chunked"}}},
        ClientRequest{.url = url, .headers = {{"Host", "other"}}}})
    EXPECT_FALSE(client.call(request));
  EXPECT_EQ(server.accepted, 0u);
}

class TlsCalls : public Client {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::temp_directory_path() / ("net_client_test." + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
    files_ = {.certificate_chain = directory_ / "cert.pem", .private_key = directory_ / "key.pem"};
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // The result of a call to a server with a certificate for "queues.test".
  std::string outcome(ClientOptions options, long good_seconds = 3600) {
    test::write_certificate(files_, "queues.test", good_seconds);
    auto credentials = TlsCredentials::load(files_);
    EXPECT_TRUE(credentials) << credentials.error().message;
    if (!credentials) return "";
    TestServer server({.tls = *credentials});
    EitherClient client = make(std::move(options));
    for (int i = 0; i < 3; ++i) {
      const auto got = client.call({.url = url_of(server.port(), "/a", true)});
      if (!got) return got.error().message;
      if (got->body != "GET /a|") return got->body;
    }
    return server.server->stats().accepted == 1 ? "fine" : "one connection was not enough";
  }

  std::filesystem::path directory_;
  TlsFiles files_;
};

INSTANTIATE_TEST_SUITE_P(EveryKind, TlsCalls, testing::Bool(),
                         [](const auto& i) { return i.param ? "OnALoop" : "Blocking"; });

TEST_P(TlsCalls, AServerWhoseCertificateIsTrustedIsCalled) {
  const TlsTrust trust{.ca_file = files_.certificate_chain};
  EXPECT_EQ(outcome({.trust = trust, .server_name = "queues.test"}), "fine");
  EXPECT_EQ(outcome({.trust = {.verify = false}}), "fine");
}

TEST_P(TlsCalls, AnotherNameAnExpiredOrAnUnknownCertificateIsRefused) {
  const TlsTrust trust{.ca_file = files_.certificate_chain};
  const auto says = [](const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  says(outcome({.trust = trust, .server_name = "other.test"}), "hostname mismatch");
  says(outcome({.trust = trust}), "IP address mismatch");
  says(outcome({.trust = trust, .server_name = "queues.test"}, -60), "certificate has expired");
  says(outcome({.server_name = "queues.test"}), "self-signed certificate");
}

TEST_P(TlsCalls, AServerWithoutTlsIsReported) {
  TestServer server;
  const auto got = make().call({.url = url_of(server.port(), "/", true)});
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().message.find("does not speak TLS"), std::string::npos)
      << got.error().message;
}

TEST_P(TlsCalls, AnAuthorityThatCannotBeReadIsReported) {
  ScriptedServer server([](const Peer& peer) { peer.wait_for_end(); });
  const auto got =
      make({.trust = {.ca_file = "/nowhere.pem"}}).call({.url = url_of(server.port(), "/", true)});
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().message.find("/nowhere.pem"), std::string::npos) << got.error().message;
}

// Only on a loop.

TEST(AsyncHttpClient, ManyCallsAreUnderWayAtOnce) {
  TestServer server;
  boost::asio::io_context loop;
  AsyncHttpClient client(loop, {.idle_max = 3});
  std::size_t answered = 0;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 50; ++i)
      client.call({.method = "POST", .url = url_of(server.port(), "/a"), .body = std::to_string(i)},
                  [&, i](Result<ClientResponse> got, bool sent) {
                    EXPECT_TRUE(sent);
                    ASSERT_TRUE(got) << got.error().message;
                    EXPECT_EQ(got->body, "POST /a|" + std::to_string(i));
                    ++answered;
                  });
    EXPECT_EQ(client.under_way(), 50u);
    loop.restart();
    loop.run();
  }
  EXPECT_EQ(answered, 100u);
  EXPECT_EQ(server.server->stats().accepted, 97u);
}

TEST(AsyncHttpClient, NobodyIsCalledBackByAClientThatIsGone) {
  ScriptedServer server([](const Peer& peer) { peer.wait_for_end(); });
  boost::asio::io_context loop;
  auto client = std::make_unique<AsyncHttpClient>(loop);
  for (const char* host : {"127.0.0.1", "localhost"})
    client->call({.url = {false, host, std::to_string(server.port()), "/"}},
                 [](const auto&, bool) { ADD_FAILURE() << "called back"; });
  loop.poll();
  client.reset();
  loop.restart();
  loop.run();
}

TEST(AsyncHttpClient, AClientMayBeGivenUpInsideItsCallBack) {
  TestServer server;
  boost::asio::io_context loop;
  auto client = std::make_unique<AsyncHttpClient>(loop);
  bool answered = false;
  client->call({.url = url_of(server.port(), "/a")}, [&](const auto& got, bool) {
    answered = got.has_value();
    client.reset();
  });
  loop.run();
  EXPECT_TRUE(answered);
}

TEST(AsyncHttpClient, SaysWhetherAFailedRequestMayHaveArrived) {
  ScriptedServer silent([](const Peer& peer) { peer.wait_for_end(); });
  std::uint16_t nobody = 0;
  { nobody = TestServer().port(); }
  boost::asio::io_context loop;
  AsyncHttpClient client(loop, {.request_timeout = milliseconds(200)});
  const auto sent_to = [&](std::uint16_t port) {
    std::optional<bool> was_sent;
    client.call({.url = url_of(port)}, [&](const auto& got, bool sent) {
      EXPECT_FALSE(got);
      was_sent = sent;
    });
    loop.restart();
    loop.run();
    return was_sent;
  };
  EXPECT_EQ(sent_to(silent.port()), true);
  EXPECT_EQ(sent_to(nobody), false);
}

TEST(AsyncHttpClient, ACallThatIsTakenBackIsClosedAndNobodyIsCalled) {
  TestServer server;
  boost::asio::io_context loop;
  AsyncHttpClient client(loop);
  const auto called = [](const auto&, bool) { ADD_FAILURE() << "called back"; };
  const auto early = client.call({.url = url_of(server.port(), "/park")}, called);
  EXPECT_EQ(client.cancel(early), false);
  EXPECT_EQ(client.cancel(early), std::nullopt);
  const auto late = client.call({.url = url_of(server.port(), "/park")}, called);
  EXPECT_TRUE(test::eventually([&] {
    loop.restart();
    loop.poll();
    return server.handler.parked.happened();
  }));
  EXPECT_EQ(client.cancel(late), true);
  EXPECT_EQ(client.under_way(), 0u);
  EXPECT_TRUE(server.handler.abandoned.wait());
  loop.restart();
  loop.run();
}

TEST(IdleConnections, AreBoundedInNumberAndTime) {
  ScriptedServer server([](const Peer& peer) { peer.wait_for_end(); });
  const auto address = resolve("127.0.0.1", std::to_string(server.port()));
  ASSERT_TRUE(address);
  char scratch[100];
  const auto opened = [&] {
    auto connection = std::make_unique<ClientConnection>();
    EXPECT_TRUE(connection->connect(address->front(), nullptr, ""));
    EXPECT_TRUE(test::eventually([&] {
      connection->advance(scratch);
      return connection->is_open();
    }));
    return connection;
  };
  IdleConnections idle(2, milliseconds(1000));
  const SteadyTime now{};
  for (int i = 0; i < 3; ++i) idle.give("a", opened(), now + milliseconds(i));
  EXPECT_EQ(idle.size(), 2u);
  EXPECT_EQ(idle.take("b", now + milliseconds(3)), nullptr);
  EXPECT_NE(idle.take("a", now + milliseconds(1001)), nullptr);
  EXPECT_EQ(idle.take("a", now + milliseconds(1002)), nullptr);
}

}  // namespace
}  // namespace stanchion::net
