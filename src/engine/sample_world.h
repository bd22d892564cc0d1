// An engine whose store has every kind of entry, and a test of any store, damaged or not: loading
// refuses it, or gives an engine whose invariants hold.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "base/check.h"
#include "engine/engine_test_kit.h"

namespace stanchion::engine {

using Entries = std::map<std::string, std::string, std::less<>>;

inline Engine::ScanStore scan_of(const Entries& entries) {
  return [&entries](const KeyRange& range, const auto& visit) -> Status {
    for (auto it = entries.lower_bound(range.begin); it != entries.end() && it->first < range.end;
         ++it)
      if (!visit(it->first, it->second)) break;
    return {};
  };
}

inline Entries saved_of(Engine& engine, Instant now) {
  engine.begin_checkpoint(Position(1000), now);
  while (!engine.save_some(1000)) continue;
  const Batch batch = engine.take_checkpoint();
  engine.checkpoint_is_durable();
  Entries entries;
  batch.for_each_put([&](std::string_view key, std::string_view head, const ContentPtr& content) {
    std::string& value = entries[std::string(key)] = head;
    if (content != nullptr) value += content->encoded();
  });
  return entries;
}

class SampleWorld {
 public:
  // Small chunks: a few messages make several, one by one and packed.
  static Options options() {
    return {.shard = ShardIndex(0),
            .strict = true,
            .memory = {.chunk_messages = 4, .chunk_bytes = 300, .read_ahead = 4}};
  }

  SampleWorld() : world(options().strict, options().memory) {
    world.ask(CreateQueue{ref("gone"), {}, {}});
    world.ask(DeleteQueue{ref("gone")});
    make_queue("dead");
    make_queue("dead.fifo");
    make_queue("plain", "dead");
    make_queue("line.fifo", "dead.fifo");
    make_queue("turns.fifo");
    make_queue("full");
    for (int i = 0; i < 12; ++i) {
      for (const char* name : {"plain", "line.fifo", "turns.fifo", "full"}) send(name, i);
    }
    // Its first group goes to the back of the line.
    receive("turns.fifo", 1, 0);
    // Some have arrived as dead letters, one of which is being moved back.
    for (int i = 0; i < 2; ++i)
      for (const char* name : {"plain", "line.fifo"}) receive(name, 3, 0);
    task = world.get<StartMessageMoveTaskResult>(StartMessageMoveTask{ref("dead").arn(), {}, 1})
               .task_handle;
    world.tick(std::chrono::seconds(2));
    // Others are in flight, leaving, or delayed.
    receive("plain", 2, 600);
    receive("line.fifo", 2, 600, "attempt");
    receive("line.fifo", 2, 0);
    world.set_road(TestWorld::Road::kClosed);
    for (const char* name : {"plain", "line.fifo"}) receive(name, 10, 0);
    world.ask(SetQueueAttributes{ref("line.fifo"), {{"DelaySeconds", "60"}}});
    for (int i = 20; i < 24; ++i) {
      send("plain", i, i % 2 == 0 ? 60 : 0);
      send("line.fifo", i);
    }
  }

  static QueueRef ref(const std::string& name) { return TestWorld::ref(name); }

  TestWorld world;
  std::string receipt;  // Of a message in flight.
  std::string task;     // The handle of a move task.

 private:
  static bool is_fifo(const std::string& name) { return name.ends_with(".fifo"); }

  void make_queue(const std::string& name, const std::string& dead = "") {
    StringMap attributes;
    if (is_fifo(name)) attributes["FifoQueue"] = "true";
    if (!dead.empty())
      attributes["RedrivePolicy"] =
          R"({"deadLetterTargetArn":")" + ref(dead).arn() + R"(","maxReceiveCount":1})";
    const Reply made = world.ask(CreateQueue{ref(name), attributes, {{"team", "red"}}});
    CHECK(made.has_value(), "the queue is made");
  }

  void send(const std::string& name, int number, int delay = 0) {
    SendMessage request{ref(name), "me", {}};
    request.message.body = "body-" + std::to_string(number);
    request.message.group_id = std::string(1, static_cast<char>('a' + number % 3));
    if (is_fifo(name)) {
      request.message.deduplication_id = std::to_string(number);
    } else if (delay > 0) {
      request.message.delay_seconds = delay;
    }
    CHECK(world.ask(request).has_value(), "the message is sent");
  }

  void receive(const std::string& name, int most, int timeout, const std::string& attempt = "") {
    ReceiveMessage request;
    request.queue = ref(name);
    request.max_number_of_messages = most;
    request.visibility_timeout = timeout;
    if (!attempt.empty()) request.attempt_id = attempt;
    const auto found = world.get<ReceiveMessageResult>(request);
    if (timeout > 0 && !found.messages.empty()) receipt = found.messages.front().receipt_handle;
  }
};

// False if the store does not have what the request needs.
inline bool ask_of(Engine& engine, const Entries& entries, const Request& request, Instant now) {
  for (int tries = 0; tries < 100; ++tries) {
    if (!engine.read_wanted(scan_of(entries), now)) return false;
    engine.advance(now);
    RecordWriter record(now);
    Decision decision{now, Random({1, 2}), record};
    static_cast<void>(engine.execute(request, {}, decision));
    if (!decision.blocked) return true;
  }
  CHECK(false, "a request is executed when all that it asked for was read");
}

// Receives at once, when messages in flight or delayed are due, and when everything has expired.
inline void use(Engine& engine, const Entries& entries, Instant now) {
  using namespace std::chrono_literals;
  std::vector<QueueRef> queues;
  engine.for_each_queue([&](const Queue& queue) { queues.push_back(queue.ref); });
  for (const Duration later : {Duration(0s), Duration(601s), Duration(360h)}) {
    for (const QueueRef& queue : queues) {
      ReceiveMessage receive;
      receive.queue = queue;
      receive.max_number_of_messages = 10;
      if (!ask_of(engine, entries, receive, now + later)) return;
    }
    RecordWriter record(now + later);
    Decision decision{now + later, Random({1, 2}), record};
    engine.move_messages(decision);
    engine.check_invariants();
  }
}

// False if the store was refused. The process ends if a check fails.
inline bool try_store(const Entries& entries, Instant now) {
  Engine engine(SampleWorld::options());
  Instant at;
  const auto position = engine.load(scan_of(entries), at);
  if (!position || *position == Position()) return false;
  engine.check_invariants();
  // The loaded state can be written, and loading that again gives an engine as well.
  Entries written = entries;
  for (auto& [key, value] : saved_of(engine, at)) written[key] = value;
  Engine again(SampleWorld::options());
  CHECK(again.load(scan_of(written), at).has_value(), "what was written can be loaded");
  use(engine, entries, std::max(at, now));
  return true;
}

}  // namespace stanchion::engine
