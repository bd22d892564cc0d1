#include "sim/run.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/text.h"
#include "sim/client.h"
#include "sim/plan.h"
#include "sim/world.h"

namespace stanchion::sim {
namespace {

constexpr std::uint64_t kEventsMax = 4'000'000;
constexpr std::size_t kLinesShown = 60;

std::uint64_t g_seed = 0;

// The plan depends on the seed alone; everything else also on the salt.
Plan make_plan(World& world, const Cuts& cuts) {
  Plan plan(world.random().fork());
  cuts.apply(plan);
  if (cuts.salt != 0) {
    Random salted(world.random().next() + cuts.salt);
    world.random() = salted.fork();
  }
  return plan;
}

class Run {
 public:
  Run(std::uint64_t seed, bool verbose, const Cuts& cuts)
      : world_(seed, verbose),
        plan_(make_plan(world_, cuts)),
        auditor_(world_),
        server_(world_, auditor_, plan_.server),
        random_(world_.random().fork()) {}

  void play() {
    server_.boot();
    for (const QueuePlan& queue : plan_.queues)
      ask(CreateQueue{ref_of(queue.name), queue.attributes, {}});
    schedule_faults();
    crowd_.requests_left = plan_.requests;
    for (int i = 0; i < plan_.clients; ++i) {
      clients_.push_back(std::make_unique<Client>(world_, server_, plan_, crowd_, i));
      clients_.back()->begin();
    }
    while (crowd_.busy > 0) step();
    world_.trace("peace");
    faults_ = false;
    server_.end_of_faults();
    wait(10 * kSecond);
    wait_for_move_tasks();
    empty_queues();
    auditor_.finish_drain();
    try_every_queue();
    server_.compare_with_replay();
    world_.mix(server_.fingerprint());
  }

  void fill(Outcome& outcome) const {
    outcome.hash = world_.hash();
    outcome.requests = crowd_.requests_made;
    outcome.events = world_.events_run();
    outcome.audit = auditor_.statistics();
    outcome.server = server_.statistics();
    outcome.clock_jumps = clock_jumps_;
    if (outcome.violation)
      outcome.last_lines.assign(world_.last_lines().begin(), world_.last_lines().end());
  }

 private:
  void step() {
    if (!world_.step()) throw Violation("L1: nothing is left to happen");
    if (world_.events_run() > kEventsMax) throw Violation("L1: the world does not come to rest");
    server_.watch_time();
    if (world_.events_run() % 4096 == 0) server_.compare_with_replay();
  }

  void wait(Micros time) {
    const Micros until = world_.now() + time;
    bool over = false;
    world_.schedule(time, kWorldOwner, [&] { over = true; });
    while (!over && world_.now() <= until) step();
  }

  // Without faults: the answer comes, sooner or later.
  Reply ask(const Request& request) {
    for (int tries = 0;; ++tries) {
      while (!server_.takes_calls()) step();
      std::optional<Reply> answer;
      bool over = false;
      server_.call(request, [&](const Reply* reply) {
        over = true;
        if (reply != nullptr) answer = *reply;
      });
      while (!over) step();
      if (answer) return *answer;
      if (tries > 10) throw Violation("L2: the server does not answer");
    }
  }

  // Repeats until faults end, every `seconds` on average.
  void every(int seconds, std::function<void()> what) {
    if (seconds == 0) return;
    const auto next =
        static_cast<Micros>(random_.below(static_cast<std::uint64_t>(2 * seconds * kSecond)));
    world_.schedule(next + 1, kWorldOwner, [this, seconds, what = std::move(what)]() mutable {
      if (!faults_) return;
      what();
      every(seconds, std::move(what));
    });
  }

