// The history of the queues: exact sums over crashes, what becomes of old points, and how they are
// read.
#include "history/history.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/text.h"
#include "history/history_test_kit.h"
#include "history/open.h"
#include "os/temporary_directory.h"
#include "store/rocks_store.h"
#include "store/small_files.h"

namespace stanchion::history {
namespace {

using namespace std::literals;

class HistoryTest : public testing::Test {
 protected:
  HistoryTest() { restart(); }

  // What a crash leaves: the store. Counts of the process begin at 0.
  void restart() {
    auto opened = History::open(std::make_unique<TestStore>(disk_), begin_of(minute_), kPlenty);
    ASSERT_TRUE(opened) << opened.error().message;
    history_ = std::move(*opened);
    for (auto& [name, sample] : samples_)
      sample.totals.empty_receives = sample.totals.deleted_again = sample.totals.deduplicated = 0;
  }

  Sample& queue(const std::string& name) {
    const auto [at, is_new] = samples_.try_emplace(name);
    if (is_new) {
      at->second.queue = ref(name);
      at->second.created = begin_of(minute_);
    }
    return at->second;
  }

  void send(const std::string& name, std::uint64_t count, std::uint64_t size) {
    Sample& sample = queue(name);
    sample.totals.sent += count;
    sample.totals.sent_bytes += count * size;
    for (std::uint64_t i = 0; i < count; ++i) sample.sizes.add(size, begin_of(minute_) + 1s);
  }

  // The minute is over.
  Status close() {
    const Status status = record({minute_, minute_});
    ++minute_;
    return status;
  }
  Status record(const Closing& closing) {
    std::vector<Sample> samples;
    for (const auto& [name, sample] : samples_) samples.push_back(sample);
    return history_->record(closing, samples);
  }

  std::vector<Bucket> read(const std::string& name, Metric metric, Duration period = 1min,
                           bool with_spread = false) {
    auto buckets = read_all(*history_, {.queue = ref(name),
                                        .metric = metric,
                                        .from = begin_of(kFirst),
                                        .until = begin_of(minute_ + 1),
                                        .period = period,
                                        .with_spread = with_spread});
    EXPECT_TRUE(buckets) << buckets.error().message;
    return buckets ? *buckets : std::vector<Bucket>();
  }
  std::uint64_t sum(const std::string& name, Metric metric, Duration period = 1min) {
    std::uint64_t all = 0;
    for (const Bucket& bucket : read(name, metric, period)) all += bucket.sum;
    return all;
  }
  void clean() {
    for (int step = 0; step < 1'000; ++step) {
      const auto more = history_->expire_some(begin_of(minute_));
      ASSERT_TRUE(more);
      if (!*more) return;
    }
    FAIL() << "it does not end";
  }

  static QueueRef ref(const std::string& name) { return {"000000000000", "us-east-1", name}; }

  Disk disk_;
  Minute minute_ = kFirst;
  std::map<std::string, Sample> samples_;
  std::unique_ptr<History> history_;
};

TEST_F(HistoryTest, AMinuteHasWhatHappenedInIt) {
  send("q", 3, 100);
  queue("q").totals.received = 2;
  queue("q").totals.deleted = 1;
  queue("q").totals.deleted_again = 1;
  queue("q").gauges.set(Metric::kApproximateNumberOfMessagesVisible, 5);
  ASSERT_TRUE(close());
  send("q", 1, 10);
  ASSERT_TRUE(close());

  const auto sent = read("q", Metric::kNumberOfMessagesSent);
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].at, begin_of(kFirst));
  EXPECT_EQ(sent[0].sum, 3U);
  EXPECT_EQ(sent[0].samples, 1U);
  EXPECT_EQ(sent[1].sum, 1U);
  EXPECT_EQ(sum("q", Metric::kNumberOfMessagesReceived), 2U);
  EXPECT_EQ(sum("q", Metric::kNumberOfMessagesDeleted), 2U) << "repeated deletes count, as on AWS";
  const auto visible = read("q", Metric::kApproximateNumberOfMessagesVisible, 5min);
  ASSERT_EQ(visible.size(), 1U);
  EXPECT_EQ(visible[0].samples, 2U);
  EXPECT_EQ(visible[0].max, 5U);
}

