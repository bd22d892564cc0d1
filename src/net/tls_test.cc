#include "net/tls.h"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <filesystem>

#include "net/http_test_kit.h"
#include "net/stream.h"
#include "net/tls_test_kit.h"

namespace stanchion::net {
namespace {

using test::eventually;
using test::get;
using test::Owned;
using test::post;
using test::RawClient;
using test::TestServer;
using test::write_certificate;

class TlsClient {
 public:
  explicit TlsClient(std::uint16_t port, int version_max = TLS1_3_VERSION,
                     const char* ciphers = nullptr)
      : socket_(port), context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_max_proto_version(context_.get(), version_max);
    if (ciphers != nullptr) {
      EXPECT_EQ(SSL_CTX_set_cipher_list(context_.get(), ciphers), 1);
    }
    tls_.reset(SSL_new(context_.get()));
    static constexpr unsigned char kOffered[] = "\x02h2\x08http/1.1";
    SSL_set_alpn_protos(tls_.get(), kOffered, sizeof kOffered - 1);
    SSL_set_fd(tls_.get(), socket_.fd());
    connected_ = SSL_connect(tls_.get()) == 1;
    ERR_clear_error();
  }

  bool connected() const { return connected_; }

  std::string subject() {
    const Owned<X509, X509_free> certificate(SSL_get1_peer_certificate(tls_.get()));
    char name[100] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name,
                              sizeof name);
    return name;
  }

  std::string protocol() {
    const unsigned char* chosen = nullptr;
    unsigned int size = 0;
    SSL_get0_alpn_selected(tls_.get(), &chosen, &size);
    return {reinterpret_cast<const char*>(chosen), size};
  }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const int n = SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size()));
      ASSERT_GT(n, 0);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  // The next `size` bytes after the head.
  std::string read_body(std::size_t size) {
    std::string received;
    char bytes[16384];
    for (;;) {
      const std::size_t end = received.find("\r\n\r\n");
      if (end != std::string::npos && received.size() >= end + 4 + size) {
        return received.substr(end + 4);
      }
      const int n = SSL_read(tls_.get(), bytes, sizeof bytes);
      if (n <= 0) return received;
      received.append(bytes, static_cast<std::size_t>(n));
    }
  }

  void close() { socket_.close(); }

 private:
  RawClient socket_;
  Owned<SSL_CTX, SSL_CTX_free> context_;
  Owned<SSL, SSL_free> tls_;
  bool connected_ = false;
};

class Tls : public testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::temp_directory_path() / ("net_tls_test." + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
    files_ = {.certificate_chain = directory_ / "cert.pem", .private_key = directory_ / "key.pem"};
    write_certificate(files_, "first");
    auto loaded = TlsCredentials::load(files_);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    options_.tls = *loaded;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
  TlsFiles files_;
  HttpServerOptions options_;
};

TEST_F(Tls, ServesRequestsAndSpeaksHttp11) {
  TestServer server(options_);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(server.port(), version);
    ASSERT_TRUE(client.connected());
    EXPECT_EQ(client.protocol(), "http/1.1");
    for (int i = 0; i < 3; ++i) {
      client.send(post("/t", "secret"));
      EXPECT_EQ(client.read_body(14), "POST /t|secret");
    }
  }
}

TEST_F(Tls, OldVersionsAreRefused) {
  TestServer server(options_);
  EXPECT_FALSE(TlsClient(server.port(), TLS1_1_VERSION).connected());
}

TEST_F(Tls, LargeBodiesGoBothWays) {
  TestServer server(options_);
  TlsClient client(server.port());
  std::string body(1024 * 1024, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 31 >> 3);
  client.send(post("/echo", body));
  EXPECT_TRUE(client.read_body(body.size()) == body);
}

TEST_F(Tls, AClientThatLeavesIsNoticed) {
  TestServer server(options_);
  TlsClient client(server.port());
  client.send(get("/park"));
  ASSERT_TRUE(server.handler.parked.wait());
  client.close();
  EXPECT_TRUE(server.handler.abandoned.wait());
}

