#include "cli/server.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "broker/broker.h"
#include "broker/data_directory.h"
#include "journal/local_journal.h"
#include "journal/memory_journal.h"
#include "net/http_server.h"
#include "net/reactor.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "os/real_directory.h"
#include "service/authenticator.h"
#include "service/front_door.h"
#include "service/reactor_loop.h"
#include "service/sqs_endpoint.h"
#include "service/virtual_clock.h"

namespace stanchion::cli {
namespace {

constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;
constexpr int kExitJournalFailed = 70;
// How long a drain may take before connections are cut; longer than any exchange should last.
constexpr std::chrono::seconds kDrainTimeMax(10);

int report(const Failure& failure) {
  fmt::print(stderr, "stanchion: {}\n", failure.message);
  return kExitFailed;
}

// A failed journal means that nothing may be acknowledged any more, by any thread, from this
// instant: so no destructors, no waiting for others.
[[noreturn]] void end_after_journal_failure(const Failure& failure) {
  fmt::print(stderr,
             "stanchion: the journal could not be written: {}. Nothing that was acknowledged is "
             "lost. Stopping; start again once the disk is well.\n",
             failure.message);
  std::fflush(nullptr);
  _exit(kExitJournalFailed);
}

// The data directory and its open parts, in the order in which they must be destroyed.
struct Storage {
  std::unique_ptr<os::Directory> root;
  std::unique_ptr<broker::DataDirectory> data;
  std::vector<std::unique_ptr<os::Directory>> shards;
};

Result<std::uint32_t> open_storage(const ServeSettings& settings, std::uint32_t shards_if_new,
                                   Storage& storage) {
  if (settings.in_memory) return shards_if_new;
  auto root = os::open_real_directory(settings.data);
  if (!root) return std::unexpected(root.error());
  storage.root = std::move(*root);
  auto data = broker::DataDirectory::open(*storage.root, shards_if_new);
  if (!data) return std::unexpected(data.error());
  storage.data = std::make_unique<broker::DataDirectory>(std::move(*data));
  const std::uint32_t count = storage.data->shard_count();
  for (std::uint32_t i = 0; i < count; ++i) {
    auto directory = storage.data->shard_directory(ShardIndex(i));
    if (!directory) return std::unexpected(directory.error());
    storage.shards.push_back(std::move(*directory));
  }
  return count;
}

Result<std::unique_ptr<broker::Broker>> open_broker(const ServeSettings& settings, Storage& storage,
                                                    std::uint32_t shards, os::Clock& clock,
                                                    os::Entropy& entropy) {
  const auto open_journal = [&](ShardIndex shard) -> Result<std::unique_ptr<journal::Journal>> {
    if (settings.in_memory) return std::make_unique<journal::MemoryJournal>();
    auto opened = journal::LocalJournal::open(*storage.shards[shard.value()], {shard, shards}, {},
                                              entropy, clock);
    if (!opened) return std::unexpected(opened.error());
    if (const auto& recovery = (*opened)->recovery(); recovery.torn_bytes > 0)
      fmt::print(stderr,
                 "stanchion: cut a torn write of {} bytes off the end of {} (nothing in it was "
                 "acknowledged)\n",
                 recovery.torn_bytes, recovery.torn_file);
    return std::unique_ptr<journal::Journal>(std::move(*opened));
  };
  return broker::Broker::open({.shards = shards, .strict = settings.strict}, open_journal, clock,
                              entropy);
}

sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

// Lets what is under way finish, so that every acknowledged request is also answered.
void drain(broker::Broker& broker, net::HttpServer& server) {
  broker.drain();
  auto drained = std::make_shared<std::promise<void>>();
  auto done = drained->get_future();
  server.drain([drained] { drained->set_value(); });
  done.wait_for(kDrainTimeMax);
}

void print_ready(const ServeSettings& settings, std::uint16_t port, std::uint32_t shards,
                 double millis) {
  const bool v6 = settings.listen.host.find(':') != std::string::npos;
  const std::string url = fmt::format(
      "http://{}:{}", v6 ? "[" + settings.listen.host + "]" : settings.listen.host, port);
  fmt::print("stanchion {} · {} · {} shard{}\n", STANCHION_VERSION,
             settings.in_memory ? "in memory, nothing survives a stop" : "data in " + settings.data,
             shards, shards == 1 ? "" : "s");
  fmt::print("try: aws --endpoint-url {} --region {} sqs create-queue --queue-name hello\n", url,
             settings.region);
  fmt::print("ready {} after {:.0f} ms\n", url, millis);
  std::fflush(stdout);
}

}  // namespace

int serve(const ServeSettings& settings) {
  const auto began = std::chrono::steady_clock::now();
  if (const Status ok = check(settings); !ok) return report(ok.error());

  // Blocked before any thread starts, so that only the wait below takes them.
  const sigset_t signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  os::SystemClock system_clock;
  service::VirtualClock virtual_clock(system_clock);
  os::Clock& clock = settings.virtual_time ? static_cast<os::Clock&>(virtual_clock) : system_clock;
  os::SystemEntropy entropy;
  net::ReactorPool pool({.reactors = settings.threads});
  const std::uint32_t threads = static_cast<std::uint32_t>(pool.size());
  Storage storage;
  const auto shards =
      open_storage(settings, settings.shards != 0 ? settings.shards : threads, storage);
  if (!shards) return report(shards.error());
  auto broker = open_broker(settings, storage, *shards, clock, entropy);
  if (!broker) return report(broker.error());

  std::vector<std::unique_ptr<service::ReactorLoop>> loops;
  std::vector<broker::Loop*> loop_pointers;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    loops.push_back(std::make_unique<service::ReactorLoop>(pool[i]));
    loop_pointers.push_back(loops.back().get());
  }
  service::Authenticator authenticator(
      {settings.account, settings.region, settings.separate_regions}, pool.size(), system_clock);
  service::SqsEndpoint endpoint({}, **broker, authenticator, clock, loops);
  service::FrontDoor door(endpoint, **broker, settings.virtual_time ? &virtual_clock : nullptr,
                          loops);
  if (const Status started = pool.start(); !started) return report(started.error());
  std::promise<void> shards_started;
  (*broker)->start(
      loop_pointers, [&] { shards_started.set_value(); }, end_after_journal_failure);
  shards_started.get_future().wait();
  auto server = net::HttpServer::start(
      pool, {.host = settings.listen.host, .port = settings.listen.port}, door);
  if (!server) {
    pool.stop();
    return report(server.error());
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  print_ready(settings, (*server)->port(), *shards, took.count());

  int signal = 0;
  sigwait(&signals, &signal);
  fmt::print("stopping\n");
  std::fflush(stdout);
  door.set_draining();
  drain(**broker, **server);
  (*server)->stop();
  pool.stop();
  if (const Status closed = (*broker)->close(); !closed) return report(closed.error());
  return kExitOk;
}

}  // namespace stanchion::cli