TEST_F(HistoryTest, SizesHaveTheirSumNumberSmallestAndLargest) {
  send("q", 3, 100);
  send("q", 1, 7'000);
  ASSERT_TRUE(close());
  const auto sizes = read("q", Metric::kSentMessageSize, 1min, true);
  ASSERT_EQ(sizes.size(), 1U);
  EXPECT_EQ(sizes[0].samples, 4U);
  EXPECT_EQ(sizes[0].sum, 7'300U);
  EXPECT_EQ(sizes[0].min, 100U);
  EXPECT_EQ(sizes[0].max, 7'000U);
  std::uint64_t weight = 0;
  for (const auto& [value, times] : sizes[0].spread) weight += times;
  EXPECT_EQ(weight, 4U);
  ASSERT_TRUE(close());
  EXPECT_EQ(read("q", Metric::kSentMessageSize).size(), 1U) << "a minute without sends has none";
}

TEST_F(HistoryTest, ACrashMovesNothingTwiceAndLosesNothing) {
  send("q", 3, 10);
  ASSERT_TRUE(close());
  send("q", 4, 10);
  restart();
  EXPECT_EQ(sum("q", Metric::kNumberOfMessagesSent), 3U);
  send("q", 2, 10);
  ASSERT_TRUE(close());
  EXPECT_EQ(sum("q", Metric::kNumberOfMessagesSent), 9U);
  restart();
  ASSERT_TRUE(close());
  EXPECT_EQ(sum("q", Metric::kNumberOfMessagesSent), 9U);
  EXPECT_EQ(sum("q", Metric::kSentMessageSize), 90U);
}

TEST_F(HistoryTest, PartsOfAMinuteAddUpToOnePoint) {
  send("q", 3, 10);
  queue("q").totals.empty_receives = 2;
  queue("q").gauges.set(Metric::kApproximateNumberOfMessagesVisible, 3);
  ASSERT_TRUE(record({minute_, minute_}));
  restart();
  send("q", 2, 10);
  queue("q").totals.empty_receives = 1;
  queue("q").gauges.set(Metric::kApproximateNumberOfMessagesVisible, 5);
  ASSERT_TRUE(close());
  const auto sent = read("q", Metric::kNumberOfMessagesSent);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].sum, 5U);
  EXPECT_EQ(sum("q", Metric::kNumberOfEmptyReceives), 3U);
  EXPECT_EQ(sum("q", Metric::kApproximateNumberOfMessagesVisible), 5U) << "the later one";
}

TEST_F(HistoryTest, WhatCouldNotBeWrittenIsInTheNextPoint) {
  send("q", 3, 10);
  disk_.full = true;
  const Status full = close();
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().os_error, ENOSPC);
  disk_.full = false;
  send("q", 1, 10);
  ASSERT_TRUE(close());
  EXPECT_EQ(sum("q", Metric::kNumberOfMessagesSent), 4U);
}

TEST_F(HistoryTest, WhatHadHappenedBeforeItBeganIsNotInIt) {
  Sample& old = queue("old");
  old.created = begin_of(kFirst - 100);
  old.totals.sent = 1'000;
  ASSERT_TRUE(close());
  EXPECT_EQ(sum("old", Metric::kNumberOfMessagesSent), 0U);
  old.totals.sent += 5;
  ASSERT_TRUE(close());
  EXPECT_EQ(sum("old", Metric::kNumberOfMessagesSent), 5U);
}

TEST_F(HistoryTest, TotalsThatWentBackBeginAnew) {
  send("q", 10, 10);
  ASSERT_TRUE(close());
  Sample late = queue("q");
  late.totals.sent = 9;
  ASSERT_TRUE(history_->record({minute_, minute_}, std::vector{late}))
      << "taken before the last one";
  EXPECT_EQ(sum("q", Metric::kNumberOfMessagesSent), 10U);
  restart();
  queue("q").totals.sent = 4;  // A backup was restored.
  ASSERT_TRUE(close());
  queue("q").totals.sent = 6;
  ASSERT_TRUE(close());
  EXPECT_EQ(sum("q", Metric::kNumberOfMessagesSent), 12U);
}

TEST_F(HistoryTest, AQueueThatReplacesAnotherContinuesItsHistory) {
  send("q", 10, 10);
  ASSERT_TRUE(close());
  send("q", 3, 10);
  Sample gone = queue("q");
  gone.deleted = true;
  samples_.clear();
  ++minute_;
  send("q", 2, 10);
  --minute_;
  ASSERT_TRUE(history_->record({minute_, minute_}, std::vector{gone, queue("q")}));
  EXPECT_EQ(sum("q", Metric::kNumberOfMessagesSent), 15U);
  ASSERT_TRUE(history_->record({minute_, minute_}, std::vector{gone, queue("q")}));
  EXPECT_EQ(sum("q", Metric::kNumberOfMessagesSent), 15U) << "last words are said once";
}

