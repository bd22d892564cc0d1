// What kind of world a seed makes: how many shards, threads and clients, which queues with which
// settings, and which faults how often. Every world leaves something out, because a fault that is
// always present hides what only happens without it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/ids.h"
#include "model/request.h"
#include "sim/random.h"
#include "sim/server.h"

namespace stanchion::sim {

struct QueuePlan {
  std::string name;
  std::string dead_letter_queue;  // Empty: the queue is one itself, or has none.
  bool tenants = false;           // Standard: messages have groups.
  bool by_group = false;          // FIFO: deduplicates by group.
  bool content_based = false;     // FIFO
  StringMap attributes;           // As it is first created.
};

struct Plan {
  explicit Plan(Random random);

  ServerOptions server;
  int clients = 3;
  int requests = 300;
  Micros think_time = 0;
  std::vector<QueuePlan> queues;  // Dead-letter queues first.
  // Two queues of one shard have their dead-letter queues in another one; the first of these is
  // deleted at once, and the commits of the shards take different times.
  bool apart = false;

  // Percent of a client's requests, roughly.
  unsigned wipes = 0;
  unsigned settings = 0;
  unsigned moves = 0;
  unsigned repeats = 0;
  unsigned vanishing = 0;
  unsigned long_polls = 30;
  // The percentage of receives from FIFO queues that are attempts, and of these that are repeated.
  unsigned attempts = 30;
  unsigned repeated_attempts = 40;

  // Once in this many seconds, on average; 0: never.
  int crash_every = 0;
  int kill_every = 0;
  int stop_every = 0;
  int failing_disk_every = 0;
  int failing_store_every = 0;
  int full_disk_every = 0;
  int clock_jump_every = 0;
  bool wall_jumps = false;
  bool long_jumps = false;
  bool damage = false;

  // For a person.
  std::string text() const;

 private:
  void set_apart(Random& random);
};

QueueRef ref_of(const std::string& name);

// A redrive policy as SetQueueAttributes takes it.
std::string redrive_policy(const std::string& target, std::uint64_t max_receive_count);

}  // namespace stanchion::sim
