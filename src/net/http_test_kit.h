// For the tests of this layer: a raw client, a handler that keeps its exchanges, and a server that
// combines both.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "net/http_server.h"

namespace stanchion::net::test {

// Longer than any working operation takes; a test that waits this long has failed.
inline constexpr int kPatienceSeconds = 20;

struct RawResponse {
  int status = 0;
  std::string head;
  std::string body;
};

// A blocking client that sends bytes as they are given.
class RawClient {
 public:
  // `from` is an address of this machine to call from.
  explicit RawClient(std::uint16_t port, const char* from = nullptr)
      : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval patience{.tv_sec = kPatienceSeconds, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    if (from != nullptr) {
      ::inet_pton(AF_INET, from, &address.sin_addr);
      ::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    }
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_; }

  // False once the server has closed the connection.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  // Everything up to and including `end`; what was received if the connection ends first.
  std::string read_until(std::string_view end) {
    while (buffer_.find(end) == std::string::npos && fill()) {
    }
    const std::size_t at = buffer_.find(end);
    return take(at == std::string::npos ? buffer_.size() : at + end.size());
  }

  RawResponse read_response(bool with_body = true) {
    RawResponse response;
    response.head = read_until("\r\n\r\n");
    if (response.head.size() < 12) return response;
    response.status = std::stoi(response.head.substr(9, 3));
    const std::size_t at = response.head.find("Content-Length: ");
    const std::size_t size =
        at == std::string::npos || !with_body ? 0 : std::stoul(response.head.substr(at + 16));
    while (buffer_.size() < size && fill()) {
    }
    response.body = take(size);
    return response;
  }

  // Whether the server closes without sending anything more.
  bool reads_end() {
    if (!buffer_.empty()) return false;
    char byte = 0;
    const ssize_t n = ::recv(fd_, &byte, 1, 0);
    return n == 0 || (n < 0 && errno == ECONNRESET);
  }

  void shutdown_write() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  bool fill() {
    char bytes[16384];
    const ssize_t n = ::recv(fd_, bytes, sizeof bytes, 0);
    if (n <= 0) return false;
    buffer_.append(bytes, static_cast<std::size_t>(n));
    return true;
  }

  std::string take(std::size_t size) {
    size = std::min(size, buffer_.size());
    std::string taken = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return taken;
  }

  int fd_;
  bool connected_ = false;
  std::string buffer_;
};

// For changes that are not signalled: polls until the condition holds or the test's timeout passes.
inline bool eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// An event on another thread that a test waits for.
class Event {
 public:
  void happen() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  bool happened() {
    const std::lock_guard lock(mutex_);
    return count_ > 0;
  }
  // Whether it has happened `times` times within the test's timeout.
  bool wait(int times = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(kPatienceSeconds),
                             [&] { return count_ >= times; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

// Answers "METHOD target|body" at once, except that requests to /park wait until told otherwise.
class TestHandler : public HttpHandler {
 public:
  void handle(Exchange exchange) override {
    HttpRequest& request = exchange.request();
    if (request.target.starts_with("/park")) {
      exchange.on_abandoned([this] { abandoned.happen(); });
      const std::lock_guard lock(mutex_);
      parked_.push_back(std::make_unique<Exchange>(std::move(exchange)));
      parked.happen();
      return;
    }
    if (request.target == "/drop") return;
    if (request.target == "/echo") return exchange.answer(HttpResponse(200, request.body));
    if (on_other) return on_other(std::move(exchange));
    exchange.answer(HttpResponse(
        200, std::string(request.method) + " " + std::string(request.target) + "|" + request.body));
  }

  // Answers the n-th parked exchange of all so far, from its reactor; drops it if there is no
  // response.
  void settle(std::size_t n, std::optional<HttpResponse> response) {
    std::unique_ptr<Exchange> exchange;
    {
      const std::lock_guard lock(mutex_);
      exchange = std::move(parked_[n]);
    }
    Reactor& reactor = exchange->reactor();
    reactor.post([exchange = std::move(exchange), response = std::move(response)]() mutable {
      if (response) exchange->answer(std::move(*response));
    });
  }

  Event parked;
  Event abandoned;
  std::function<void(Exchange)> on_other;  // Set before the server starts.

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Exchange>> parked_;
};

// A running server with the handler above.
class TestServer {
 public:
  explicit TestServer(HttpServerOptions options = {}, std::size_t reactors = 1,
                      std::function<void(Exchange)> on_other = {})
      : pool({.reactors = reactors}) {
    handler.on_other = std::move(on_other);
    auto started = HttpServer::start(pool, std::move(options), handler);
    if (!started) ADD_FAILURE() << started.error().message;
    server = std::move(*started);
    if (const Status status = pool.start(); !status) ADD_FAILURE() << status.error().message;
  }
  ~TestServer() {
    server->stop();
    pool.stop();
  }

  std::uint16_t port() const { return server->port(); }

  ReactorPool pool;
  TestHandler handler;
  std::unique_ptr<HttpServer> server;
};

inline std::string get(std::string_view target) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: test\r\n\r\n";
}

inline std::string post(std::string_view target, std::string_view body) {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: test\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

}  // namespace stanchion::net::test
