#include "worker/consumer.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace stanchion::worker {
namespace {

using client::DeleteMessageBatchResult;
using client::Error;
using client::Outcome;
using client::ReceiveMessageResult;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const Instant kStart(hours(1));

Error network_error() {
  return {.code = client::code::kConnectionLost, .fault = client::Fault::kNetwork};
}
Error missing_queue() {
  return {.code = "QueueDoesNotExist", .fault = client::Fault::kSender};
}

// Keeps the calls of a consumer for the test, which answers them when it likes.
struct FakePort : ConsumerPort {
  client::CallId receive(std::uint64_t poll, std::size_t count) override {
    receives_.emplace(poll, count);
    return client::CallId{poll};
  }
  void cancel(client::CallId receive) override { cancelled_.push_back(receive); }
  void extend(ExtensionBatch batch) override { extensions_.push_back(std::move(batch)); }
  void remove(std::uint64_t batch, std::vector<std::string> receipt_handles) override {
    removals_.emplace(batch, std::move(receipt_handles));
  }
  void change_visibility(const Task& task, seconds timeout) override {
    changes_.emplace_back(task->message_id, timeout.count());
  }
  void tick_by(Instant time) override { wanted_ = time; }
  void lost(const Task& task, Loss loss) override { lost_[task->message_id] = loss; }
  void report(const std::string& what) override { reports_.push_back(what); }

  std::map<std::uint64_t, std::size_t> receives_;
  std::map<std::uint64_t, std::vector<std::string>> removals_;
  std::vector<ExtensionBatch> extensions_;
  std::vector<std::pair<std::string, std::int64_t>> changes_;
  std::vector<client::CallId> cancelled_;
  std::vector<std::string> reports_;
  std::map<std::string, Loss> lost_;
  Instant wanted_{};
};

// A consumer at a time of its own.
class ConsumerTest : public testing::Test, public FakePort {
 protected:
  static ConsumerOptions options() {
    return {.origin = {.queue_name = "q", .queue_url = "http://h/0/q", .queue_arn = "arn:q"},
            .visibility = {.period = seconds(10)}};
  }
  void open(ConsumerOptions with) { consumer_.emplace(std::move(with), *this, ids_); }

  void TearDown() override { consumer_->check_invariants(); }

  // Answers the oldest receive with as many messages.
  std::vector<Task> deliver(std::size_t count, const std::string& receive_count = "1") {
    ReceiveMessageResult result;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string number = std::to_string(++messages_);
      result.messages.push_back({.message_id = "m" + number,
                                 .receipt_handle = "r" + number,
                                 .attributes = {{"ApproximateReceiveCount", receive_count}}});
    }
    return answer_receive(std::move(result));
  }
  std::vector<Task> answer_receive(Outcome<ReceiveMessageResult> outcome) {
    const std::uint64_t poll = receives_.begin()->first;
    receives_.erase(poll);
    auto tasks = consumer_->received(poll, std::move(outcome), now_);
    consumer_->check_invariants();
    return tasks;
  }
  // Asks for `count` messages and gets them.
  std::vector<Task> hold(std::size_t count) {
    consumer_->poll({.places = count}, now_);
    return deliver(count);
  }

  void remove(const Task& task, bool others_follow = false) {
    consumer_->remove(
        task,
        [this](const Task& removed, bool deleted) { removed_[removed->message_id] = deleted; },
        others_follow, now_);
    consumer_->check_invariants();
  }
  // Answers the oldest batch of deletes.
  void answer_removal(Outcome<DeleteMessageBatchResult> outcome) {
    const auto batch = removals_.extract(removals_.begin());
    consumer_->removed(batch.key(), outcome, now_);
    consumer_->check_invariants();
  }
  static DeleteMessageBatchResult deleted(std::size_t count) {
    DeleteMessageBatchResult result;
    for (std::size_t i = 0; i < count; ++i) result.successful.push_back({.id = std::to_string(i)});
    return result;
  }

  // Answers the oldest batch of extensions.
  void answer_extension(Outcome<client::ChangeMessageVisibilityBatchResult> outcome) {
    std::vector<TaskId> tasks;
    for (const Extension& each : extensions_.front().extensions) tasks.push_back(each.task);
    extensions_.erase(extensions_.begin());
    consumer_->extended(tasks, outcome, now_);
    consumer_->check_invariants();
  }
  void pass(milliseconds time) {
    now_ += time;
    consumer_->tick(now_);
    consumer_->check_invariants();
  }
  std::vector<std::size_t> asked() const {
    std::vector<std::size_t> counts;
    for (const auto& [poll, count] : receives_) counts.push_back(count);
    return counts;
  }

  Instant now_ = kStart;
  TaskIds ids_;
  std::optional<Consumer> consumer_;
  int messages_ = 0;