TEST_F(HistoryTest, AnIdleQueueHasNoPoints) {
  queue("q").active = false;
  ASSERT_TRUE(close());
  EXPECT_TRUE(read("q", Metric::kNumberOfMessagesSent).empty());
  queue("q").totals.sent = 1;  // As after a restart, when nobody knows that it was used.
  ASSERT_TRUE(close());
  EXPECT_EQ(sum("q", Metric::kNumberOfMessagesSent), 1U);
}

TEST_F(HistoryTest, OldMinutesBecomeFiveMinutesWithTheSameSums) {
  for (int i = 0; i < 10; ++i) {
    send("q", 1, 100);
    send("r.fifo", 2, 50);
    queue("q").gauges.set(Metric::kApproximateNumberOfMessagesVisible,
                          static_cast<std::uint64_t>(i));
    ASSERT_TRUE(close());
  }
  const auto before = read("q", Metric::kSentMessageSize, 5min);
  minute_ = kFirst + kMinutesADay + kMinutesKept;
  clean();
  EXPECT_EQ(sum("q", Metric::kNumberOfMessagesSent, 1min), 0U) << "minutes are gone";
  EXPECT_EQ(sum("q", Metric::kNumberOfMessagesSent, 5min), 10U);
  EXPECT_EQ(sum("r.fifo", Metric::kNumberOfMessagesSent, 5min), 20U);
  const auto visible = read("q", Metric::kApproximateNumberOfMessagesVisible, 5min);
  ASSERT_EQ(visible.size(), 2U);
  EXPECT_EQ(visible[1].min, 5U);
  EXPECT_EQ(visible[1].max, 9U);
  EXPECT_EQ(visible[1].sum, 35U);
  EXPECT_EQ(visible[1].samples, 5U);
  const auto sizes = read("q", Metric::kSentMessageSize, 5min);
  ASSERT_EQ(sizes.size(), before.size());
  EXPECT_EQ(sizes[0].sum, before[0].sum);
  EXPECT_EQ(sizes[0].max, before[0].max);
}

// A process that starts after weeks puts what the last one had not written behind its last minute,
// of a day that may be merged already.
TEST_F(HistoryTest, WhatComesLateToAMergedDayIsAdded) {
  for (int i = 0; i < 2; ++i) {
    send("q", 3, 100);
    send("r", 1, 100);
    ASSERT_TRUE(close());
  }
  const Minute late = minute_;
  minute_ = kFirst + 2 * kMinutesADay + kMinutesKept;
  clean();
  EXPECT_EQ(sum("q", Metric::kNumberOfMessagesSent, 5min), 6U);
  restart();
  send("q", 4, 100);
  ASSERT_TRUE(record({late, late}));
  clean();
  EXPECT_EQ(sum("q", Metric::kNumberOfMessagesSent, 5min), 10U);
  EXPECT_EQ(sum("r", Metric::kNumberOfMessagesSent, 5min), 2U);
  const auto sent = read("q", Metric::kNumberOfMessagesSent, 5min);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].min, 3U);
  EXPECT_EQ(sent[0].max, 4U);
}

TEST_F(HistoryTest, AfterTwoMonthsNothingIsLeft) {
  send("q", 1, 100);
  ASSERT_TRUE(close());
  samples_.clear();
  minute_ = kFirst + kMinutesADay + kMinutesKept;
  clean();
  EXPECT_EQ(history_->queues().size(), 1U);
  minute_ = kFirst + kMinutesADay + kFiveMinutesKept;
  clean();
  EXPECT_TRUE(history_->queues().empty());
  EXPECT_EQ(disk_.entries.size(), 1U) << "all that is left says when the last record was made";
}

TEST_F(HistoryTest, AQueueThatIsThereIsNotForgotten) {
  send("q", 7, 100);
  ASSERT_TRUE(close());
  queue("q").active = false;
  for (int day = 0; day < 70; ++day) {
    minute_ += kMinutesADay;
    ASSERT_TRUE(record({minute_, minute_}));
    clean();
  }
  send("q", 1, 100);
  ASSERT_TRUE(close());
  EXPECT_EQ(sum("q", Metric::kNumberOfMessagesSent), 1U) << "nothing is counted anew";
}