  void schedule_faults() {
    every(plan_.crash_every, [this] {
      if (plan_.damage && random_.chance(50)) server_.damage_at_next_boot();
      if (random_.chance(30)) server_.crash_in_next_recovery();
      if (random_.chance(50)) {
        server_.crash();
      } else {
        server_.crash_within(random_.below(30));
      }
    });
    every(plan_.kill_every, [this] { server_.kill(); });
    every(plan_.stop_every, [this] {
      if (plan_.damage && random_.chance(50)) server_.damage_at_next_boot();
      server_.stop();
    });
    every(plan_.failing_disk_every, [this] {
      const std::uint64_t n = random_.between<std::uint64_t>(1, 12);
      random_.chance(50) ? server_.fail_sync(n) : server_.fail_write(n);
    });
    every(plan_.failing_store_every, [this] { server_.fail_store(); });
    every(plan_.full_disk_every, [this] {
      server_.fill_disk(random_.chance(50) ? 0 : random_.below(200 << 10));
      world_.schedule(random_.between<Micros>(1, 8) * plan_.full_disk_every * kSecond / 4,
                      kWorldOwner, [this] { server_.free_disk(); });
    });
    every(plan_.clock_jump_every, [this] { jump(); });
  }

  void jump() {
    ++clock_jumps_;
    if (plan_.wall_jumps && random_.chance(50)) return jump_wall();
    std::int64_t seconds = random_.pick<std::int64_t>({5, 40, 70, 200, 270, 310, 600});
    if (plan_.long_jumps && random_.chance(30))
      seconds = random_.pick<std::int64_t>({13 * 3600, 5 * 86'400});
    const std::int64_t millis = seconds * 1000 + static_cast<std::int64_t>(random_.below(1000));
    auditor_.time_jumped();
    if (random_.chance(15)) {
      world_.trace("time is moved by {} s", seconds);
      return server_.move_time(millis);
    }
    world_.suspend(millis);
    world_.trace("the machine was suspended for {} s", seconds);
    server_.time_has_passed(random_.chance(50));
  }

  // Clients must not notice this.
  void jump_wall() {
    std::int64_t seconds = random_.pick<std::int64_t>({1, 10, 60, 600, 7200, 2 * 86'400});
    if (random_.chance(50)) seconds = -seconds;
    world_.move_wall(seconds * 1000 + static_cast<std::int64_t>(random_.below(1000)));
    world_.trace("the wall clock jumps by {} s", seconds);
  }

  // A task may have to wait for a group that is locked for hours; it ends after 36 of them anyway.
  void wait_for_move_tasks() {
    for (Micros pause = kSecond; pause < 100 * 3600 * kSecond; pause *= 2) {
      bool running = false;
      for (const char* name : {"dead", "dead.fifo"}) {
        const Reply reply = ask(ListMessageMoveTasks{ref_of(name).arn(), 10});
        if (!reply) continue;
        for (const auto& task : std::get<ListMessageMoveTasksResult>(*reply).tasks)
          running |= task.status == MoveTaskStatus::kRunning;
      }
      if (!running) return;
      wait(pause);
    }
    throw Violation("L2: a move task never ends");
  }

  struct Counts {
    std::uint64_t visible = 0, hidden = 0;
  };
  std::optional<Counts> counts(const std::string& name) {
    const Reply reply = ask(GetQueueAttributes{ref_of(name), {"All"}});
    if (!reply) return std::nullopt;
    const auto& attributes = std::get<QueueAttributesResult>(*reply).attributes;
    const auto number = [&](const char* key) { return *parse_decimal(attributes.at(key)); };
    return Counts{number("ApproximateNumberOfMessages"),
                  number("ApproximateNumberOfMessagesNotVisible") +
                      number("ApproximateNumberOfMessagesDelayed")};
  }

  void empty_queues() {
    auditor_.begin_drain();
    Micros pause = kSecond;
    for (int round = 0; round < 400; ++round) {
      std::uint64_t left = 0;
      bool got = false;
      for (const QueuePlan& queue : plan_.queues) {
        const auto here = counts(queue.name);
        if (!here) continue;
        left += here->visible + here->hidden;
        while (here->visible > 0 && empty_once(queue.name)) got = true;
      }
      if (left == 0) return wait_for_transit();
      if (got) continue;
      wait(pause);
      pause = std::min(pause * 2, 7200 * kSecond);
    }
    throw Violation("L2: the queues cannot be emptied");
  }

  // Receives and deletes what is available at once; false if there was nothing.
  bool empty_once(const std::string& name) {
    ReceiveMessage receive;
    receive.queue = ref_of(name);
    receive.max_number_of_messages = 10;
    receive.visibility_timeout = 600;
    const Reply reply = ask(receive);
    if (!reply) return false;
    const auto& messages = std::get<ReceiveMessageResult>(*reply).messages;
    if (messages.empty()) return false;
    DeleteMessageBatch batch{ref_of(name), {}};
    for (const ReceivedMessage& message : messages)
      batch.entries.push_back({fmt::format("e{}", batch.entries.size()), message.receipt_handle});
    ask(batch);
    return true;
  }

  void wait_for_transit() {
    wait(5 * kSecond);
    for (const QueuePlan& queue : plan_.queues) {
      const auto here = counts(queue.name);
      if (here && here->visible + here->hidden > 0) return empty_queues();
    }
  }

  // After all that happened, every queue still works.
  void try_every_queue() {
    for (const QueuePlan& queue : plan_.queues) {
      if (!counts(queue.name)) continue;
      SendMessage send{ref_of(queue.name), "at-the-end", {}};
      send.message.body = fmt::format("m{}.end", crowd_.next_message++);
      if (is_fifo_name(queue.name)) {
        send.message.group_id = "end";
        send.message.deduplication_id = *send.message.body;
      }
      const Reply sent = ask(send);
      if (!sent) throw Violation("L2: a queue does not work any more: " + sent.error().message);
      // The message may be delayed for a few seconds.
      for (Micros pause = kSecond; !empty_once(queue.name); pause *= 2) {
        if (pause > 8 * kSecond) throw Violation("L2: the last message is not delivered");
        wait(pause);
      }
    }
  }

  World world_;
  const Plan plan_;
  Auditor auditor_;
  Server server_;
  Random random_;
  Crowd crowd_;
  std::vector<std::unique_ptr<Client>> clients_;
  bool faults_ = true;
  std::uint64_t clock_jumps_ = 0;
};

}  // namespace

std::string describe_world(std::uint64_t seed, const Cuts& cuts) {
  World world(seed, false);
  return make_plan(world, cuts).text();
}

Outcome run_world(std::uint64_t seed, bool verbose, const Cuts& cuts) {
  g_seed = seed;
  Outcome outcome;
  outcome.seed = seed;
  outcome.cuts = cuts;
  const auto run = std::make_unique<Run>(seed, verbose, cuts);
  try {
    run->play();
  } catch (const Violation& violation) {
    outcome.violation = violation.what();
  }
  run->fill(outcome);
  return outcome;
}

void Totals::add(const Outcome& outcome) {
  ++worlds;
  sum.requests += outcome.requests;
  sum.events += outcome.events;
  sum.clock_jumps += outcome.clock_jumps;
  const auto add_up = [](auto& into, const auto& from) {
    // Both are plain counters.
    auto* to = reinterpret_cast<std::uint64_t*>(&into);
    const auto* of = reinterpret_cast<const std::uint64_t*>(&from);
    static_assert(sizeof into % sizeof(std::uint64_t) == 0);
    for (std::size_t i = 0; i < sizeof into / sizeof(std::uint64_t); ++i) to[i] += of[i];
  };
  add_up(sum.audit, outcome.audit);
  add_up(sum.server, outcome.server);
}

std::string Totals::text() const {
  const auto& a = sum.audit;
  const auto& s = sum.server;
  return fmt::format(
      "{} worlds, {} requests, {} events\n"
      "  faults    {} power cuts, {} of them in recovery besides, {} killed, {} clean stops, {} "
      "torn "
      "tails, {} failing syncs, {} failing writes, {} failed stores, {} full disks, {} damaged "
      "segments ({} "
      "refused), "
      "{} clock jumps\n"
      "  audited   {} sends, {} deliveries, {} deletes ({} while the disk was full), {} in doubt, "
      "{} duplicates, {} dead letters, {} brought back, {} repeated attempts, {} taken back, {} "
      "empty receives, {} refused for space, {} because the store failed, {} counts, {} places in "
      "line, {} looks at {} messages\n"
      "  engines   {} boots, {} from checkpoints, {} queues of them cold, {} comparisons with "
      "replay\n"
      "  store     {} checkpoints, {} cold reads\n"
      "  at the end {} messages were found",
      worlds, sum.requests, sum.events, s.crashes, s.crashes_in_recovery, s.process_deaths,
      s.clean_stops, s.torn_tails, s.failed_syncs, s.failed_writes, s.failed_stores, s.full_disks,
      s.damages, s.damages_refused, sum.clock_jumps, a.sends, a.deliveries, a.deletes,
      a.drained_while_full, a.doubts, a.duplicates, a.dead_letters, a.redrives, a.repeated_attempts,
      s.cancels, a.empty_receives, a.refused_full, a.refused_failing, a.counts_checked,
      a.places_compared, a.peeks, a.sightings, s.boots, s.recoveries_from_store, s.cold_boots,
      s.replays_compared, s.checkpoints, s.cold_reads, a.found_at_end);
}

std::string report(const Outcome& outcome) {
  std::string text = fmt::format("seed {}: {}\n", outcome.seed, *outcome.violation);
  // The tag that the sentence names, if it names one: "m17".
  const std::string& sentence = *outcome.violation;
  std::string tag;
  for (std::size_t at = sentence.find(" m"); at != std::string::npos && tag.empty();
       at = sentence.find(" m", at + 1)) {
    const std::size_t end = sentence.find_first_not_of("0123456789", at + 2);
    if (end > at + 2 && end != std::string::npos) tag = sentence.substr(at + 1, end - at - 1);
  }
  std::vector<const std::string*> shown;
  for (const std::string& line : outcome.last_lines) {
    const std::size_t at = tag.empty() ? std::string::npos : line.find(tag + " ");
    if (at != std::string::npos) shown.push_back(&line);
  }
  if (shown.size() > kLinesShown)
    shown.erase(shown.begin(), shown.end() - static_cast<std::ptrdiff_t>(kLinesShown));
  for (const std::string* line : shown) text += fmt::format("  {}\n", *line);
  text += "  …\n";
  const std::size_t tail = std::min<std::size_t>(outcome.last_lines.size(), 15);
  for (std::size_t i = outcome.last_lines.size() - tail; i < outcome.last_lines.size(); ++i)
    text += fmt::format("  {}\n", outcome.last_lines[i]);
  if (outcome.cuts.empty())
    return text + fmt::format(
                      "See it again with: simulate --seed {} --verbose\n"
                      "Make it smaller with: simulate --seed {} --shrink\n",
                      outcome.seed, outcome.seed);
  return text + fmt::format("See it again with: simulate --seed {} --cut {} --verbose\n",
                            outcome.seed, outcome.cuts.text());
}

void name_seed_on_abort() {
  std::signal(SIGABRT, [](int) {
    // Only write() is safe in a signal handler, so the number is formatted by hand.
    char line[64] = "simulation: the seed was ";
    std::size_t size = 25;
    char digits[20];
    std::size_t count = 0;
    for (std::uint64_t n = g_seed; n > 0 || count == 0; n /= 10)
      digits[count++] = static_cast<char>('0' + n % 10);
    while (count > 0) line[size++] = digits[--count];
    line[size++] = '\n';
    std::fwrite(line, 1, size, stderr);
    std::_Exit(134);
  });
}

}  // namespace stanchion::sim
