#include "journal/local_journal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "journal/memory_journal.h"
#include "journal/test_support.h"
#include "os/real_directory.h"
#include "os/temporary_directory.h"

namespace stanchion::journal {
namespace {

constexpr SegmentOptions kOptions{.segment_size = 13 << 20, .reserve_size = 13 << 20};

// Records the events and lets a test wait for them.
class Ear {
 public:
  JournalEvents events() {
    return {.durable =
                [this](Position position) {
                  std::unique_lock lock(mutex_);
                  EXPECT_GT(position, durable_);
                  EXPECT_FALSE(failure_);
                  durable_ = position;
                  ++calls_;
                  changed_.notify_all();
                  changed_.wait(lock, [this] { return !held_; });
                },
            .failed =
                [this](const Failure& failure) {
                  const std::lock_guard lock(mutex_);
                  EXPECT_FALSE(failure_);
                  failure_ = failure;
                  changed_.notify_all();
                }};
  }

  // The thread that reports a commit waits until release(), so that everything appended meanwhile
  // goes into one commit, however the threads are scheduled.
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }

  void wait_durable(Position position) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return durable_ >= position; });
  }

  Failure wait_failed() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failure_.has_value(); });
    return *failure_;
  }

  Position durable() {
    const std::lock_guard lock(mutex_);
    return durable_;
  }
  int calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Position durable_;
  int calls_ = 0;
  bool held_ = false;
  std::optional<Failure> failure_;
};

class LocalJournalTest : public testing::Test {
 protected:
  void SetUp() override { directory_ = std::move(*os::open_real_directory(temporary_.path())); }

  std::unique_ptr<LocalJournal> open() { return open(*directory_); }
  std::unique_ptr<LocalJournal> open(os::Directory& directory) {
    auto opened = LocalJournal::open(directory, kTestShard, kOptions, entropy_, clock_);
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }

  static void hold_at_a_first_commit(LocalJournal& journal, Ear& ear) {
    ear.hold();
    journal.start(ear.events());
    journal.append("first");
    journal.flush();
    ear.wait_durable(Position(1));
  }

  std::vector<std::string> records() {
    std::vector<std::string> found;
    EXPECT_TRUE(open()->replay(Position(1), [&](Position, std::string_view record) -> Status {
      found.emplace_back(record);
      return {};
    }));
    return found;
  }

  std::ptrdiff_t segments() {
    const auto names = directory_->list();
    EXPECT_TRUE(names);
    return std::ranges::count_if(
        *names, [](const std::string& name) { return parse_segment_name(name).has_value(); });
  }

  os::TemporaryDirectory temporary_;
  std::unique_ptr<os::Directory> directory_;
  os::SystemEntropy entropy_;
  os::SystemClock clock_;
};

TEST_F(LocalJournalTest, AFlushedRecordBecomesDurableAndIsThereAfterAReopening) {
  {
    Ear ear;
    const auto journal = open();
    journal->start(ear.events());
    EXPECT_EQ(journal->append("one"), Position(1));
    EXPECT_EQ(journal->append("two"), Position(2));
    journal->flush();
    ear.wait_durable(Position(2));
    EXPECT_EQ(journal->durable(), Position(2));
    EXPECT_EQ(journal->room(), Room::kPlenty);
  }
  EXPECT_EQ(records(), (std::vector<std::string>{"one", "two"}));
}

TEST_F(LocalJournalTest, CloseMakesDurableWhatWasNeverFlushed) {
  Ear ear;
  {
    const auto journal = open();
    journal->start(ear.events());
    for (int i = 0; i < 100; ++i) journal->append(std::to_string(i));
    EXPECT_TRUE(journal->close());
  }
  EXPECT_EQ(ear.durable(), Position(100));
  EXPECT_EQ(records().size(), 100u);
}

TEST_F(LocalJournalTest, WhatIsAppendedDuringACommitIsTheNextCommit) {
  Ear ear;
  {
    const auto journal = open();
    hold_at_a_first_commit(*journal, ear);
    for (int i = 0; i < 100; ++i) journal->append(std::to_string(i));
    ear.release();
    EXPECT_TRUE(journal->close());
  }
  EXPECT_EQ(ear.durable(), Position(101));
  EXPECT_EQ(ear.calls(), 2) << "the first, and one for all others";
  EXPECT_EQ(records().size(), 101u);
}

TEST_F(LocalJournalTest, MoreThanAFrameHoldsIsCommittedInSeveral) {
  Ear ear;
  const std::string large(limits::kRecordSizeMax, 'L');
  {
    const auto journal = open();
    hold_at_a_first_commit(*journal, ear);
    journal->append(large);
    journal->append("small");
    journal->append(large);
    ear.release();
    EXPECT_TRUE(journal->close());
  }
  EXPECT_EQ(ear.calls(), 3);
  EXPECT_EQ(records(), (std::vector<std::string>{"first", large, "small", large}));
}

