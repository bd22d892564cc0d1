// Nodes for tests of links: each with its own reactors, and what they were told; and a client that
// says whatever a test wants.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "link/hello.h"
#include "link/tcp_transport.h"
#include "os/fd.h"

namespace stanchion::link {

inline constexpr std::chrono::seconds kPatience{30};

class TestNode {
 public:
  TestNode(fleet::NodeName name, LinkOptions options = {}, std::size_t reactors = 2)
      : pool_({.reactors = reactors}) {
    options.node = std::move(name);
    if (options.fleet.empty()) options.fleet = "test";
    if (options.host.empty()) options.host = "127.0.0.1";
    options_ = std::move(options);
    EXPECT_TRUE(pool_.start());
  }
  ~TestNode() {
    stop();
    pool_.stop();
  }

  Status listen() {
    auto transport = TcpTransport::listen(pool_, options_);
    if (!transport) return std::unexpected(std::move(transport).error());
    transport_ = std::move(*transport);
    options_.port = transport_->port();
    return {};
  }
  void start(ServeCopy serve_copy = nullptr) {
    if (!transport_) {
      ASSERT_TRUE(listen());
    }
    transport_->start(
        {.take =
             [this](const fleet::NodeName& from, fleet::Frame frame) {
               note([&] {
                 EXPECT_TRUE(connected_[from]) << "frames are taken between made and broke";
                 taken_[from].push_back(std::move(frame));
               });
             },
         .broke =
             [this](const fleet::NodeName& node) {
               note([&] {
                 EXPECT_TRUE(std::exchange(connected_[node], false));
                 ++broke_[node];
               });
             },
         .made =
             [this](const fleet::NodeName& node) {
               note([&] {
                 EXPECT_FALSE(std::exchange(connected_[node], true));
                 ++made_[node];
               });
             },
         .serve_copy = std::move(serve_copy),
         .log = [this](const std::string& line) { note([&] { log_.push_back(line); }); }});
  }
  void stop() {
    transport_.reset();
    const std::lock_guard lock(mutex_);
    connected_.clear();
  }

  TcpTransport& transport() { return *transport_; }
  net::ReactorPool& pool() { return pool_; }
  std::uint16_t port() const { return options_.port; }
  std::string address() const { return "127.0.0.1:" + std::to_string(options_.port); }

  void meet(const fleet::NodeName& name, const TestNode& other) {
    transport_->set_peers({{name, other.address()}});
  }

  // Waits until it holds.
  [[nodiscard]] bool comes_true(const std::function<bool()>& holds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, holds);
  }
  [[nodiscard]] bool is_connected(const fleet::NodeName& node) {
    return comes_true([&] { return connected_[node]; });
  }
  [[nodiscard]] bool has_lost(const fleet::NodeName& node, int times = 1) {
    return comes_true([&] { return broke_[node] >= times; });
  }
  [[nodiscard]] bool has_taken(const fleet::NodeName& from, std::size_t frames) {
    return comes_true([&] { return taken_[from].size() >= frames; });
  }
  [[nodiscard]] bool has_logged(const std::string& part) {
    return comes_true([&] {
      for (const std::string& line : log_)
        if (line.contains(part)) return true;
      return false;
    });
  }
  std::size_t logged() {
    const std::lock_guard lock(mutex_);
    return log_.size();
  }
  std::vector<fleet::Frame> taken(const fleet::NodeName& from) {
    const std::lock_guard lock(mutex_);
    return taken_[from];
  }
  void forget_taken() {
    const std::lock_guard lock(mutex_);
    taken_.clear();
  }
  int made(const fleet::NodeName& node) {
    const std::lock_guard lock(mutex_);
    return made_[node];
  }
  int broke(const fleet::NodeName& node) {
    const std::lock_guard lock(mutex_);
    return broke_[node];
  }

 private:
  void note(const std::function<void()>& what) {
    const std::lock_guard lock(mutex_);
    what();
    changed_.notify_all();
  }

  net::ReactorPool pool_;
  LinkOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<fleet::NodeName, std::vector<fleet::Frame>> taken_;
  std::map<fleet::NodeName, int> made_, broke_;
  std::map<fleet::NodeName, bool> connected_;
  std::vector<std::string> log_;
  std::unique_ptr<TcpTransport> transport_;
};

// A plain connection that a test writes to and reads from.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  explicit RawClient(os::Fd fd) : fd_(std::move(fd)) {}

  bool write(std::string_view bytes) {
    return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // Empty: the other side has closed the connection.
  std::string read() {
    char bytes[4'096];
    const ssize_t size = ::recv(fd_.get(), bytes, sizeof bytes, 0);
    return size <= 0 ? "" : std::string(bytes, static_cast<std::size_t>(size));
  }
  bool is_closed_by_peer() {
    for (;;) {
      char bytes[65'536];
      const ssize_t size = ::recv(fd_.get(), bytes, sizeof bytes, 0);
      if (size == 0 || (size < 0 && errno == ECONNRESET)) return true;
      if (size < 0) return false;
    }
  }
  std::optional<HelloAnswer> read_answer() {
    std::string input;
    for (;;) {
      const std::string more = read();
      if (more.empty()) return std::nullopt;
      input += more;
      const auto answer = take_answer(input);
      if (!answer) return std::nullopt;
      if (*answer) return **answer;
    }
  }
  void close() { fd_ = os::Fd(); }

 private:
  os::Fd fd_;
};

// Of a node with the name "a", which dials.
inline Hello hello_of_a(std::uint64_t process = 1, std::uint64_t session = 1) {
  Hello hello;
  hello.fleet = "test";
  hello.shards = 1;
  hello.node = "a";
  hello.process = process;
  hello.session = session;
  return hello;
}

}  // namespace stanchion::link
