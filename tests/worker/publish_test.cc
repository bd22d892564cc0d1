// What jobs publish, against the real server.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/worker/worker_kit.h"

namespace stanchion::worker {
namespace {

using std::chrono::seconds;

class WorkerPublish : public WorkerServer {
 protected:
  std::string url_of(const std::string& name) {
    auto found = client_.get_queue_url({.queue_name = name});
    return found ? found->queue_url : found.error().code;
  }
  std::string attribute(const std::string& url, const std::string& name) {
    auto attributes = client_.get_queue_attributes({.queue_url = url, .attribute_names = {name}});
    return attributes ? attributes->attributes[name] : attributes.error().code;
  }
};

TEST_F(WorkerPublish, ResultsAreInTheirQueueBeforeTheInputIsDeleted) {
  const std::string url = create("input");
  const std::string results = create("results");
  for (int i = 0; i < 50; ++i) send(url, std::to_string(i));
  auto worker = open({.queues = {{.url = url}}, .handler = [&](const TaskInformation& task) {
                        EXPECT_TRUE(task.publish({.queue_url = results, .body = task.body + "a"}));
                        EXPECT_TRUE(task.publish({.queue_url = results, .body = task.body + "b"}));
                        return Verdict::done();
                      }});
  std::vector<std::string> seen;
  ASSERT_TRUE(comes_true([&] {
    const auto more = visible(results);
    seen.insert(seen.end(), more.begin(), more.end());
    return seen.size() >= 100;
  }));
  worker->stop(kPatience);
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(left_in(url), "0 visible, 0 in flight");
  EXPECT_EQ(worker->metrics().queues.at(0).published, 100u);
  EXPECT_EQ(worker->metrics().queues.at(0).done, 50u);
}

TEST_F(WorkerPublish, AQueueThatIsMissingIsMadeWithItsDeadLetterQueue) {
  const std::string url = create("input");
  send(url, "job");
  auto worker =
      open({.queues = {{.url = url}}, .handler = [&](const TaskInformation& task) {
              task.publish({.queue = {.name = "made", .max_receive_count = 7}, .body = "result"});
              task.publish({.queue = {.name = "made.fifo"}, .body = "result"});
              return Verdict::done();
            }});
  ASSERT_TRUE(comes_true([&] { return worker->metrics().queues.at(0).done > 0; }));
  worker->stop(kPatience);
  EXPECT_EQ(visible(url_of("made")), std::vector<std::string>{"result"});
  EXPECT_EQ(visible(url_of("made.fifo")), std::vector<std::string>{"result"});
  const std::string policy = attribute(url_of("made"), "RedrivePolicy");
  EXPECT_NE(policy.find(attribute(url_of("made-dead"), "QueueArn")), std::string::npos) << policy;
  EXPECT_NE(policy.find('7'), std::string::npos) << policy;
  EXPECT_EQ(attribute(url_of("made-dead.fifo"), "FifoQueue"), "true");
}

TEST_F(WorkerPublish, AResultThatCannotBeSentRepeatsTheJobAndSaysWhy) {
  const std::string url = create("input");
  const std::string results = create("results");
  send(url, "job");
  std::atomic<int> tries = 0;
  Record errors;
  auto worker = open(
      {.queues = {{.url = url, .backoff = {.base = seconds(0)}}},
       .handler =
           [&](const TaskInformation& task) {
             const bool first = ++tries == 1;
             task.publish({.queue_url = first ? results + "-missing" : results, .body = "result"});
             return Verdict::done();
           },
       .on_error = [&](const std::string& what) { errors.add(what); }});
  ASSERT_TRUE(errors.wait_for(1));
  ASSERT_TRUE(comes_true([&] { return worker->metrics().queues.at(0).done > 0; }));
  worker->stop(kPatience);
  EXPECT_EQ(tries, 2);
  EXPECT_NE(errors.seen()[0].find(results + "-missing"), std::string::npos) << errors.seen()[0];
  EXPECT_NE(errors.seen()[0].find("QueueDoesNotExist"), std::string::npos) << errors.seen()[0];
  EXPECT_EQ(visible(results), std::vector<std::string>{"result"});
  EXPECT_EQ(worker->metrics().queues.at(0).retried, 1u);
}

TEST_F(WorkerPublish, AJobThatIsRepeatedDoesNotDoubleItsResultsInAFifoQueue) {
  const std::string url = create("input");
  const std::string results = create("results.fifo", {{"FifoQueue", "true"}});
  send(url, "job");
  std::atomic<int> tries = 0;
  auto worker = open({.queues = {{.url = url}}, .handler = [&](const TaskInformation& task) {
                        for (const char* part : {"one", "two", "three"})
                          task.publish({.queue_url = results, .body = part});
                        return ++tries == 1 ? Verdict::retry() : Verdict::done();
                      }});
  ASSERT_TRUE(comes_true([&] { return worker->metrics().queues.at(0).done > 0; }));
  worker->stop(kPatience);
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(worker->metrics().queues.at(0).published, 6u);
  EXPECT_EQ(visible(results), (std::vector<std::string>{"one", "two", "three"}));
}

TEST_F(WorkerPublish, AJobThatGoesOnWithoutItsHandlerIsHeldUntilItsLastResult) {
  const std::string url = create("input");
  const std::string results = create("results");
  send(url, "job");
  Record begun;
  Task handed_over;
  std::thread elsewhere;
  auto worker = open({.queues = {{.url = url, .visibility = seconds(5)}},
                      .handler = [&](const TaskInformation& task) {
                        handed_over = std::make_shared<const TaskInformation>(task);
                        begun.add(task.body);
                        return Verdict::done_after_last();
                      }});
  ASSERT_TRUE(begun.wait_for(1));
  // It is extended every half period: after one and a half of them the message is still held.
  ASSERT_TRUE(comes_true([&] { return worker->metrics().queues.at(0).extended >= 3; }));
  EXPECT_EQ(left_in(url), "0 visible, 1 in flight");
  EXPECT_EQ(worker->metrics().queues.at(0).running, 1u);
  EXPECT_TRUE(handed_over->publish({.queue_url = results, .body = "first"}));
  EXPECT_TRUE(handed_over->publish({.queue_url = results, .body = "last", .last = true}));
  ASSERT_TRUE(comes_true([&] { return worker->metrics().queues.at(0).done > 0; }));
  EXPECT_EQ(left_in(url), "0 visible, 0 in flight");
  EXPECT_FALSE(handed_over->publish({.queue_url = results, .body = "too late"}));
  worker.reset();
  EXPECT_FALSE(handed_over->publish({.queue_url = results, .body = "no worker"}));
  EXPECT_EQ(begun.seen().size(), 1u);
  EXPECT_EQ(visible(results).size(), 2u);
}

TEST_F(WorkerPublish, AJobWhoseLastResultNeverComesIsGivenBackAtTheDeadlineOfAStop) {
  const std::string url = create("input");
  send(url, "job");
  Record begun;
  auto worker = open({.queues = {{.url = url}}, .handler = [&](const TaskInformation& task) {
                        begun.add(task.body);
                        return Verdict::done_after_last();
                      }});
  ASSERT_TRUE(begun.wait_for(1));
  const StopReport report = worker->stop(std::chrono::milliseconds(0));
  EXPECT_EQ(report.given_back, 1u);
  ASSERT_TRUE(wait_until_left(url, "1 visible, 0 in flight"));
  EXPECT_EQ(visible(url), std::vector<std::string>{"job"});
}

}  // namespace
}  // namespace stanchion::worker