  std::map<std::string, bool> removed_;
};

using Changes = std::vector<std::pair<std::string, std::int64_t>>;

// CU1, WK2.
TEST_F(ConsumerTest, AReceiveAsksForNoMoreThanThereArePlacesBesideTheOnesUnderWay) {
  open(options());
  EXPECT_EQ(consumer_->poll({.places = 0}, now_), std::nullopt);
  EXPECT_EQ(asked(), std::vector<std::size_t>());
  consumer_->poll({.places = 3, .polls_max = 4}, now_);
  EXPECT_EQ(asked(), std::vector<std::size_t>{3});
  // The places are taken, though nothing has come yet.
  consumer_->poll({.places = 3, .polls_max = 4}, now_);
  EXPECT_EQ(asked(), std::vector<std::size_t>{3});
  EXPECT_EQ(deliver(2).size(), 2u);
  consumer_->poll({.places = 1, .polls_max = 4}, now_);
  EXPECT_EQ(asked(), std::vector<std::size_t>{1});
}

// CU1.
TEST_F(ConsumerTest, SeveralReceivesAreUnderWayOnlyWhileMessagesComeAndOnlyFullOnes) {
  open(options());
  const PollBudget many{.places = 35, .polls_max = 4};
  consumer_->poll(many, now_);
  EXPECT_EQ(asked(), std::vector<std::size_t>{10});
  deliver(1);
  consumer_->poll(many, now_);
  EXPECT_EQ(asked(), (std::vector<std::size_t>{10, 10, 10}));
  deliver(0);
  consumer_->poll(many, now_);
  EXPECT_EQ(asked().size(), 2u);
}

TEST_F(ConsumerTest, TheRateHoldsBackReceivesAndGivesBackWhatWasNotUsed) {
  ConsumerOptions slow = options();
  slow.rate_max = 2;
  open(slow);
  consumer_->poll({.places = 10}, now_);
  EXPECT_EQ(asked(), std::vector<std::size_t>{2});
  deliver(2);
  EXPECT_EQ(consumer_->poll({.places = 10}, now_), now_ + milliseconds(500));
  EXPECT_TRUE(receives_.empty());
  now_ += milliseconds(500);
  consumer_->poll({.places = 10}, now_);
  EXPECT_EQ(asked(), std::vector<std::size_t>{1});
  deliver(0);
  consumer_->poll({.places = 10}, now_);
  EXPECT_EQ(asked(), std::vector<std::size_t>{1});
}

TEST_F(ConsumerTest, ReceivesThatFailAreTriedAgainLaterAndLaterUntilOneSucceeds) {
  open(options());
  const milliseconds waits[] = {milliseconds(250), milliseconds(500), milliseconds(1'000)};
  for (const milliseconds wait : waits) {
    consumer_->poll({.places = 1}, now_);
    answer_receive(network_error());
    EXPECT_EQ(consumer_->poll({.places = 1}, now_), now_ + wait);
    now_ += wait;
  }
  for (int i = 0; i < 20; ++i) {
    consumer_->poll({.places = 1}, now_);
    answer_receive(network_error());
    now_ = *consumer_->poll({.places = 1}, now_);
  }
  consumer_->poll({.places = 1}, now_);
  answer_receive(network_error());
  EXPECT_EQ(consumer_->poll({.places = 1}, now_), now_ + seconds(30));
  now_ += seconds(30);
  hold(1);
  consumer_->poll({.places = 1}, now_);
  answer_receive(network_error());
  EXPECT_EQ(consumer_->poll({.places = 1}, now_), now_ + milliseconds(250));
  EXPECT_TRUE(reports_.back().starts_with("cannot receive: ConnectionLost")) << reports_.back();
}

TEST_F(ConsumerTest, AfterAReceiveThatGotNothingTheNextOneMayHaveToWait) {
  ConsumerOptions short_polls = options();
  short_polls.after_nothing = seconds(1);
  open(short_polls);
  consumer_->poll({.places = 1}, now_);
  deliver(0);
  EXPECT_EQ(consumer_->poll({.places = 1}, now_), now_ + seconds(1));
  now_ += seconds(1);
  hold(1);
  consumer_->poll({.places = 1}, now_);
  EXPECT_EQ(asked().size(), 1u);
  consumer_->rest_until(now_ + seconds(5));
  deliver(0);
  EXPECT_EQ(consumer_->poll({.places = 1}, now_), now_ + seconds(5));
}

TEST_F(ConsumerTest, ATaskKnowsItsMessageAndItsQueueAndTheFiguresCountIt) {
  open(options());
  consumer_->poll({.places = 2}, now_);
  const std::vector<Task> tasks = deliver(2, "3");
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0]->message_id, "m1");
  EXPECT_EQ(tasks[0]->queue_name, "q");
  EXPECT_EQ(tasks[0]->queue_arn, "arn:q");
  EXPECT_EQ(tasks[0]->receive_count, 3);
  EXPECT_EQ(tasks[0]->visibility_end(), now_ + seconds(10));
  EXPECT_LT(tasks[0]->id, tasks[1]->id);
  EXPECT_EQ(consumer_->figures().received, 2u);
  EXPECT_EQ(consumer_->figures().redelivered, 2u);
  EXPECT_EQ(wanted_, now_ + seconds(5));
}

