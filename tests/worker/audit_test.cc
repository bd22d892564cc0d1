// Workers that are killed, servers that are restarted, jobs that throw, hang and take too long: each
// effect is written to a file, and the file is audited.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "client/batcher.h"
#include "os/temporary_directory.h"
#include "tests/worker/victim_process.h"
#include "tests/worker/worker_kit.h"
#include "worker/pause_watch.h"

namespace stanchion::worker {
namespace {

using std::chrono::milliseconds;

// Longer than a busy machine may keep a worker from extending it.
constexpr std::chrono::seconds kVisibility{5};

class WorkerAudit : public testing::Test {
 protected:
  explicit WorkerAudit(bool keeps_data = false)
      : keeps_data_(keeps_data),
        server_(std::make_unique<ServerProcess>(arguments())),
        port_(server_->port()) {
    client_.emplace(
        std::move(*Client::open({.endpoint = server_->url(),
                                 .retry = {.attempts_max = 20, .delay_max = milliseconds(200)}})));
  }

  std::vector<std::string> arguments() const {
    if (!keeps_data_) return {"--in-memory"};
    return {"--data", data_.path() + "/data"};
  }
  std::string effects_path() const { return data_.path() + "/effects"; }

  std::string create(const std::string& name, client::StringMap attributes = {}) {
    auto made = client_->create_queue({.queue_name = name, .attributes = std::move(attributes)});
    if (!made) ADD_FAILURE() << made.error().to_string();
    return made ? made->queue_url : "";
  }
  void send(const std::string& url, const std::string& body, const std::string& group = {}) {
    client::SendMessageRequest request{.queue_url = url, .message_body = body};
    if (!group.empty()) {
      request.message_group_id = group;
      request.message_deduplication_id = group + body;
    }
    auto sent = client_->send_message(std::move(request));
    EXPECT_TRUE(sent) << sent.error().to_string();
  }
  VictimProcess start_worker(const std::string& url, const std::string& kind = "worker") {
    return VictimProcess(
        {kind, server_->url(), url, std::to_string(kVisibility.count()), effects_path()});
  }
  void kill(VictimProcess& victim) {
    const pid_t pid = victim.pid();
    victim.kill();
    const int file = ::open(effects_path().c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);
    const std::string line = std::to_string(pid) + " killed - - 0\n";
    EXPECT_EQ(::write(file, line.data(), line.size()), static_cast<ssize_t>(line.size()));
    ::close(file);
  }
  bool wait_for(const std::function<bool(const std::vector<Effect>&)>& holds) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!holds(read_effects(effects_path()))) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return true;
  }
  std::vector<std::string> take_all(const std::string& url) {
    std::vector<std::string> bodies;
    while (true) {
      auto received = client_->receive_message({.queue_url = url, .max_number_of_messages = 10});
      if (!received || received->messages.empty()) return bodies;
      for (const auto& message : received->messages) bodies.push_back(message.body);
    }
  }

  const os::TemporaryDirectory data_;
  const bool keeps_data_;
  std::unique_ptr<ServerProcess> server_;
  const std::string port_;
  std::optional<Client> client_;
};

class WorkerAuditOfRestarts : public WorkerAudit {
 protected:
  WorkerAuditOfRestarts() : WorkerAudit(true) {}

  void restart_server() {
    server_->kill();
    server_ = std::make_unique<ServerProcess>(arguments(), port_);
  }
};

std::set<std::string> bodies_that(const std::vector<Effect>& effects, const std::string& what) {
  std::set<std::string> bodies;
  for (const Effect& effect : effects)
    if (effect.what == what) bodies.insert(effect.body);
  return bodies;
}

// Nobody begins with a message that another has begun with, unless that one was killed.
void audit_that_nothing_is_held_twice(const std::vector<Effect>& effects) {
  std::map<std::string, pid_t> held;
  for (const Effect& effect : effects) {
    const std::string name = effect.group + " " + effect.body;
    if (effect.what == "killed") {
      std::erase_if(held, [&](const auto& each) { return each.second == effect.pid; });
    } else if (effect.what == "begins") {
      const auto [at, first] = held.emplace(name, effect.pid);
      EXPECT_TRUE(first) << name << " was begun with by " << effect.pid << " while " << at->second
                         << " held it";
    } else {
      held.erase(name);
    }
  }
}

