// What it costs that a request is taken by another node than the one that serves its queue (F4): two
// nodes in this process, each with a reactor, whose shards have their journals in memory, linked by
// TCP. The client sends to the first: to a queue that it serves itself, and to one of the other.
//
//   build/release/bench/fleet_bench build/release/stanchion [ROUNDS [SECONDS]]
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "broker/background.h"
#include "broker/broker.h"
#include "broker/routing.h"
#include "fleet/router.h"
#include "journal/memory_journal.h"
#include "link/tcp_transport.h"
#include "net/http_server.h"
#include "net/reactor.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "os/timekeeper.h"
#include "os/virtual_clock.h"
#include "service/authenticator.h"
#include "service/call_figures.h"
#include "service/reactor_loop.h"
#include "service/sqs_endpoint.h"

namespace stanchion {
namespace {

constexpr std::uint32_t kShards = 2;
constexpr int kConnections = 32;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

template <class T>
T need(Result<T> result) {
  if (!result) give_up(result.error().message);
  return std::move(*result);
}

// Serves the shard of its own number, and forwards what concerns the other one.
class Node final : private fleet::Transport {
 public:
  explicit Node(std::uint32_t index)
      : index_(index),
        name_(fmt::format("n{}", index)),
        time_(system_, boot_),
        virtual_(system_, time_),
        pool_({.reactors = 1}),
        calls_(1),
        router_(
            kShards, *this, time_, [](ShardIndex, std::string_view) {}, nullptr, entropy_.u64()),
        broker_(broker::Broker::of_a_node(kShards, router_)),
        authenticator_({"000000000000", "us-east-1", false, false, service::PageGuard()}, 1,
                       system_) {
    time_.begin(Instant());
    if (const Status started = pool_.start(); !started) give_up(started.error().message);
    loops_.push_back(std::make_unique<service::ReactorLoop>(pool_[0]));
    links_ = need(link::TcpTransport::listen(
        pool_, {.fleet = "bench", .shards = kShards, .node = name_, .host = "127.0.0.1"}));
  }

  ~Node() override {
    http_->stop();
    links_->stop();
    pool_.stop();
  }

  std::string name() const { return name_; }
  std::string address() const { return fmt::format("127.0.0.1:{}", links_->port()); }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", http_->port()); }

  // Returns when both nodes know each other.
  void start(const Node& other) {
    links_->start(
        {.take = [this](const fleet::NodeName& from,
                        fleet::Frame frame) { router_.take(from, std::move(frame)); },
         .broke = [this](const fleet::NodeName& node) { router_.connection_broke(node); },
         .made = [this](const fleet::NodeName&) { made_.set_value(); },
         .log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }});
    links_->set_peers({{other.name(), other.address()}});
    router_.start(*broker_);
    broker_->start(
        {loops_.front().get()}, background_, [] {},
        [](const Failure& failure) { give_up(failure.message); });
    shard_ = std::make_unique<broker::Shard>(engine::Options{ShardIndex(index_), false, {}},
                                             std::make_unique<journal::MemoryJournal>(), nullptr,
                                             broker::KeeperOptions{}, time_, entropy_);
    if (const Status recovered = shard_->recover(); !recovered) give_up(recovered.error().message);
    loops_.front()->post([this, other = other.name()] {
      shard_->start(*loops_.front(), background_, broker_->peers());
      broker_->serve(ShardIndex(index_), shard_.get());
      router_.serve_here(ShardIndex(index_));
      router_.set_owner(ShardIndex(1 - index_), other);
    });
    endpoint_ = std::make_unique<service::SqsEndpoint>(
        service::EndpointOptions{"", false, "us-east-1", false}, *broker_, authenticator_, virtual_,
        loops_, calls_, nullptr);
    http_ = need(net::HttpServer::start(pool_, {.host = "127.0.0.1", .port = 0}, *endpoint_));
    endpoint_->set_port(http_->port());
  }
  void wait_for_link() { made_.get_future().wait(); }

 private:
  bool send(const fleet::NodeName& to, fleet::Frame frame) override {
    return links_->send(to, std::move(frame));
  }

  const std::uint32_t index_;
  const std::string name_;
  os::SystemClock system_;
  os::BootClock boot_;
  os::Timekeeper time_;
  os::VirtualClock virtual_;
  os::SystemEntropy entropy_;
  net::ReactorPool pool_;
  service::CallFigures calls_;
  std::vector<std::unique_ptr<service::ReactorLoop>> loops_;
  std::unique_ptr<link::TcpTransport> links_;
  fleet::Router router_;
  std::unique_ptr<broker::Broker> broker_;
  std::unique_ptr<broker::Shard> shard_;
  service::Authenticator authenticator_;
  std::unique_ptr<service::SqsEndpoint> endpoint_;
  std::unique_ptr<net::HttpServer> http_;
  std::promise<void> made_;
  broker::BackgroundThreads background_;
};

// The name of a queue that lives in this shard.
std::string queue_in(ShardIndex shard) {
  for (int i = 0;; ++i) {
    const std::string name = fmt::format("queue-{}", i);
    if (broker::shard_of({"000000000000", "us-east-1", name}, kShards) == shard) return name;
  }
}

double run_client(const std::string& binary, const std::string& url, const std::string& queue,
                  const std::string& seconds) {
  const std::string command = fmt::format(
      "{} bench --json --quiet --workload send --endpoint {} --queue {} --connections {} "
      "--duration {}",
      binary, url, queue, kConnections, seconds);
  std::FILE* const out = ::popen(command.c_str(), "r");
  if (out == nullptr) give_up("the client cannot be started");
  std::string text;
  std::vector<char> buffer(4096);
  while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), out))
    text.append(buffer.data(), size);
  if (::pclose(out) != 0) give_up("the client failed: " + text);
  return boost::json::parse(text).at("result").to_number<double>();
}

int measure(const std::string& binary, int rounds, const std::string& seconds) {
  const std::string near = queue_in(ShardIndex(0));
  const std::string far = queue_in(ShardIndex(1));
  std::vector<double> ratios;
  for (int i = 0; i < rounds; ++i) {
    // New nodes in each round: without a store their memory would be full after some.
    Node first(0);
    Node second(1);
    second.start(first);
    first.start(second);
    first.wait_for_link();
    const double local = run_client(binary, first.url(), near, seconds);
    const double forwarded = run_client(binary, first.url(), far, seconds);
    ratios.push_back(forwarded / local);
    std::printf("local %.0f/s, forwarded %.0f/s, ratio %.2f\n", local, forwarded, ratios.back());
  }
  std::ranges::sort(ratios);
  std::printf("F4 forwarded relative to local: %.2f (%.2f-%.2f)\n", ratios[ratios.size() / 2],
              ratios.front(), ratios.back());
  return 0;
}

}  // namespace
}  // namespace stanchion

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: fleet_bench BINARY [ROUNDS [SECONDS]]\n");
    return 2;
  }
  return stanchion::measure(argv[1], argc > 2 ? std::atoi(argv[2]) : 5, argc > 3 ? argv[3] : "3");
}