// CU2, WK4.
TEST_F(ConsumerTest, AMessageIsExtendedUntilItIsDeletedAlsoWhileItsDeleteIsUnderWay) {
  open(options());
  const Task task = hold(1)[0];
  for (int i = 0; i < 3; ++i) {
    pass(seconds(5));
    ASSERT_EQ(extensions_.size(), 1u);
    answer_extension({{.successful = {{.id = "0"}}}});
    EXPECT_EQ(task->visibility_end(), now_ + seconds(10));
  }
  remove(task);
  pass(seconds(5));
  EXPECT_EQ(extensions_.size(), 1u);
  answer_removal(deleted(1));
  // The answer comes after the message is gone.
  answer_extension({{.failed = {{.id = "0", .sender_fault = true}}}});
  pass(seconds(50));
  EXPECT_TRUE(extensions_.empty());
  EXPECT_TRUE(lost_.empty());
  EXPECT_EQ(consumer_->figures().extended, 3u);
}

// CU3: the extension could overtake the change, and hide the message for another period.
TEST_F(ConsumerTest, WhatGoesBackWaitsForAnExtensionUnderWay) {
  open(options());
  const std::vector<Task> tasks = hold(2);
  pass(seconds(5));
  consumer_->give_back(tasks);
  EXPECT_TRUE(changes_.empty());
  EXPECT_FALSE(consumer_->holds(tasks[0]->id));
  answer_extension({{.successful = {{.id = "0"}, {.id = "1"}}}});
  EXPECT_EQ(changes_, (Changes{{"m1", 0}, {"m2", 0}}));
  pass(seconds(20));
  EXPECT_TRUE(extensions_.empty());
  EXPECT_EQ(consumer_->figures().given_back, 2u);
}

TEST_F(ConsumerTest, TheLastMessageGoesBackFirstAndOneThatIsLostNotAtAll) {
  open(options());
  const std::vector<Task> tasks = hold(3);
  pass(seconds(5));
  answer_extension(
      {{.successful = {{.id = "0"}, {.id = "2"}}, .failed = {{.id = "1", .sender_fault = true}}}});
  EXPECT_EQ(lost_, (std::map<std::string, Loss>{{"m2", Loss::kGone}}));
  consumer_->give_back(tasks);
  EXPECT_EQ(changes_, (Changes{{"m3", 0}, {"m1", 0}}));
  EXPECT_EQ(consumer_->figures().lost, 1u);
}

TEST_F(ConsumerTest, AMessageThatIsPutBackBecomesVisibleAfterItsDelay) {
  open(options());
  const Task task = hold(1)[0];
  consumer_->put_back(task, seconds(7));
  consumer_->put_back(task, seconds(7));
  EXPECT_EQ(changes_, (Changes{{"m1", 7}}));
  EXPECT_EQ(consumer_->figures().given_back, 0u);
}