TEST_F(HistoryTest, AnIdleQueueFromBeforeIsCountedFromItsFirstSampleOn) {
  Sample& old = queue("old");
  old.created = begin_of(kFirst - 100);
  old.totals.sent = 1'000;
  old.active = false;
  ASSERT_TRUE(close());
  EXPECT_TRUE(read("old", Metric::kNumberOfMessagesSent).empty());
  restart();
  old.totals.sent += 5;
  old.active = true;
  ASSERT_TRUE(close());
  EXPECT_EQ(sum("old", Metric::kNumberOfMessagesSent), 5U);
}

TEST_F(HistoryTest, MetricsOfOtherKindsOfQueuesHaveNoValues) {
  send("q", 1, 100);
  send("r.fifo", 1, 100);
  ASSERT_TRUE(close());
  EXPECT_TRUE(read("q", Metric::kNumberOfDeduplicatedSentMessages).empty());
  EXPECT_EQ(read("r.fifo", Metric::kNumberOfDeduplicatedSentMessages).size(), 1U);
  EXPECT_TRUE(read("q", Metric::kApproximateNumberOfNoisyGroups).empty()) << "it has no groups";
  queue("q").gauges.fair_minutes = 1;
  ASSERT_TRUE(close());
  EXPECT_EQ(read("q", Metric::kApproximateNumberOfNoisyGroups).size(), 1U);
}

TEST_F(HistoryTest, PeriodsBeginAtTheOrigin) {
  for (int i = 0; i < 7; ++i) {
    send("q", 1, 1);
    ASSERT_TRUE(close());
  }
  const auto buckets = read_all(*history_, {.queue = ref("q"),
                                            .metric = Metric::kNumberOfMessagesSent,
                                            .from = begin_of(kFirst + 1),
                                            .until = begin_of(kFirst + 7),
                                            .period = 3min,
                                            .origin = begin_of(kFirst + 1)});
  ASSERT_TRUE(buckets);
  ASSERT_EQ(buckets->size(), 2U);
  EXPECT_EQ((*buckets)[0].at, begin_of(kFirst + 1));
  EXPECT_EQ((*buckets)[0].sum, 3U);
}

// A disk that is full from some commit on.
class FillingStore final : public store::Store {
 public:
  FillingStore(Disk& disk, int commits) : inner_(disk), commits_(commits) {}
  Status commit(const Batch& batch) override {
    if (commits_-- <= 0) return fail("no room", ENOSPC);
    return inner_.commit(batch);
  }
  Status scan(const KeyRange& range, const store::EntryVisitor& visit) const override {
    return inner_.scan(range, visit);
  }
  Result<std::optional<std::string>> get(std::string_view key) const override {
    return inner_.get(key);
  }
  std::uint64_t size_on_disk() const override { return inner_.size_on_disk(); }

 private:
  TestStore inner_;
  int commits_;
};

