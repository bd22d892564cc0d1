// Workers against the real server: what is delivered, in which order, and what is left behind.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "os/temporary_directory.h"
#include "tests/worker/worker_kit.h"

namespace stanchion::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(WorkerServer, EveryMessageIsHandledOnceAndDeletedAfterItsHandler) {
  const std::string url = create("many");
  for (int i = 0; i < 200; ++i) send(url, std::to_string(i));
  Record record;
  auto worker = open(
      {.queues = {{.url = url, .concurrency = 32}}, .handler = [&](const TaskInformation& task) {
         EXPECT_EQ(task.queue_name, "many");
         EXPECT_TRUE(task.queue_arn.ends_with(":many")) << task.queue_arn;
         EXPECT_EQ(task.receive_count, 1);
         EXPECT_FALSE(task.poison);
         record.add(task.body);
         return Verdict::done();
       }});
  ASSERT_TRUE(record.wait_for(200));
  EXPECT_EQ(worker->stop(kPatience).still_running, 0u);
  const auto seen = record.seen();
  EXPECT_EQ(seen.size(), 200u);
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 200u);
  EXPECT_EQ(left_in(url), "0 visible, 0 in flight");
  const QueueMetrics metrics = worker->metrics().queues.at(0);
  EXPECT_EQ(metrics.received, 200u);
  EXPECT_EQ(metrics.done, 200u);
  EXPECT_EQ(metrics.in_flight, 0u);
}

TEST_F(WorkerServer, AJobThatTakesLongerThanItsVisibilityIsDeliveredOnce) {
  const std::string url = create("long");
  send(url, "job");
  Record begun;
  Record ended;
  std::atomic<bool> enough = false;
  const auto job = [&](const TaskInformation& task) {
    begun.add(task.body);
    EXPECT_TRUE(comes_true([&] { return enough || task.loss(); }));
    ended.add(task.loss() ? name_of(*task.loss()) : "held");
    return Verdict::done();
  };
  auto worker = open({.queues = {{.url = url, .visibility = seconds(4)}}, .handler = job});
  // Two and a half periods, because it is extended every half one.
  EXPECT_TRUE(comes_true([&] { return worker->metrics().queues.at(0).extended >= 5; }));
  enough = true;
  ASSERT_TRUE(ended.wait_for(1));
  worker->stop(kPatience);
  EXPECT_EQ(begun.seen(), std::vector<std::string>{"job"});
  EXPECT_EQ(ended.seen(), std::vector<std::string>{"held"});
  EXPECT_EQ(left_in(url), "0 visible, 0 in flight");
}

TEST_F(WorkerServer, AJobWhoseMessageIsDeletedByAnotherIsTold) {
  const std::string url = create("stolen");
  send(url, "job");
  Record record;
  const auto job = [&](const TaskInformation& task) {
    auto removed = client_.delete_message({url, task.receipt_handle});
    EXPECT_TRUE(removed);
    std::mutex mutex;
    std::condition_variable_any told;
    std::unique_lock lock(mutex);
    told.wait_for(lock, task.stop(), kPatience, [] { return false; });
    record.add(task.loss() ? name_of(*task.loss()) : "held");
    return Verdict::done();
  };
  auto worker = open({.queues = {{.url = url, .visibility = seconds(10)}}, .handler = job});
  ASSERT_TRUE(record.wait_for(1));
  EXPECT_EQ(record.seen(), std::vector<std::string>{"gone"});
  worker->stop(kPatience);
  EXPECT_EQ(worker->metrics().queues.at(0).lost, 1u);
}

