#include "sim/game.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"

namespace stanchion::sim {
namespace {

// After the last request of the clients, or between two of them.
constexpr std::uint64_t kEventsMax = 4'000'000;
constexpr Micros kLongWait = 60 * kSecond;
constexpr Duration kLongestAwaited = std::chrono::minutes(10);

}  // namespace

Game::Game(World& world, const Plan& plan, Auditor& auditor, Service& service,
           std::function<void()> stepped)
    : world_(world),
      plan_(plan),
      auditor_(auditor),
      service_(service),
      stepped_(std::move(stepped)),
      random_(world.random().fork()) {}

void Game::create_queues() {
  for (const QueuePlan& queue : plan_.queues)
    ask(CreateQueue{ref_of(queue.name), queue.attributes, {}});
  // What leaves for this one is refused.
  if (plan_.apart) ask(DeleteQueue{ref_of(plan_.queues.front().name)});
}

void Game::let_clients_play() {
  crowd_.requests_left = plan_.requests;
  for (int i = 0; i < plan_.clients; ++i) {
    clients_.push_back(std::make_unique<Client>(world_, service_, plan_, crowd_, i));
    clients_.back()->begin();
  }
  for (int left = crowd_.requests_left; crowd_.busy > 0; step()) {
    if (crowd_.requests_left == left) continue;
    left = crowd_.requests_left;
    progress_at_ = world_.events_run();
  }
}

void Game::empty_everything() {
  wait_for_move_tasks();
  empty_queues();
  auditor_.finish_drain();
  try_every_queue();
}

void Game::step() {
  if (!world_.step()) throw Violation("L1: nothing is left to happen");
  if (world_.events_run() > progress_at_ + kEventsMax)
    throw Violation("L1: the world does not come to rest");
  stepped_();
}

void Game::wait(Micros time) {
  if (skip_ && time > 2 * kLongWait) {
    skip_(time - kLongWait);
    time = kLongWait;
  }
  const Micros until = world_.now() + time;
  bool over = false;
  world_.schedule(time, kWorldOwner, [&] { over = true; });
  while (!over && world_.now() <= until) step();
}

Reply Game::ask(const Request& request) {
  return ask_each_time([&] { return request; });
}

Reply Game::ask_each_time(const std::function<Request()>& make) {
  for (int tries = 0;; ++tries) {
    while (!service_.takes_calls()) step();
    std::optional<Reply> answer;
    bool over = false;
    service_.call(make(), [&](const Reply* reply) {
      over = true;
      if (reply != nullptr) answer = *reply;
    });
    while (!over) step();
    if (answer) return *answer;
    if (tries > 10) throw Violation("L2: the server does not answer");
  }
}

void Game::every(int seconds, std::function<void()> what) {
  if (seconds == 0) return;
  const auto next =
      static_cast<Micros>(random_.below(static_cast<std::uint64_t>(2 * seconds * kSecond)));
  world_.schedule(next + 1, kWorldOwner, [this, seconds, what = std::move(what)]() mutable {
    if (!faults_) return;
    what();
    every(seconds, std::move(what));
  });
}

// A task may have to wait for a group that is locked for hours; it ends after 36 of them anyway.
void Game::wait_for_move_tasks() {
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

void Game::receive_around_expiry() {
  if (!random_.chance(30)) return;
  for (int i = 0; i < 10; ++i) {
    const auto expiry = auditor_.next_expiry();
    if (!expiry) return;
    const auto spread = (expiry->hi - expiry->lo).count() + 2;
    const Instant when = expiry->lo + Duration(random_.between(-spread, spread));
    const Duration ahead = std::max(when - world_.clock(), Duration(1));
    if (ahead > kLongestAwaited) return;
    wait(std::chrono::microseconds(ahead).count());
    empty_once(expiry->queue);
  }
}

std::optional<Game::Counts> Game::counts(const std::string& name) {
  const Reply reply = ask(GetQueueAttributes{ref_of(name), {"All"}});
  if (!reply) return std::nullopt;
  const auto& attributes = std::get<QueueAttributesResult>(*reply).attributes;
  const auto number = [&](const char* key) { return *parse_decimal(attributes.at(key)); };
  return Counts{number("ApproximateNumberOfMessages"),
                number("ApproximateNumberOfMessagesNotVisible") +
                    number("ApproximateNumberOfMessagesDelayed")};
}

void Game::empty_queues() {
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
bool Game::empty_once(const std::string& name) {
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

void Game::wait_for_transit() {
  wait(5 * kSecond);
  for (const QueuePlan& queue : plan_.queues) {
    const auto here = counts(queue.name);
    if (here && here->visible + here->hidden > 0) return empty_queues();
  }
}

// After all that happened, every queue still works.
void Game::try_every_queue() {
  for (const QueuePlan& queue : plan_.queues) {
    if (!counts(queue.name)) continue;
    const auto send_one = [&] {
      SendMessage send{ref_of(queue.name), "at-the-end", {}};
      send.message.body = fmt::format("m{}.end", crowd_.next_message++);
      if (is_fifo_name(queue.name)) {
        send.message.group_id = "end";
        send.message.deduplication_id = *send.message.body;
      }
      return send;
    };
    const Reply sent = ask_each_time(send_one);
    if (!sent) throw Violation("L2: a queue does not work any more: " + sent.error().message);
    // The message may be delayed for a few seconds.
    for (Micros pause = kSecond; !empty_once(queue.name); pause *= 2) {
      if (pause > 8 * kSecond) throw Violation("L2: the last message is not delivered");
      wait(pause);
    }
  }
}

}  // namespace stanchion::sim