TEST_F(LocalJournalTest, APersistentStreamOfAppendsIsCommittedInOrder) {
  Ear ear;
  constexpr int kCount = 20'000;
  {
    const auto journal = open();
    journal->start(ear.events());
    for (int i = 1; i <= kCount; ++i) {
      ASSERT_EQ(journal->append(std::to_string(i)), Position(static_cast<std::uint64_t>(i)));
      if (i % 7 == 0) journal->flush();
    }
    journal->flush();
    ear.wait_durable(Position(kCount));
    EXPECT_TRUE(journal->close());
  }
  const auto found = records();
  ASSERT_EQ(found.size(), static_cast<std::size_t>(kCount));
  for (int i = 1; i <= kCount; ++i)
    ASSERT_EQ(found[static_cast<std::size_t>(i - 1)], std::to_string(i));
}

TEST_F(LocalJournalTest, WhatIsNotFlushedWaitsForWhatIs) {
  Ear ear;
  const auto journal = open();
  hold_at_a_first_commit(*journal, ear);
  journal->append("second");
  ear.release();
  journal->append("third");
  journal->flush();
  ear.wait_durable(Position(3));
  EXPECT_EQ(ear.calls(), 2) << "two commits";
  journal->append("fourth");
  EXPECT_TRUE(journal->close());
  EXPECT_EQ(ear.durable(), Position(4)) << "the end takes all";
}

TEST_F(LocalJournalTest, QueuedBytesTakeRoomUntilTheyAreWritten) {
  Ear ear;
  const auto journal = open();
  hold_at_a_first_commit(*journal, ear);
  const std::string large(limits::kRecordSizeMax, 'L');
  int appended = 0;
  // Nothing is written meanwhile; the allocated space holds only a few records.
  while (may_append(journal->room())) {
    journal->append(large);
    ASSERT_LT(++appended, 10);
  }
  EXPECT_GT(appended, 1);
  ear.release();
  EXPECT_TRUE(journal->close());
}

TEST_F(LocalJournalTest, TrimmingGivesSegmentsBack) {
  Ear ear;
  const auto journal = open();
  journal->start(ear.events());
  const std::string large(limits::kRecordSizeMax, 'L');
  for (std::uint64_t i = 1; i <= 8; ++i) {
    journal->append(large);
    journal->flush();
    ear.wait_durable(Position(i));
  }
  ASSERT_GT(segments(), 2);
  journal->trim_before(Position(8));
  EXPECT_TRUE(journal->close());
  EXPECT_LE(segments(), 2);
}

TEST_F(LocalJournalTest, TrimmingWhatIsNotDurableIsOurOwnMistake) {
  const auto journal = open();
  EXPECT_DEATH(journal->trim_before(Position(2)), "only what is durable is trimmed");
}

TEST_F(LocalJournalTest, SegmentsTooSmallForAFrameAreRefused) {
  const auto opened =
      LocalJournal::open(*directory_, kTestShard, {.segment_size = 1 << 20}, entropy_, clock_);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("at least"), std::string::npos);
}

TEST_F(LocalJournalTest, AFailedSyncIsReportedOnceAndNothingAfterItIsDurable) {
  os::SimDisk disk;
  const auto root = disk.root();
  const auto journal = open(*root);
  // The header of the first segment, its name, and the frame are synced.
  disk.fail_sync(3);
  Ear ear;
  journal->start(ear.events());
  journal->append("doomed");
  journal->flush();
  EXPECT_NE(ear.wait_failed().message.find("cannot sync"), std::string::npos);
  EXPECT_EQ(journal->room(), Room::kNone);
  journal->append("too late");
  journal->flush();
  EXPECT_FALSE(journal->close());
  EXPECT_EQ(journal->durable(), Position(0));
  EXPECT_EQ(ear.durable(), Position(0));
}

TEST(MemoryJournal, IsDurableOnceFlushedAndForgetsEverything) {
  Ear ear;
  MemoryJournal journal;
  EXPECT_TRUE(journal.replay(Position(1), {}));
  EXPECT_FALSE(journal.replay(Position(2), {}));
  journal.start(ear.events());
  EXPECT_EQ(journal.append("a"), Position(1));
  EXPECT_EQ(journal.append("b"), Position(2));
  EXPECT_EQ(journal.durable(), Position(0));
  journal.flush();
  journal.flush();
  EXPECT_EQ(journal.durable(), Position(2));
  EXPECT_EQ(ear.calls(), 1);
  EXPECT_TRUE(journal.close());
}

}  // namespace
}  // namespace stanchion::journal