TEST_F(WorkerServer, TheOrderOfAFifoGroupIsKeptThoughJobsFailAndThrow) {
  const std::string url = create("ordered.fifo", {{"FifoQueue", "true"}});
  constexpr int kGroups = 3;
  constexpr int kEach = 12;
  for (int i = 0; i < kEach; ++i)
    for (int group = 0; group < kGroups; ++group)
      send(url, std::to_string(i), "g" + std::to_string(group));
  Record done;
  std::mutex mutex;
  std::map<std::string, int> tries;
  const auto job = [&](const TaskInformation& task) {
    const std::string name = task.attributes.at("MessageGroupId") + " " + task.body;
    int nth = 0;
    {
      const std::lock_guard lock(mutex);
      nth = ++tries[name];
    }
    if (std::stoi(task.body) % 3 == 1 && nth == 1) return Verdict::retry();
    if (std::stoi(task.body) % 5 == 2 && nth == 1) throw std::runtime_error("first try");
    done.add(name);
    return Verdict::done();
  };
  auto worker = open({.queues = {{.url = url, .backoff = {.base = seconds(0)}}},
                      .handler = job,
                      .failure_share_max = 1.1});
  ASSERT_TRUE(done.wait_for(kGroups * kEach));
  worker->stop(kPatience);
  std::map<std::string, std::vector<std::string>> by_group;
  for (const std::string& name : done.seen())
    by_group[name.substr(0, name.find(' '))].push_back(name.substr(name.find(' ') + 1));
  std::vector<std::string> in_order;
  for (int i = 0; i < kEach; ++i) in_order.push_back(std::to_string(i));
  ASSERT_EQ(by_group.size(), static_cast<std::size_t>(kGroups));
  for (const auto& [group, bodies] : by_group) EXPECT_EQ(bodies, in_order) << group;
  EXPECT_EQ(left_in(url), "0 visible, 0 in flight");
  const QueueMetrics metrics = worker->metrics().queues.at(0);
  EXPECT_GT(metrics.retried, 0u);
  EXPECT_GT(metrics.thrown, 0u);
  EXPECT_GT(metrics.given_back, 0u) << "no later message of a failed group was in flight";
}