TEST(HistoryParts, ACrashBetweenTwoPartsOfAMinuteCountsNothingTwice) {
  Disk disk;
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < 25'000; ++i) {
    samples.push_back(deleted_queue("1", i, 10));
    samples.back().deleted = false;
  }
  {
    auto history =
        History::open(std::make_unique<FillingStore>(disk, 2), begin_of(kFirst), kPlenty);
    ASSERT_TRUE(history);
    EXPECT_FALSE((*history)->record({kFirst, kFirst}, samples)) << "its second part";
    EXPECT_EQ((*history)->queues().size(), 10'000U);
  }
  auto history = History::open(std::make_unique<TestStore>(disk), begin_of(kFirst + 1), kPlenty);
  ASSERT_TRUE(history && (*history)->record({kFirst, kFirst}, samples));
  EXPECT_EQ((*history)->queues().size(), 25'000U);
  for (const std::size_t i : {std::size_t{0}, std::size_t{9'999}, std::size_t{10'000}}) {
    const auto sent = read_all(**history, {.queue = samples[i].queue,
                                           .metric = Metric::kNumberOfMessagesSent,
                                           .from = begin_of(kFirst),
                                           .until = begin_of(kFirst + 2)});
    ASSERT_TRUE(sent && sent->size() == 1) << i;
    EXPECT_EQ(sent->front().sum, 1U) << i;
  }
}

TEST(HistoryParts, AQueueThatIsMadeAgainTwiceInAMinuteIsCountedThreeTimes) {
  std::vector<Sample> samples;
  for (int i = 0; i < 2; ++i) {
    samples.push_back(deleted_queue("1", 0, 10));
    samples.back().created += i * 1s;
  }
  for (std::size_t i = 1; i < 10'000; ++i) samples.push_back(deleted_queue("1", i, 10));
  samples.push_back(deleted_queue("1", 0, 10));
  samples.back().created += 2s;
  samples.back().deleted = false;
  Disk disk;
  auto history = History::open(std::make_unique<TestStore>(disk), begin_of(kFirst), kPlenty);
  ASSERT_TRUE(history && (*history)->record({kFirst, kFirst}, samples));
  const auto sent = read_all(**history, {.queue = samples[0].queue,
                                         .metric = Metric::kNumberOfMessagesSent,
                                         .from = begin_of(kFirst),
                                         .until = begin_of(kFirst + 1)});
  ASSERT_TRUE(sent && sent->size() == 1);
  EXPECT_EQ(sent->front().sum, 3U);
}

// Otherwise a crowd of connections would cost the history.
TEST(HistoryOnDisk, WithoutFileDescriptorsItIsNotTakenForDamaged) {
  const os::TemporaryDirectory scratch;
  const std::string path = scratch.path() + "/metrics";
  ASSERT_TRUE(open_history(path, begin_of(kFirst), kPlenty));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto refused = open_history(path, begin_of(kFirst), kPlenty);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(is_passing(refused.error())) << refused.error().message;
  const auto opened = open_history(path, begin_of(kFirst), kPlenty);
  EXPECT_TRUE(opened) << opened.error().message;
}

TEST(HistoryOnDisk, DamageDoesNotPass) {
  const os::TemporaryDirectory scratch;
  const std::string path = scratch.path() + "/metrics";
  ASSERT_TRUE(open_history(path, begin_of(kFirst), kPlenty));
  std::filesystem::remove(path + "/CURRENT");
  const auto refused = open_history(path, begin_of(kFirst), kPlenty);
  ASSERT_FALSE(refused);
  EXPECT_FALSE(is_passing(refused.error())) << refused.error().message;
}

// One queue, every minute twice, as when the clock is moved: the second commit overlaps the first,
// so files lie in up to three levels, each with fewer than a crowd.
TEST(HistoryOnDisk, AnyNumberOfMinutesIsInFewFiles) {
  const os::TemporaryDirectory scratch;
  auto opened = open_history(scratch.path() + "/metrics", begin_of(kFirst), kPlenty);
  ASSERT_TRUE(opened) << opened.error().message;
  Sample jobs;
  jobs.queue = {"000000000000", "us-east-1", "jobs"};
  jobs.created = begin_of(kFirst);
  for (Minute minute = kFirst; minute < kFirst + 120; ++minute) {
    for (int part = 0; part < 2; ++part) {
      ++jobs.totals.sent;
      ASSERT_TRUE((*opened)->record({minute, minute}, std::vector{jobs}));
    }
  }
  const auto& store = dynamic_cast<const store::RocksStore&>((*opened)->store());
  // RocksDB merges those of the first level by itself, when it gets to it.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (store.figures().files >= 3 * store::kCrowdMin &&
         std::chrono::steady_clock::now() < deadline) {
    ASSERT_TRUE(const_cast<store::RocksStore&>(store).reclaim());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_LT(store.figures().files, 3 * store::kCrowdMin);
  const auto buckets = read_all(**opened, {.queue = jobs.queue,
                                           .metric = Metric::kNumberOfMessagesSent,
                                           .from = begin_of(kFirst),
                                           .until = begin_of(kFirst + 120)});
  ASSERT_TRUE(buckets);
  EXPECT_EQ(buckets->size(), 120U);
  for (const Bucket& bucket : *buckets) EXPECT_EQ(bucket.sum, 2U);
}

TEST_F(HistoryTest, DamageIsSaidAndNotGuessedAt) {
  send("q", 1, 1);
  ASSERT_TRUE(close());
  for (auto& [key, value] : disk_.entries) {
    if (key.front() != 2 && key.front() != 3) continue;
    const std::string good = std::exchange(value, value.substr(0, value.size() / 2));
    EXPECT_FALSE(History::open(std::make_unique<TestStore>(disk_), begin_of(minute_), kPlenty));
    value = good;
  }
}

// Minutes of the queue with the most to say, and of one that is only there.
TEST_F(HistoryTest, AMinuteTakesFewBytes) {
  Point busy;
  for (std::size_t i = 0; i < kMetricCount; ++i) busy.set(static_cast<Metric>(i), 1'000'000 + i);
  for (std::uint64_t size = 1; size < 1 << 20; size += size / 8 + 1)
    for (int i = 0; i < 100; ++i) busy.sizes.add(size);
  EXPECT_LE(encode(busy).size(), 300U);
  EXPECT_LE(encode(Point()).size(), 3U);
  EXPECT_EQ(decode_point(encode(busy)), busy);
  Point idle;
  EXPECT_EQ(decode_point(encode(idle)), idle);
}

// docs/formats.md has the same bytes.
TEST(HistoryFormat, PointsAreStoredAsDocumented) {
  Point point;
  point.set(Metric::kNumberOfMessagesSent, 2);
  point.set(Metric::kSentMessageSize, 10);
  point.set(Metric::kApproximateNumberOfMessagesVisible, 1);
  point.sizes.add(5);
  point.sizes.add(5);
  EXPECT_EQ(to_hex(encode(point)), "010061020a010105000502");
}

// A metric that is said to be present and is 0 would be left out when the point is written again,
// and the sizes of its messages with it.
TEST(HistoryFormat, AMetricThatIsPresentIsNot0) {
  EXPECT_TRUE(decode_point("\x01\x00\x21\x08\x01\x01\x0F\x00\x0B\x03"sv));
  EXPECT_FALSE(decode_point("\x01\x00\x21\x08\x00\x01\x0F\x00\x0B\x03"sv));
}

// Nobody may change these without a new version: histories of released servers have them.
TEST_F(HistoryTest, TheStoreHasTheEntriesThatReleasesWrote) {
  send("jobs", 2, 5);
  queue("jobs").gauges.set(Metric::kApproximateNumberOfMessagesVisible, 1);
  ASSERT_TRUE(close());
  std::vector<std::string> entries;
  for (const auto& [key, value] : disk_.entries)
    entries.push_back(to_hex(key) + " " + to_hex(value));
  const std::vector<std::string> expected{
      "01 01c0f8e90d", "0200000001 0c3030303030303030303030300975732d656173742d31046a6f6273",
      "0300000001 0018811b95010000c1f8e90d0104020a0000",
      "0400004eaa000000010000 010061020a010105000502"};
  EXPECT_EQ(entries, expected);
}

TEST(HistoryFiles, AreReadAgainAndSetAside) {
  const os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/metrics";
  Sample sample;
  sample.queue = {"000000000000", "us-east-1", "q"};
  sample.created = begin_of(kFirst);
  sample.totals.sent = 3;
  {
    auto history = open_history(path, begin_of(kFirst), kPlenty);
    ASSERT_TRUE(history) << history.error().message;
    ASSERT_TRUE((*history)->record({kFirst, kFirst}, std::vector{sample}));
  }
  {
    auto again = open_history(path, begin_of(kFirst + 1), kPlenty);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ((*again)->last_minute(), kFirst);
    EXPECT_EQ((*again)->queues().size(), 1U);
  }
  const auto aside = set_aside(path);
  ASSERT_TRUE(aside);
  const auto anew = open_history(path, begin_of(kFirst + 2), kPlenty);
  ASSERT_TRUE(anew) << anew.error().message;
  EXPECT_TRUE((*anew)->queues().empty());
}

// A disk that refuses every write is tried again each minute.
TEST(HistoryFiles, WhatWasSetAsideStaysIfNoneCanBeginAtItsPlace) {
  const os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/metrics";
  ASSERT_TRUE(open_history(path, begin_of(kFirst), kPlenty));
  const auto aside = set_aside(path);
  ASSERT_TRUE(aside);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_NE(::signal(SIGXFSZ, SIG_IGN), SIG_ERR);
  rlimit none = before;
  none.rlim_cur = 0;
  for (int minute = 0; minute < 3; ++minute) {
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
    const auto refused = open_history(path, begin_of(kFirst), kPlenty);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    ASSERT_FALSE(refused);
    EXPECT_FALSE(is_passing(refused.error())) << refused.error().message;
    EXPECT_FALSE(set_aside(path)) << "there is nothing to set aside";
    EXPECT_TRUE(std::filesystem::exists(*aside + "/CURRENT"));
  }
  const auto anew = open_history(path, begin_of(kFirst), kPlenty);
  EXPECT_TRUE(anew) << anew.error().message;
}

}  // namespace
}  // namespace stanchion::history