// Within a group, a message ends for the first time after all that were sent before it.
void audit_order(const std::vector<Effect>& effects, const std::vector<std::string>& sent) {
  std::map<std::string, std::vector<std::string>> ended;
  std::set<std::string> seen;
  for (const Effect& effect : effects)
    if (effect.what == "ends" && seen.insert(effect.group + " " + effect.body).second)
      ended[effect.group].push_back(effect.body);
  for (const auto& [group, bodies] : ended) EXPECT_EQ(bodies, sent) << group;
}

TEST_F(WorkerAuditOfRestarts, NothingIsLostOrHeldTwiceThoughWorkersAreKilledAndServersRestarted) {
  const std::string url = create("audited");
  std::set<std::string> sent;
  const char* kinds[] = {"plain", "plain", "throw", "plain", "slow"};
  for (int i = 0; i < 200; ++i) {
    const std::string body = kinds[i % 5] + std::to_string(i);
    if (body.starts_with("slow") && i % 25 != 4) continue;
    send(url, body);
    sent.insert(body);
  }
  std::vector<VictimProcess> workers;
  for (int i = 0; i < 2; ++i) workers.push_back(start_worker(url));
  // A worker dies after each 15 jobs that have ended, and the server after each third of them.
  for (int deaths = 0; deaths < 6; ++deaths) {
    const std::size_t ended = static_cast<std::size_t>(deaths + 1) * 15;
    ASSERT_TRUE(
        wait_for([&](const auto& all) { return bodies_that(all, "ends").size() >= ended; }));
    VictimProcess& victim = workers[static_cast<std::size_t>(deaths) % workers.size()];
    kill(victim);
    if (deaths % 3 == 2) restart_server();
    victim = start_worker(url);
  }
  EXPECT_TRUE(wait_for([&](const auto& all) { return bodies_that(all, "ends") == sent; }));
  for (VictimProcess& victim : workers) kill(victim);
  const std::vector<Effect> effects = read_effects(effects_path());
  EXPECT_EQ(bodies_that(effects, "ends"), sent);
  audit_that_nothing_is_held_twice(effects);
}

TEST_F(WorkerAudit, OrderIsKeptPerGroupThoughWorkersAreKilled) {
  const std::string url = create("audited.fifo", {{"FifoQueue", "true"}});
  constexpr int kGroups = 4;
  std::vector<std::string> sent;
  for (int i = 0; i < 15; ++i) {
    sent.push_back((i % 4 == 2 ? "throw" : "plain") + std::to_string(i));
    for (int group = 0; group < kGroups; ++group)
      send(url, sent.back(), "g" + std::to_string(group));
  }
  const auto ended = [&](const std::vector<Effect>& effects) {
    std::set<std::string> names;
    for (const Effect& effect : effects)
      if (effect.what == "ends") names.insert(effect.group + effect.body);
    return names.size();
  };
  std::vector<VictimProcess> workers;
  for (int i = 0; i < 2; ++i) workers.push_back(start_worker(url));
  for (std::size_t deaths = 0; deaths < 3; ++deaths) {
    ASSERT_TRUE(wait_for([&](const auto& all) { return ended(all) >= (deaths + 1) * 10; }));
    kill(workers[deaths % 2]);
    workers[deaths % 2] = start_worker(url);
  }
  EXPECT_TRUE(wait_for([&](const auto& all) { return ended(all) == sent.size() * kGroups; }));
  for (VictimProcess& victim : workers) kill(victim);
  const std::vector<Effect> effects = read_effects(effects_path());
  audit_that_nothing_is_held_twice(effects);
  audit_order(effects, sent);
}