TEST_F(WorkerServer, APoisonMessageIsInTheDeadLetterQueueAfterExactlyMaxReceiveCountTries) {
  const std::string dead = create("dead");
  auto arn = client_.get_queue_attributes({.queue_url = dead, .attribute_names = {"QueueArn"}});
  ASSERT_TRUE(arn);
  const std::string url =
      create("main", {{"RedrivePolicy", R"({"maxReceiveCount":"3","deadLetterTargetArn":")" +
                                            arn->attributes["QueueArn"] + "\"}"}});
  send(url, "poison");
  Record tries;
  Record dead_letters;
  auto worker =
      open({.queues = {{.url = url},
                       {.url = dead,
                        .handler =
                            [&](const TaskInformation& task) {
                              dead_letters.add(task.body + (task.poison ? " marked" : " unmarked"));
                              return Verdict::done();
                            },
                        .concurrency = 1,
                        .poison = true}},
            .handler = [&](const TaskInformation& task) {
              tries.add(std::to_string(task.receive_count));
              return Verdict::retry();
            }});
  ASSERT_TRUE(dead_letters.wait_for(1));
  worker->stop(kPatience);
  EXPECT_EQ(tries.seen(), (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_EQ(dead_letters.seen(), std::vector<std::string>{"poison marked"});
  EXPECT_EQ(left_in(url), "0 visible, 0 in flight");
  EXPECT_EQ(left_in(dead), "0 visible, 0 in flight");
}

TEST_F(WorkerServer, ARejectedMessageIsInTheOtherQueueWithItsAttributesAndDeleted) {
  const std::string url = create("source");
  const std::string other = create("rejected");
  auto sent = client_.send_message(
      {.queue_url = url,
       .message_body = "bad",
       .message_attributes = {{"kind", client::MessageAttributeValue::text("x")}}});
  ASSERT_TRUE(sent);
  Record record;
  auto worker = open(
      {.queues = {{.url = url, .reject_to = other}}, .handler = [&](const TaskInformation& task) {
         record.add(task.body);
         return Verdict::reject();
       }});
  auto received = client_.receive_message(
      {.queue_url = other, .wait_time_seconds = 20, .message_attribute_names = {"All"}});
  ASSERT_TRUE(received);
  ASSERT_EQ(received->messages.size(), 1u);
  EXPECT_EQ(received->messages[0].body, "bad");
  EXPECT_EQ(received->messages[0].message_attributes.at("kind").string_value, "x");
  worker->stop(kPatience);
  EXPECT_EQ(left_in(url), "0 visible, 0 in flight");
  EXPECT_EQ(worker->metrics().queues.at(0).rejected, 1u);
}

TEST_F(WorkerServer, ARejectionWithNowhereToGoKeepsTheMessageAndSaysSo) {
  const std::string url = create("nowhere");
  send(url, "bad");
  Record errors;
  auto worker = open({.queues = {{.url = url, .backoff = {.base = seconds(0)}}},
                      .handler = [](const TaskInformation&) { return Verdict::reject(); },
                      .on_error = [&](const std::string& what) { errors.add(what); }});
  ASSERT_TRUE(errors.wait_for(1));
  EXPECT_NE(errors.seen()[0].find("QueueOptions::reject_to"), std::string::npos);
  worker->stop(kPatience);
  ASSERT_TRUE(wait_until_left(url, "1 visible, 0 in flight"));
  EXPECT_EQ(visible(url), std::vector<std::string>{"bad"});
}

TEST_F(WorkerServer, AStopGivesBackWhatHasNotBegunAndAtItsDeadlineWhatHasNotEnded) {
  const std::string url = create("stopped");
  for (int i = 0; i < 10; ++i) send(url, std::to_string(i));
  Record begun;
  Record told;
  const auto job = [&](const TaskInformation& task) {
    begun.add(task.body);
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    changed.wait_for(lock, task.stop(), kPatience, [] { return false; });
    told.add(task.loss() ? name_of(*task.loss()) : "held");
    return Verdict::done();
  };
  auto worker =
      open({.queues = {{.url = url, .concurrency = 1, .waiting_max = 9}}, .handler = job});
  ASSERT_TRUE(begun.wait_for(1));
  const StopReport report = worker->stop(milliseconds(0));
  EXPECT_EQ(report.still_running, 1u);
  EXPECT_EQ(visible(url).size(), 10u);
  ASSERT_TRUE(told.wait_for(1));
  EXPECT_EQ(told.seen(), std::vector<std::string>{"stopped"});
  worker.reset();
  EXPECT_EQ(begun.seen().size(), 1u) << "a job began after the stop";
}

TEST_F(WorkerServer, AJobLearnsOfItsWorkersEndThoughNobodyCalledStop) {
  const std::string url = create("destroyed");
  for (int i = 0; i < 4; ++i) send(url, std::to_string(i));
  Record begun;
  Record told;
  auto worker = open({.queues = {{.url = url}}, .handler = [&](const TaskInformation& task) {
                        begun.add(task.body);
                        std::mutex mutex;
                        std::condition_variable_any changed;
                        std::unique_lock lock(mutex);
                        changed.wait_for(lock, task.stop(), kPatience, [] { return false; });
                        told.add(task.loss() ? name_of(*task.loss()) : "held");
                        return Verdict::done();
                      }});
  ASSERT_TRUE(begun.wait_for(4));
  // It returns when the jobs have, and they return only if they are told.
  worker.reset();
  EXPECT_EQ(told.seen(), std::vector<std::string>(4, "stopped"));
  ASSERT_TRUE(wait_until_left(url, "4 visible, 0 in flight"));
  EXPECT_EQ(visible(url).size(), 4u);
}

TEST_F(WorkerServer, AStopWithTimeFinishesWhatHasBegun) {
  const std::string url = create("finished");
  send(url, "job");
  Record begun;
  std::mutex gate;
  std::unique_lock closed(gate);
  auto worker = open({.queues = {{.url = url}}, .handler = [&](const TaskInformation& task) {
                        begun.add(task.body);
                        const std::lock_guard wait(gate);
                        return Verdict::done();
                      }});
  ASSERT_TRUE(begun.wait_for(1));
  StopReport report;
  std::thread stopping([&] { report = worker->stop(kPatience); });
  closed.unlock();
  stopping.join();
  EXPECT_EQ(report.given_back, 0u);
  EXPECT_EQ(report.still_running, 0u);
  EXPECT_EQ(left_in(url), "0 visible, 0 in flight");
}

TEST_F(WorkerServer, FiguresOfTheQueuesAreToldAndSayThatMoreWorkersAreNeeded) {
  const std::string url = create("loaded");
  Record told;
  std::mutex gate;
  std::unique_lock closed(gate);
  auto worker = open(
      {.queues = {{.url = url, .concurrency = 1, .load = {.growing_looks = 2, .growth_min = 2}}},
       .handler =
           [&](const TaskInformation&) {
             const std::lock_guard wait(gate);
             return Verdict::done();
           },
       .on_metrics =
           [&](const WorkerMetrics& metrics) {
             const QueueMetrics& queue = metrics.queues.at(0);
             if (queue.signals.arrival_faster)
               told.add(std::to_string(queue.queue_visible) + " wait, " +
                        std::to_string(queue.queue_in_flight) + " in flight");
           },
       .metrics_every = milliseconds(100),
       .watch_load = true});
  const bool is_told = comes_true([&] {
    send(url, "job");
    return !told.seen().empty();
  });
  closed.unlock();  // Before anything fails: the worker's end waits for its job.
  ASSERT_TRUE(is_told);
  EXPECT_NE(told.seen()[0].find(" wait, 1 in flight"), std::string::npos) << told.seen()[0];
  EXPECT_NE(worker->metrics().to_prometheus().find("stanchion_worker_needs_more_arrival"),
            std::string::npos);
  worker->stop(milliseconds(0));
}

TEST(WorkerFaults, AJobThatIsDoneWhileTheServerIsDownIsDeletedWhenTheServerIsBack) {
  const os::TemporaryDirectory data;
  const std::vector<std::string> arguments{"--data", data.path()};
  auto server = std::make_unique<ServerProcess>(arguments);
  const std::string port = server->port();
  Client client = std::move(
      *Client::open({.endpoint = server->url(), .retry = {.delay_base = milliseconds(1)}}));
  auto made = client.create_queue({.queue_name = "down"});
  ASSERT_TRUE(made);
  ASSERT_TRUE(client.send_message({.queue_url = made->queue_url, .message_body = "job"}));
  Record begun;
  Record errors;
  std::mutex gate;
  std::unique_lock closed(gate);
  auto worker = Worker::open(client, {.queues = {{.url = made->queue_url}},
                                      .handler =
                                          [&](const TaskInformation& task) {
                                            begun.add(task.body);
                                            const std::lock_guard wait(gate);
                                            return Verdict::done();
                                          },
                                      .on_error =
                                          [&](const std::string& what) {
                                            if (what.find("cannot delete") != std::string::npos)
                                              errors.add(what);
                                          }});
  ASSERT_TRUE(worker) << worker.error().to_string();
  ASSERT_TRUE(begun.wait_for(1));
  server->kill();
  closed.unlock();
  ASSERT_TRUE(errors.wait_for(1));
  server = std::make_unique<ServerProcess>(arguments, port);
  (*worker)->stop(kPatience);
  EXPECT_EQ((*worker)->metrics().queues.at(0).done, 1u);
  EXPECT_EQ(begun.seen(), std::vector<std::string>{"job"});
  auto left = client.get_queue_attributes(
      {.queue_url = made->queue_url, .attribute_names = {"ApproximateNumberOfMessagesNotVisible"}});
  ASSERT_TRUE(left) << left.error().to_string();
  EXPECT_EQ(left->attributes["ApproximateNumberOfMessagesNotVisible"], "0");
}

TEST_F(WorkerServer, JobsOfAnAsynchronousHandlerEndWhenTheyAreAnswered) {
  const std::string url = create("later");
  for (int i = 0; i < 30; ++i) send(url, std::to_string(i));
  Record begun;
  std::mutex mutex;
  std::vector<Answer> answers;
  auto worker = open({.queues = {{.url = url,
                                  .async_handler =
                                      [&](const Task& task, Answer answer) {
                                        const std::lock_guard lock(mutex);
                                        answers.push_back(std::move(answer));
                                        begun.add(task->body);
                                      },
                                  .concurrency = 30}}});
  // All of them at the same time, though there is one thread.
  ASSERT_TRUE(begun.wait_for(30));
  EXPECT_EQ(worker->metrics().queues.at(0).running, 30u);
  for (const Answer& answer : answers) {
    answer(Verdict::done());
    answer(Verdict::retry());  // Too late.
  }
  worker->stop(kPatience);
  EXPECT_EQ(worker->metrics().queues.at(0).done, 30u);
  EXPECT_EQ(left_in(url), "0 visible, 0 in flight");
}

TEST_F(WorkerServer, AnAnswerThatComesAfterTheDeadlineOfAStopChangesNothing) {
  const std::string url = create("too-late");
  send(url, "job");
  Record begun;
  Answer late;
  auto worker =
      open({.queues = {{.url = url, .async_handler = [&](const Task& task, Answer answer) {
                          late = std::move(answer);
                          begun.add(task->body);
                        }}}});
  ASSERT_TRUE(begun.wait_for(1));
  EXPECT_EQ(worker->stop(milliseconds(0)).still_running, 1u);
  late(Verdict::done());
  worker.reset();
  EXPECT_TRUE(wait_until_left(url, "1 visible, 0 in flight")) << left_in(url);
}

TEST_F(WorkerServer, MessagesOfAGroupThatBeginTogetherKeepTheirOrder) {
  const std::string url = create("together.fifo", {{"FifoQueue", "true"}});
  for (int i = 0; i < 5; ++i) send(url, std::to_string(i), "group");
  Record begun;
  std::mutex mutex;
  std::vector<Answer> answers;
  auto worker = open({.queues = {{.url = url,
                                  .async_handler =
                                      [&](const Task& task, Answer answer) {
                                        const std::lock_guard lock(mutex);
                                        answers.push_back(std::move(answer));
                                        begun.add(task->body);
                                      },
                                  .groups_together = true}}});
  ASSERT_TRUE(begun.wait_for(5));
  EXPECT_EQ(begun.seen(), (std::vector<std::string>{"0", "1", "2", "3", "4"}));
  for (const Answer& answer : answers) answer(Verdict::done());
  worker->stop(kPatience);
  EXPECT_EQ(left_in(url), "0 visible, 0 in flight");
}

TEST_F(WorkerServer, WhatBeganTogetherWithAMessageThatFailsIsLostAtOnce) {
  const std::string url = create("behind.fifo", {{"FifoQueue", "true"}});
  for (const char* body : {"0", "1", "2"}) send(url, body, "group");
  send(url, "other", "another");
  Record begun;
  std::mutex mutex;
  std::map<std::string, std::pair<Task, Answer>> jobs;
  auto worker = open({.queues = {{.url = url,
                                  .async_handler =
                                      [&](const Task& task, Answer answer) {
                                        const std::lock_guard lock(mutex);
                                        jobs.try_emplace(task->body, task, std::move(answer));
                                        begun.add(task->body);
                                      },
                                  .groups_together = true}}});
  ASSERT_TRUE(begun.wait_for(4));
  const auto lost = [&](const char* body) { return jobs[body].first->loss() == Loss::kStopped; };
  jobs["1"].second(Verdict::retry(seconds(600)));
  EXPECT_TRUE(lost("2"));
  EXPECT_FALSE(lost("0"));
  EXPECT_FALSE(lost("other"));
  jobs["2"].second(Verdict::retry());
  jobs["0"].second(Verdict::done());
  jobs["other"].second(Verdict::done());
  worker->stop(kPatience);
  EXPECT_EQ(left_in(url), "1 visible, 1 in flight");
}

TEST_F(WorkerServer, AQueueThatDoesNotExistIsAnErrorThatNamesIt) {
  const std::string url = server_.url() + "/000000000000/missing";
  auto opened =
      Worker::open(client_, {.queues = {{.url = url}},
                             .handler = [](const TaskInformation&) { return Verdict::done(); }});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, "QueueDoesNotExist");
  EXPECT_NE(opened.error().message.find(url), std::string::npos) << opened.error().message;
}

TEST_F(WorkerServer, SettingsThatCannotWorkAreErrorsThatSayWhatToSet) {
  const auto message_of = [&](WorkerOptions options) {
    auto opened = Worker::open(client_, std::move(options));
    return opened ? std::string("opened") : opened.error().message;
  };
  const Handler handler = [](const TaskInformation&) { return Verdict::done(); };
  EXPECT_EQ(message_of({}), "there is no queue; set WorkerOptions::queues");
  EXPECT_EQ(message_of({.queues = {{}}, .handler = handler}),
            "a queue has no URL; set QueueOptions::url");
  EXPECT_EQ(message_of({.queues = {{.url = "u"}}}),
            "u: there is no handler; set QueueOptions::handler");
  EXPECT_EQ(message_of({.queues = {{.url = "u", .concurrency = 0}}, .handler = handler}),
            "u: the concurrency must be from 1 to 10000");
  EXPECT_EQ(message_of({.queues = {{.url = "u", .wait = seconds(21)}}, .handler = handler}),
            "u: a receive waits from 0 to 20 seconds");
}

}  // namespace
}  // namespace stanchion::worker