TEST_F(ConsumerTest, ExtensionsThatFailAreReportedAndTriedAgainBeforeTheMessageIsLost) {
  open(options());
  hold(1);
  pass(seconds(5));
  answer_extension(network_error());
  ASSERT_EQ(reports_.size(), 1u);
  EXPECT_TRUE(
      reports_[0].starts_with("cannot extend the visibility of 1 messages: ConnectionLost"));
  EXPECT_EQ(wanted_, now_ + milliseconds(1'250));
  pass(milliseconds(1'250));
  EXPECT_EQ(extensions_.size(), 1u);
  // So is one that the server could not do, of which no call has failed.
  answer_extension({{.failed = {{.id = "0", .sender_fault = false}}}});
  EXPECT_EQ(wanted_, now_ + milliseconds(1'250));
  pass(milliseconds(1'250));
  EXPECT_EQ(extensions_.size(), 1u);
  pass(seconds(3));
  EXPECT_EQ(lost_, (std::map<std::string, Loss>{{"m1", Loss::kExpired}}));
}

TEST_F(ConsumerTest, MessagesOfAQueueThatWasDeletedAreLostAtOnce) {
  open(options());
  const std::vector<Task> tasks = hold(2);
  pass(seconds(5));
  answer_extension(missing_queue());
  EXPECT_EQ(lost_, (std::map<std::string, Loss>{{"m1", Loss::kGone}, {"m2", Loss::kGone}}));
  EXPECT_FALSE(consumer_->holds(tasks[0]->id));
}

TEST_F(ConsumerTest, DeletesLeaveInFullBatchesOrAfterAMomentOrWhenNothingElseFollows) {
  open(options());
  const std::vector<Task> tasks = hold(10);
  const std::vector<Task> more = hold(3);
  for (const Task& task : tasks) remove(task, true);
  ASSERT_EQ(removals_.size(), 1u);
  EXPECT_EQ(removals_.begin()->second.size(), 10u);
  remove(more[0], true);
  EXPECT_EQ(wanted_, now_ + milliseconds(5));
  EXPECT_EQ(removals_.size(), 1u);
  pass(milliseconds(5));
  EXPECT_EQ(removals_.size(), 2u);
  remove(more[1], true);
  remove(more[2], false);
  ASSERT_EQ(removals_.size(), 3u);
  EXPECT_EQ(removals_.rbegin()->second.size(), 2u);
}

// CU4.
TEST_F(ConsumerTest, ADeleteThatFailsIsTriedAgainUntilItSucceeds) {
  open(options());
  const std::vector<Task> tasks = hold(3);
  for (const Task& task : tasks) remove(task, task != tasks.back());
  // One is deleted, one failed, and the third is not in the answer.
  answer_removal({{.successful = {{.id = "0"}}, .failed = {{.id = "1", .sender_fault = false}}}});
  EXPECT_EQ(removed_, (std::map<std::string, bool>{{"m1", true}}));
  EXPECT_EQ(wanted_, now_ + milliseconds(500));
  EXPECT_EQ(reports_.size(), 2u);
  pass(milliseconds(500));
  pass(milliseconds(5));
  ASSERT_EQ(removals_.size(), 1u);
  answer_removal(network_error());
  pass(milliseconds(500));
  pass(milliseconds(5));
  answer_removal(deleted(2));
  EXPECT_EQ(removed_, (std::map<std::string, bool>{{"m1", true}, {"m2", true}, {"m3", true}}));
  EXPECT_FALSE(consumer_->holds(tasks[2]->id));
}

// CU4.
TEST_F(ConsumerTest, ADeleteIsGivenUpIfTheServerRefusesItOrTheMessageIsLost) {
  open(options());
  const std::vector<Task> tasks = hold(2);
  remove(tasks[0]);
  answer_removal(missing_queue());
  EXPECT_EQ(removed_, (std::map<std::string, bool>{{"m1", false}}));
  remove(tasks[1]);
  pass(seconds(5));
  answer_extension({{.failed = {{.id = "0", .sender_fault = true}}}});
  EXPECT_FALSE(consumer_->holds(tasks[1]->id));
  answer_removal(network_error());
  EXPECT_EQ(removed_, (std::map<std::string, bool>{{"m1", false}, {"m2", false}}));
  pass(seconds(50));
  EXPECT_TRUE(removals_.empty());
}

// CU4: a server that is asked too often may do it later.
TEST_F(ConsumerTest, ADeleteThatIsThrottledIsTriedAgain) {
  open(options());
  remove(hold(1)[0]);
  answer_removal(
      Error{.code = "RequestThrottled", .fault = client::Fault::kSender, .throttled = true});
  pass(milliseconds(500));
  pass(milliseconds(5));
  answer_removal(deleted(1));
  EXPECT_EQ(removed_, (std::map<std::string, bool>{{"m1", true}}));
}

TEST_F(ConsumerTest, AStopSendsDeletesCancelsReceivesAndGivesBackWhatStillComes) {
  open(options());
  const std::vector<Task> tasks = hold(2);
  remove(tasks[0], true);
  consumer_->poll({.places = 4}, now_);
  consumer_->stop();
  EXPECT_EQ(removals_.size(), 1u);
  EXPECT_EQ(cancelled_.size(), 1u);
  EXPECT_TRUE(deliver(2).empty());
  EXPECT_EQ(changes_, (Changes{{"m4", 0}, {"m3", 0}}));
  EXPECT_EQ(consumer_->poll({.places = 4}, now_), std::nullopt);
  EXPECT_TRUE(receives_.empty());
  // What is held stays so.
  EXPECT_TRUE(consumer_->holds(tasks[1]->id));
  pass(seconds(5));
  EXPECT_EQ(extensions_.size(), 1u);
}

TEST_F(ConsumerTest, AReceiveThatWasCancelledIsNoFailure) {
  open(options());
  consumer_->poll({.places = 1}, now_);
  consumer_->cancel_polls();
  answer_receive(Error{.code = client::code::kCancelled, .fault = client::Fault::kLocal});
  EXPECT_TRUE(reports_.empty());
  consumer_->poll({.places = 1}, now_);
  EXPECT_EQ(asked().size(), 1u);
}

}  // namespace
}  // namespace stanchion::worker
