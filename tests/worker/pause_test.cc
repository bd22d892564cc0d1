// Queues and jobs that are paused and resumed, against the real server.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/worker/worker_kit.h"

namespace stanchion::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class WorkerPause : public WorkerServer {
 protected:
  // A worker that writes down what it handles, as "group body".
  std::unique_ptr<Worker> open_on(const std::string& url, Record& record, Handler handler = {}) {
    if (!handler)
      handler = [&](const TaskInformation& task) {
        record.add(name_of_task(task));
        return Verdict::done();
      };
    return open({.queues = {{.url = url, .pausable = true}},
                 .handler = std::move(handler),
                 .pause_check = milliseconds(200)});
  }
  static std::string name_of_task(const TaskInformation& task) {
    const auto group = task.attributes.find("MessageGroupId");
    return (group == task.attributes.end() ? "" : group->second + " ") + task.body;
  }
  std::string paused_url(const std::string& name) {
    auto found = client_.get_queue_url({.queue_name = name});
    return found ? found->queue_url : found.error().to_string();
  }
};

std::vector<std::string> of_group(const std::vector<std::string>& seen, const std::string& group) {
  std::vector<std::string> bodies;
  for (const std::string& name : seen)
    if (name.starts_with(group + " ")) bodies.push_back(name.substr(group.size() + 1));
  return bodies;
}

std::vector<std::string> numbers(int count) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.push_back(std::to_string(i));
  return all;
}

TEST_F(WorkerPause, MessagesOfAPausedQueueWaitAndAreHandledWhenItIsResumed) {
  const std::string url = create("work");
  Record record;
  auto worker = open_on(url, record);
  auto paused = worker->pause(url);
  ASSERT_TRUE(paused) << paused.error().to_string();
  ASSERT_TRUE(comes_true([&] {
    // What comes before the pause is noticed is handled.
    send(url, "x");
    return worker->metrics().queues.at(0).paused > 0;
  }));
  ASSERT_TRUE(wait_until_left(url, "0 visible, 0 in flight"));
  const std::size_t before = record.seen().size();
  for (int i = 0; i < 20; ++i) send(url, std::to_string(i));
  ASSERT_TRUE(wait_until_left(url, "0 visible, 0 in flight"));
  EXPECT_EQ(record.seen().size(), before) << "a message of a paused queue was handled";
  auto resumed = worker->resume(url);
  ASSERT_TRUE(resumed) << resumed.error().to_string();
  ASSERT_TRUE(record.wait_for(before + 21));
  ASSERT_TRUE(wait_until_left(paused_url("work-paused"), "0 visible, 0 in flight"));
  worker->stop(kPatience);
  const auto seen = record.seen();
  const std::set<std::string> all(seen.begin(), seen.end());
  for (const std::string& body : numbers(20)) EXPECT_TRUE(all.contains(body)) << body;
}

TEST_F(WorkerPause, AFifoQueueComesBackInOrderThoughMessagesAreSentAllTheTime) {
  const std::string url = create("ordered.fifo", {{"FifoQueue", "true"}});
  Record record;
  auto worker = open_on(url, record);
  int sent = 0;
  const auto send_more = [&](int count) {
    for (int i = 0; i < count; ++i, ++sent)
      for (const char* group : {"g", "h"}) send(url, std::to_string(sent), group);
  };
  send_more(5);
  ASSERT_TRUE(worker->pause(url));
  // What comes before the pause is noticed is handled.
  ASSERT_TRUE(comes_true([&] {
    send_more(1);
    return worker->metrics().queues.at(0).paused >= 5;
  }));
  send_more(5);
  const std::size_t before = record.seen().size();
  ASSERT_TRUE(worker->resume(url));
  ASSERT_TRUE(comes_true([&] {
    send_more(1);
    return record.seen().size() >= before + 10;
  }));
  const std::size_t all = static_cast<std::size_t>(sent) * 2;
  ASSERT_TRUE(record.wait_for(all));
  worker->stop(kPatience);
  EXPECT_EQ(of_group(record.seen(), "g"), numbers(sent));
  EXPECT_EQ(of_group(record.seen(), "h"), numbers(sent));
  EXPECT_EQ(record.seen().size(), all);
  EXPECT_EQ(left_in(url), "0 visible, 0 in flight");
  EXPECT_EQ(left_in(paused_url("ordered-paused.fifo")), "0 visible, 0 in flight");
}

TEST_F(WorkerPause, AJobThatPausesHoldsBackItsGroupAndNoOther) {
  const std::string url = create("jobs.fifo", {{"FifoQueue", "true"}});
  for (int i = 0; i < 5; ++i)
    for (const char* group : {"g", "h"}) send(url, std::to_string(i), group);
  Record record;
  std::atomic<bool> pauses = true;
  auto worker = open_on(url, record, [&](const TaskInformation& task) {
    const std::string name = name_of_task(task);
    if (name == "g 1" && pauses.exchange(false)) return Verdict::pause();
    record.add(name);
    return Verdict::done();
  });
  const std::string waiting = paused_url("jobs-paused.fifo");
  ASSERT_TRUE(wait_until_left(waiting, "4 visible, 0 in flight"));
  ASSERT_TRUE(record.wait_for(6));
  EXPECT_EQ(of_group(record.seen(), "h"), numbers(5));
  EXPECT_EQ(of_group(record.seen(), "g"), numbers(1));
  ASSERT_TRUE(worker->resume(url));
  ASSERT_TRUE(record.wait_for(10));
  worker->stop(kPatience);
  EXPECT_EQ(of_group(record.seen(), "g"), numbers(5));
  EXPECT_EQ(left_in(waiting), "0 visible, 0 in flight");
}

TEST_F(WorkerPause, AQueueStaysPausedForWorkersThatBeginLater) {
  const std::string url = create("later");
  Record first;
  {
    auto worker = open_on(url, first);
    ASSERT_TRUE(worker->pause(url));
  }
  send(url, "job");
  Record record;
  auto worker = open_on(url, record);
  ASSERT_TRUE(wait_until_left(paused_url("later-paused"), "1 visible, 0 in flight"));
  EXPECT_TRUE(record.seen().empty());
  ASSERT_TRUE(worker->resume(url));
  ASSERT_TRUE(record.wait_for(1));
  worker->stop(kPatience);
  EXPECT_EQ(record.seen(), std::vector<std::string>{"job"});
}

TEST_F(WorkerPause, AQueueThatCannotBePausedSaysWhatToSetAndKeepsItsMessages) {
  const std::string url = create("plain");
  send(url, "job");
  Record errors;
  auto worker = open({.queues = {{.url = url, .backoff = {.base = seconds(0)}}},
                      .handler = [](const TaskInformation&) { return Verdict::pause(); },
                      .on_error = [&](const std::string& what) { errors.add(what); }});
  ASSERT_TRUE(errors.wait_for(1));
  EXPECT_NE(errors.seen()[0].find("QueueOptions::pausable"), std::string::npos);
  auto paused = worker->pause(url);
  ASSERT_FALSE(paused);
  EXPECT_NE(paused.error().message.find("QueueOptions::pausable"), std::string::npos);
  worker->stop(kPatience);
  ASSERT_TRUE(wait_until_left(url, "1 visible, 0 in flight"));
  EXPECT_EQ(visible(url), std::vector<std::string>{"job"});
}

}  // namespace
}  // namespace stanchion::worker