TEST_F(WorkerAudit, PoisonIsADeadLetterAfterExactlyMaxReceiveCountTries) {
  const std::string dead = create("dead");
  auto arn = client_->get_queue_attributes({.queue_url = dead, .attribute_names = {"QueueArn"}});
  ASSERT_TRUE(arn);
  const std::string url =
      create("main", {{"RedrivePolicy", R"({"maxReceiveCount":"4","deadLetterTargetArn":")" +
                                            arn->attributes["QueueArn"] + "\"}"}});
  std::set<std::string> poison;
  for (int i = 0; i < 5; ++i) {
    poison.insert("poison" + std::to_string(i));
    send(url, "poison" + std::to_string(i));
    send(url, "plain" + std::to_string(i));
  }
  VictimProcess victim = start_worker(url);
  std::set<std::string> letters;
  ASSERT_TRUE(comes_true([&] {
    for (const std::string& body : take_all(dead)) letters.insert(body);
    return letters.size() >= poison.size();
  }));
  kill(victim);
  EXPECT_EQ(letters, poison);
  std::map<std::string, int> tries;
  for (const Effect& effect : read_effects(effects_path()))
    if (effect.what == "begins") ++tries[effect.body];
  for (const auto& [body, count] : tries) EXPECT_EQ(count, poison.contains(body) ? 4 : 1) << body;
  EXPECT_EQ(tries.size(), 10u);
}

TEST_F(WorkerAudit, AJobThatHangsIsHeldForManyPeriodsAndComesBackSoonAfterItsWorkerDies) {
  const std::string url = create("hung");
  send(url, "hang");
  VictimProcess first = start_worker(url);
  ASSERT_TRUE(wait_for([](const auto& all) { return all.size() == 1; }));
  VictimProcess second = start_worker(url);
  // In this time the other worker asks again and again.
  std::this_thread::sleep_for(3 * kVisibility);
  EXPECT_EQ(read_effects(effects_path()).size(), 1u) << "it was delivered to another";
  const auto killed = std::chrono::steady_clock::now();
  kill(first);
  ASSERT_TRUE(wait_for([](const auto& all) { return all.size() >= 3; }));
  EXPECT_LT(std::chrono::steady_clock::now() - killed, kPatience);
  const Effect next = read_effects(effects_path())[2];
  EXPECT_EQ(next.what, "begins");
  EXPECT_EQ(next.pid, second.pid());
  EXPECT_EQ(next.receive_count, 2);
}

TEST_F(WorkerAudit, AWorkerThatDiesBetweenAResultAndTheDeleteRepeatsTheJobAndDoublesNothing) {
  const std::string url = create("input");
  send(url, "publish");
  VictimProcess first = start_worker(url);
  // Both results are there, and the job hangs.
  std::string results;
  ASSERT_TRUE(comes_true([&] {
    auto found = client_->get_queue_url({.queue_name = "results.fifo"});
    if (found) results = found->queue_url;
    return !results.empty();
  }));
  const auto waiting = [&] {
    auto asked = client_->get_queue_attributes(
        {.queue_url = results, .attribute_names = {"ApproximateNumberOfMessages"}});
    return asked ? asked->attributes["ApproximateNumberOfMessages"] : "";
  };
  ASSERT_TRUE(comes_true([&] { return waiting() == "2"; }));
  kill(first);
  VictimProcess second = start_worker(url);
  ASSERT_TRUE(wait_for([](const auto& all) { return bodies_that(all, "ends").size() == 1; }));
  kill(second);
  EXPECT_EQ(take_all(results), (std::vector<std::string>{"publish-a", "publish-b"}));
}