TEST_F(Tls, AReloadedCertificateServesNewConnections) {
  TestServer server(options_);
  TlsClient before(server.port());
  EXPECT_EQ(before.subject(), "first");
  write_certificate(files_, "second");
  ASSERT_TRUE(options_.tls->reload().has_value());
  EXPECT_EQ(TlsClient(server.port()).subject(), "second");
  before.send(get("/old"));
  EXPECT_EQ(before.read_body(9), "GET /old|");
}

TEST_F(Tls, AReloadThatFailsKeepsTheCertificate) {
  TestServer server(options_);
  std::filesystem::resize_file(files_.certificate_chain, 10);
  const Status reloaded = options_.tls->reload();
  ASSERT_FALSE(reloaded.has_value());
  EXPECT_NE(reloaded.error().message.find("cert.pem"), std::string::npos);
  EXPECT_EQ(TlsClient(server.port()).subject(), "first");
}

TEST_F(Tls, AHandshakeThatStallsTimesOut) {
  options_.limits.header_timeout = std::chrono::milliseconds(50);
  TestServer server(options_);
  RawClient client(server.port());
  EXPECT_TRUE(client.reads_end());
}

// The beginning of a hello of 128 KiB, which no client needs.
std::string begin_of_hello() {
  return std::string("\x16\x03\x01\x40\x00\x01\x02\x00\x00\x03\x03", 11) + std::string(16'378, 'x');
}

TEST_F(Tls, WhatItTakesIsCountedAsLongAsTheConnectionIsOpen) {
  TestServer server(options_);
  const auto held = [&] { return server.server->stats().held_bytes; };
  {
    std::vector<std::unique_ptr<TlsClient>> clients;
    for (int i = 0; i < 10; ++i) {
      clients.push_back(std::make_unique<TlsClient>(server.port()));
      clients.back()->send(get("/"));
      EXPECT_EQ(clients.back()->read_body(6), "GET /|");
    }
    EXPECT_TRUE(eventually([&] { return held() == 10 * Stream::kTlsBytes; })) << held();
    clients.front()->send(get("/park"));
    EXPECT_TRUE(eventually([&] { return held() > 10 * Stream::kTlsBytes; }));
  }
  EXPECT_TRUE(eventually([&] { return held() == 0; })) << held();
  RawClient silent(server.port());
  EXPECT_TRUE(eventually([&] { return held() == Stream::kHandshakeBytes; })) << held();
  silent.send(begin_of_hello());
  EXPECT_TRUE(eventually([&] { return held() == Stream::kHelloBytes; })) << held();
  silent.close();
  EXPECT_TRUE(eventually([&] { return held() == 0; })) << held();
}

TEST_F(Tls, HandshakesThatDoNotEndMakeRoomForWhoeverEndsTheirs) {
  options_.limits.held_bytes_max = 2 << 20;
  TestServer server(options_);
  std::vector<std::unique_ptr<RawClient>> stalled;
  std::uint64_t most = 0;
  for (int i = 0; i < 100; ++i) {
    stalled.push_back(std::make_unique<RawClient>(server.port()));
    stalled.back()->send(begin_of_hello());
    most = std::max(most, server.server->stats().held_bytes);
  }
  EXPECT_TRUE(eventually([&] {
    const HttpStats stats = server.server->stats();
    most = std::max(most, stats.held_bytes);
    return stats.shed + stats.refused > 80;
  }));
  EXPECT_LE(most, options_.limits.held_bytes_max + 2 * Stream::kHelloBytes);
  EXPECT_TRUE(eventually(
      [&] { return server.server->stats().held_bytes <= options_.limits.held_bytes_max / 8 * 7; }));
  TlsClient after(server.port());
  ASSERT_TRUE(after.connected());
  after.send(get("/after"));
  EXPECT_EQ(after.read_body(11), "GET /after|");
}

TEST_F(Tls, SilentConnectionsMakeRoomForNewOnes) {
  options_.limits.held_bytes_max = 1 << 20;
  TestServer server(options_);
  constexpr std::size_t kTwiceAsMany = 2 * (1 << 20) / Stream::kTlsBytes;
  std::vector<std::unique_ptr<TlsClient>> clients;
  for (std::size_t i = 0; i < kTwiceAsMany; ++i) {
    clients.push_back(std::make_unique<TlsClient>(server.port()));
    ASSERT_TRUE(clients.back()->connected()) << i;
    clients.back()->send(get("/"));
    ASSERT_EQ(clients.back()->read_body(6), "GET /|") << i;
  }
  EXPECT_LE(server.server->stats().held_bytes, options_.limits.held_bytes_max);
  EXPECT_GE(server.server->stats().shed, kTwiceAsMany / 2);
}

TEST_F(Tls, SomeSilentConnectionsStayWhereCallsFillMemory) {
  options_.limits.held_bytes_max = 1 << 20;
  std::vector<Exchange> kept;
  TestServer server(options_, 1, [&](Exchange exchange) {
    if (exchange.request().target != "/hold") return exchange.answer(HttpResponse(200, "here"));
    static_cast<void>(exchange.hold(830 << 10));  // Listeners know their sum to 64 KiB only.
    kept.push_back(std::move(exchange));
  });
  std::vector<std::unique_ptr<TlsClient>> silent;
  for (int i = 0; i < 7; ++i) {
    silent.push_back(std::make_unique<TlsClient>(server.port()));
    ASSERT_TRUE(silent.back()->connected());
    silent.back()->send(get("/"));
    ASSERT_EQ(silent.back()->read_body(4), "here");
  }
  TlsClient busy(server.port());
  ASSERT_TRUE(busy.connected());
  busy.send(get("/hold"));
  // Four of them take a sixteenth of the limit, which remains beyond seven eighths all the time.
  EXPECT_TRUE(eventually([&] { return server.server->stats().shed >= 3; }));
  for (std::size_t i = 3; i < 7; ++i) {
    silent[i]->send(get("/"));
    EXPECT_EQ(silent[i]->read_body(4), "here") << i;
  }
  EXPECT_EQ(server.server->stats().shed, 3u);
  server.pool[0].post([&] { kept.clear(); });
}

TEST_F(Tls, PlainHttpOnATlsPortIsToldSo) {
  TestServer server(options_);
  RawClient client(server.port());
  client.send(get("/plain"));
  const auto response = client.read_response();
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(response.body.find("https://"), std::string::npos) << response.body;
  EXPECT_TRUE(client.reads_end());
  EXPECT_EQ(server.server->stats().requests, 0u);
}

TEST_F(Tls, OfTls12OnlyForwardSecretAuthenticatedCiphersAreSpoken) {
  TestServer server(options_);
  for (const char* good : {"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
                           "ECDHE-ECDSA-CHACHA20-POLY1305"})
    EXPECT_TRUE(TlsClient(server.port(), TLS1_2_VERSION, good).connected()) << good;
  for (const char* bad : {"ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA",
                          "ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES128-CCM"})
    EXPECT_FALSE(TlsClient(server.port(), TLS1_2_VERSION, bad).connected()) << bad;
}

TEST_F(Tls, PlainHttpIsToldThatTlsIsSpokenHere) {
  TestServer server(options_);
  for (const std::string& request : {get("/a"), post("/a", std::string(300'000, 'x'))}) {
    RawClient client(server.port());
    client.send(request);
    const auto answer = client.read_response();
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(answer.body, "This port speaks HTTPS: call it with https:// in place of http://.\n");
  }
  RawClient nonsense(server.port());
  nonsense.send("nonsense that is neither");
  EXPECT_NE(nonsense.read_response().status, 200);
  TlsClient client(server.port());
  EXPECT_TRUE(client.connected());
}

}  // namespace
}  // namespace stanchion::net
