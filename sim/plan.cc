#include "sim/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "broker/routing.h"

namespace stanchion::sim {

QueueRef ref_of(const std::string& name) {
  return {"000000000000", "us-east-1", name};
}

std::string redrive_policy(const std::string& target, std::uint64_t max_receive_count) {
  return fmt::format(R"({{"deadLetterTargetArn":"{}","maxReceiveCount":{}}})", ref_of(target).arn(),
                     max_receive_count);
}

namespace {

QueuePlan plan_queue(Random& random, std::string name, std::string dead_letter_queue) {
  QueuePlan queue;
  queue.name = std::move(name);
  queue.dead_letter_queue = std::move(dead_letter_queue);
  const bool fifo = is_fifo_name(queue.name);
  auto& attributes = queue.attributes;
  attributes["VisibilityTimeout"] = fmt::to_string(random.pick<int>({1, 3, 10, 30}));
  attributes["DelaySeconds"] = fmt::to_string(random.pick<int>({0, 0, 0, 2}));
  attributes["MessageRetentionPeriod"] =
      fmt::to_string(random.pick<int>({60, 300, 345'600, 345'600, 1'209'600}));
  if (fifo) {
    queue.by_group = random.chance(30);
    queue.content_based = random.chance(50);
    attributes["FifoQueue"] = "true";
    attributes["ContentBasedDeduplication"] = queue.content_based ? "true" : "false";
    attributes["DeduplicationScope"] = queue.by_group ? "messageGroup" : "queue";
  }
  if (!queue.dead_letter_queue.empty() && random.chance(70))
    attributes["RedrivePolicy"] =
        redrive_policy(queue.dead_letter_queue, random.between<std::uint64_t>(1, 3));
  return queue;
}

}  // namespace

Plan::Plan(Random random) {
  server.shards = random.between<std::uint32_t>(1, 4);
  server.loops = random.between(1, 3);
  server.commit_latency = random.pick<Micros>({100, 2 * kMillisecond, 20 * kMillisecond});
  server.segments = {.segment_size = random.pick<std::uint64_t>({96 << 10, 256 << 10}),
                     .reserve_size = 80 << 10,
                     .append_size_max = 36 << 10,
                     .zero_ahead = random.pick<std::uint64_t>({0, 4 << 10})};
  // In most worlds only a few messages fit in memory, and checkpoints never cease.
  server.has_store = random.chance(80);
  server.keeping = {.memory = random.pick<std::size_t>({200, 2'000, 20'000, 1 << 30}),
                    .checkpoint_bytes = random.pick<std::uint64_t>({300, 3'000, 100'000, 32 << 20}),
                    .checkpoint_interval = Duration(random.pick<int>({500, 5'000, 30'000}))};
  server.memory = {.chunk_messages = random.between<std::uint32_t>(1, 8),
                   .chunk_bytes = random.pick<std::uint32_t>({300, 3'000, 256 << 10}),
                   .read_ahead = random.pick<std::uint32_t>({0, 3, 512}),
                   .near_messages = random.pick<std::uint32_t>({0, 2, 1024})};
  // In half of them the numbers of messages on their way to other queues are few.
  if (server.memory.chunk_messages % 2 == 0) server.memory.transfer_numbers = 4;
  // In a third of them sends wait when some records are on their way to the journal.
  if (server.memory.chunk_messages % 3 == 0) server.keeping.unwritten = 1'000;
  server.background_latency = random.pick<Micros>({100, 2 * kMillisecond, 50 * kMillisecond});
  clients = random.between(1, 6);
  requests = random.between(100, 700);
  think_time = random.pick<Micros>({0, 5 * kMillisecond, 200 * kMillisecond, 2 * kSecond});

  queues.push_back(plan_queue(random, "dead", ""));
  queues.push_back(plan_queue(random, "dead.fifo", ""));
  queues.push_back(plan_queue(random, "orders", "dead"));
  queues.push_back(plan_queue(random, "tenants", "dead"));
  queues.back().tenants = true;
  queues.push_back(plan_queue(random, "steps.fifo", "dead.fifo"));
  queues.push_back(plan_queue(random, "lanes.fifo", "dead.fifo"));

  const auto sometimes = [&](unsigned percent, unsigned value) {
    return random.chance(percent) ? value : 0;
  };
  const auto every = [&](unsigned percent, int least, int most) {
    return random.chance(percent) ? random.between(least, most) : 0;
  };
  wipes = sometimes(40, 2);
  settings = sometimes(50, 3);
  moves = sometimes(60, random.pick<unsigned>({4, 4, 12}));
  repeats = sometimes(60, 20);
  vanishing = sometimes(50, 20);
  long_polls = random.pick<unsigned>({0, 30, 70});
  attempts = random.pick<unsigned>({0, 30, 30, 80});
  repeated_attempts = random.pick<unsigned>({40, 80});
  // The length of a world, and of its faults, follows from how often its clients make requests.
  const int scale = think_time >= kSecond ? 40 : think_time >= 100 * kMillisecond ? 6 : 1;
  crash_every = every(60, 1, 5) * scale;
  kill_every = every(30, 2, 8) * scale;
  stop_every = every(30, 2, 8) * scale;
  failing_disk_every = every(40, 2, 8) * scale;
  failing_store_every = every(30, 2, 8) * scale;
  full_disk_every = every(35, 2, 6) * scale;
  clock_jump_every = every(40, 1, 6) * scale;
  wall_jumps = server.wall_jumps = random.chance(40);
  long_jumps = random.chance(30);
  damage = random.chance(40);
  // What came later is drawn last, so that the other worlds stay as they were.
  apart = random.chance(12);
  if (apart) set_apart(random);
  server.decision_messages = random.pick<std::size_t>(
      {2, 3, 10, limits::kDecisionMessagesMax, limits::kDecisionMessagesMax});
}

// The auditor gives up a message that may have been in a queue which was wiped, so nothing else is:
// the one dead-letter queue is deleted before any message is sent.
void Plan::set_apart(Random& random) {
  server.shards = std::max(server.shards, 2U);
  const auto dead = static_cast<std::uint32_t>(random.below(server.shards));
  const std::uint32_t living = (dead + 1) % server.shards;
  for (std::uint32_t i = 0; i < server.shards; ++i)
    server.commit_latencies.push_back(
        i == living ? random.pick<Micros>({20 * kMillisecond, 100 * kMillisecond})
                    : random.pick<Micros>({100, 2 * kMillisecond, 20 * kMillisecond}));
  // A queue's shard depends on its name.
  const auto name_in = [&](std::uint32_t shard, const char* stem) {
    for (int i = 1;; ++i)
      if (std::string name = fmt::format("{}-{}", stem, i);
          broker::shard_of(ref_of(name), server.shards) == ShardIndex(shard))
        return name;
  };
  queues.clear();
  queues.push_back(plan_queue(random, name_in(dead, "dead-left"), ""));
  queues.push_back(plan_queue(random, name_in(dead, "dead-right"), ""));
  queues.push_back(plan_queue(random, name_in(living, "left"), queues[0].name));
  queues.push_back(plan_queue(random, name_in(living, "right"), queues[1].name));
  for (QueuePlan& queue : queues) {
    queue.attributes["DelaySeconds"] = "0";
    queue.attributes["VisibilityTimeout"] = "1";
    queue.attributes["MessageRetentionPeriod"] = "345600";
    if (!queue.dead_letter_queue.empty())
      queue.attributes["RedrivePolicy"] = redrive_policy(queue.dead_letter_queue, 1);
  }
  think_time = random.pick<Micros>({0, 5 * kMillisecond});
  clients = random.between(3, 6);
  requests = random.between(300, 700);
  wipes = settings = moves = 0;
  clock_jump_every = 0;
  crash_every = random.between(1, 2);
}

std::string Plan::text() const {
  std::string text = fmt::format(
      "  {} requests of {} clients who think for {} ms; {} shards on {} loops; a commit takes {} "
      "us, "
      "work in the background {} us\n",
      requests, clients, think_time / kMillisecond, server.shards, server.loops,
      server.commit_latency, server.background_latency);
  if (server.has_store)
    text += fmt::format(
        "  memory {}, checkpoints every {} bytes or {} ms, chunks of {} messages or {} bytes\n",
        server.keeping.memory, server.keeping.checkpoint_bytes,
        server.keeping.checkpoint_interval.count(), server.memory.chunk_messages,
        server.memory.chunk_bytes);
  if (apart)
    text += fmt::format("  commits take up to {} us, by shard\n",
                        fmt::join(server.commit_latencies, ", "));
  text += fmt::format("  a decision moves up to {} messages\n", server.decision_messages);
  for (const QueuePlan& queue : queues) {
    text += fmt::format("  queue {}", queue.name);
    for (const auto& [key, value] : queue.attributes) text += fmt::format(" {}={}", key, value);
    text += "\n";
  }
  const auto add = [&](const char* name, auto value) {
    if (value != 0) text += fmt::format(" {} {}", name, value);
  };
  text += "  percent:";
  add("wipes", wipes), add("settings", settings), add("moves", moves), add("repeats", repeats);
  add("vanishing", vanishing), add("long polls", long_polls), add("attempts", attempts);
  add("of them repeated", attempts == 0 ? 0 : repeated_attempts);
  text += "\n  every so many seconds:";
  add("crash", crash_every), add("kill", kill_every), add("stop", stop_every);
  add("failing disk", failing_disk_every), add("failing store", failing_store_every);
  add("full disk", full_disk_every), add("clock jump", clock_jump_every);
  add("of the wall clock too", clock_jump_every == 0 ? 0 : static_cast<int>(wall_jumps));
  return text + "\n";
}

}  // namespace stanchion::sim