TEST_F(WorkerAudit, PausedMessagesComeBackInOrderThoughWorkersAreKilled) {
  const std::string url = create("paused.fifo", {{"FifoQueue", "true"}});
  const std::string waiting = create("paused-paused.fifo", {{"FifoQueue", "true"}});
  std::vector<std::string> sent;
  const auto send_more = [&](int count) {
    for (int i = 0; i < count; ++i) {
      sent.push_back("plain" + std::to_string(sent.size()));
      for (const char* group : {"g", "h", "i"}) send(url, sent.back(), group);
    }
  };
  const auto left_in = [&](const std::string& queue) {
    auto asked = client_->get_queue_attributes(
        {.queue_url = queue,
         .attribute_names = {"ApproximateNumberOfMessages",
                             "ApproximateNumberOfMessagesNotVisible"}});
    return asked ? asked->attributes["ApproximateNumberOfMessages"] + "+" +
                       asked->attributes["ApproximateNumberOfMessagesNotVisible"]
                 : asked.error().to_string();
  };
  const auto ended = [&](const std::vector<Effect>& effects) {
    std::set<std::string> names;
    for (const Effect& effect : effects)
      if (effect.what == "ends") names.insert(effect.group + effect.body);
    return names.size();
  };
  std::vector<VictimProcess> workers;
  for (int i = 0; i < 2; ++i) workers.push_back(start_worker(url, "pausable"));
  const auto replace = [&](std::size_t at) {
    kill(workers[at]);
    workers[at] = start_worker(url, "pausable");
  };
  send_more(10);
  ASSERT_TRUE(wait_for([&](const auto& all) { return ended(all) >= 6; }));
  ASSERT_TRUE(client_->tag_queue({waiting, {{PauseWatch::kPausedTag, "yes"}}}));
  replace(0);
  send_more(5);
  // What comes before the pause is noticed is handled, and then more has to come. What the killed
  // worker held is waited for.
  ASSERT_TRUE(comes_true([&] {
    if (left_in(url) == "0+0") send_more(1);
    return left_in(waiting) != "0+0";
  }));
  replace(1);
  send_more(5);
  ASSERT_TRUE(comes_true([&] { return left_in(url) == "0+0"; }));
  EXPECT_NE(left_in(waiting), "0+0") << "nothing was paused";
  const std::size_t before = ended(read_effects(effects_path()));
  ASSERT_TRUE(client_->tag_queue({waiting, {{PauseWatch::kResumingTag, "yes"}}}));
  ASSERT_TRUE(client_->untag_queue({waiting, {PauseWatch::kPausedTag}}));
  ASSERT_TRUE(wait_for([&](const auto& all) { return ended(all) > before; }));
  replace(0);
  send_more(5);
  EXPECT_TRUE(wait_for([&](const auto& all) { return ended(all) == sent.size() * 3; }));
  for (VictimProcess& victim : workers) kill(victim);
  const std::vector<Effect> effects = read_effects(effects_path());
  audit_that_nothing_is_held_twice(effects);
  audit_order(effects, sent);
}

TEST_F(WorkerAudit, ADistributorThatIsKilledMovesEveryMessageOnce) {
  const std::string work = create("work.fifo", {{"FifoQueue", "true"}});
  const std::string tenant = create("tenant.fifo", {{"FifoQueue", "true"}});
  constexpr int kMessages = 300;
  {
    client::Batcher batcher(*client_);
    for (int i = 0; i < kMessages; ++i)
      batcher.send({.queue_url = tenant,
                    .message_body = std::to_string(i),
                    .message_deduplication_id = std::to_string(i),
                    .message_group_id = "g" + std::to_string(i % 30)},
                   [](const auto& sent) { EXPECT_TRUE(sent); });
  }
  std::vector<std::string> arrived;
  for (int deaths = 0; arrived.size() < kMessages; ++deaths) {
    VictimProcess victim({"distributor", server_->url(), work, tenant});
    const std::size_t before = arrived.size();
    ASSERT_TRUE(comes_true([&] {
      auto received = client_->receive_message(
          {.queue_url = work, .max_number_of_messages = 10, .wait_time_seconds = 1});
      if (!received) return false;
      for (const auto& message : received->messages) {
        arrived.push_back(message.body);
        EXPECT_TRUE(client_->delete_message({work, message.receipt_handle}));
      }
      return arrived.size() >= kMessages || (deaths < 4 && arrived.size() >= before + 50);
    }));
  }
  EXPECT_EQ(std::set<std::string>(arrived.begin(), arrived.end()).size(), arrived.size());
  EXPECT_TRUE(take_all(work).empty());
  std::map<int, int> last;
  for (const std::string& body : arrived) {
    const int number = std::stoi(body);
    const auto [at, first] = last.emplace(number % 30, number);
    EXPECT_TRUE(first || number > at->second) << number << " came after " << at->second;
    at->second = number;
  }
}

}  // namespace
}  // namespace stanchion::worker
