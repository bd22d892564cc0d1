// The options of `stanchion bench`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/tls_client.h"

namespace stanchion::load {

enum class Workload {
  kSend,       // SendMessage or SendMessageBatch.
  kReceive,    // Fill, receive (measured), delete; again and again.
  kDelete,     // Fill, receive, delete (measured); again and again.
  kCycle,      // Each connection sends, receives and deletes in turn.
  kWakeUp,     // A parked long poll, and the send that wakes it.
  kHttp,       // Posts a body to any URL: the ceiling of an HTTP server.
  kFdatasync,  // Appends to a file and syncs: the ceiling of durability.
};

enum class Protocol { kJson, kQuery };

struct Options {
  Workload workload = Workload::kCycle;
  std::string endpoint = "http://127.0.0.1:9324";
  Protocol protocol = Protocol::kJson;
  std::size_t connections = 64;
  std::size_t body_size = 100;
  std::size_t batch = 1;
  std::size_t queues = 1;
  bool fifo = false;
  std::size_t groups = 0;        // 0: none on standard queues, 1 on FIFO queues.
  std::size_t wait = 20;         // Seconds that a receive of a cycle waits for messages.
  double rate = 0;               // Requests (or cycles) per second; 0: closed loop.
  double seconds = 10;           // How long to measure.
  double warm_up = 1;            // How long to run before measuring.
  std::uint64_t count = 0;       // Messages to measure instead of a time; 0: by time.
  std::uint64_t backlog = 0;     // Messages to send, and to leave waiting, before measuring.
  std::uint64_t round = 50'000;  // Messages of one round of receive and delete, per queue.
  std::optional<std::size_t> check_every = {};  // MD5 of every n-th body; 0: of none.

  std::string queue = {};  // Use or create the queue of this name instead of bench-… queues.
  bool keep = false;       // Do not delete the queues at the end.
  bool drain = false;      // Receive and delete what is left, and compare it with what was sent.

  bool anonymous = false;
  std::string access_key_id = {};  // Empty: one prepared signature that belongs to nobody.
  std::string secret = {};
  std::string session_token = {};
  std::string region = "us-east-1";
  net::TlsTrust trust = {};

  std::string file = {};       // For kFdatasync: the directory to write to.
  std::string http_body = {};  // For kHttp: the body to post; empty: that of a send.

  bool json = false;
  bool quiet = false;
  bool busy_poll = false;  // Never sleep: this process has a core to itself.

  bool uses_queues() const {
    return workload != Workload::kHttp && workload != Workload::kFdatasync;
  }
  std::size_t group_count() const { return fifo && groups == 0 ? 1 : groups; }
};

std::string_view name_of(Workload workload);
std::optional<Workload> workload_named(std::string_view name);

// Contradictions in the options, as text for the user.
std::vector<std::string> find_problems(const Options& options);

}  // namespace stanchion::load
