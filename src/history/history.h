// The history of the queues: one point a minute for each active queue, for two weeks, then one for
// every five minutes, for two months.
//
//   totals of a queue ─▶ minus the base, what they were when its last point was written
//                     ─▶ point of the minute ┐
//                        new base            ┴─▶ one commit of the store
//
//   HI1  A point and the base that it ends at are in the same commit. So whatever is counted since
//        comes into a later point, once, even if the process dies at any moment.
//   HI2  A queue's points add up to its totals since its history began, as long as they are kept;
//        and what no fact tells (Activity) to what this process and those that ended in order
//        counted.
//   HI3  Points older than kMinutesKept are merged into points of five minutes, and those older
//        than kFiveMinutesKept are erased, a day at a time.
//
// A queue is known by its name. One that is deleted and made anew continues its history, from new
// totals. Belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "history/metric.h"
#include "history/point.h"
#include "model/activity.h"
#include "model/batch.h"
#include "model/ids.h"
#include "model/size_distribution.h"
#include "store/store.h"

namespace stanchion::history {

inline constexpr Minute kMinutesKept = 15 * kMinutesADay;
inline constexpr Minute kFiveMinutesKept = 63 * kMinutesADay;
// A queue at an instant.
struct Sample {
  QueueRef queue;
  Instant created;
  bool deleted = false;  // It is gone, and these were its last totals.
  bool active = true;    // It has points even if nothing happened.
  Activity totals;
  Point gauges;  // Those of its metrics that are gauges.
  RecentSizes sizes;
};

// Which minutes a record is about.
struct Closing {
  Minute minute;         // What was counted since the last record belongs to this minute …
  Minute sizes_through;  // … and the sizes of messages from that record up to this one.
};

// The values of a metric in one period.
struct Bucket {
  Instant at;  // The period's beginning.
  std::uint64_t samples = 0;
  std::uint64_t sum = 0;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  // For percentiles: values and how often each occurred, in any order. Of five minutes only the
  // smallest, the largest and the sum are known, and of sizes the distribution.
  std::vector<std::pair<double, std::uint64_t>> spread = {};
};

struct Reading {
  QueueRef queue;
  Metric metric;
  Instant from;                               // Included …
  Instant until;                              // … and not included.
  Duration period = std::chrono::minutes(1);  // A multiple of a minute.
  Instant origin{};                           // Where some period begins, at a minute.
  bool with_spread = false;
};

// What is known of a queue besides its points.
struct KnownQueue {
  std::uint32_t number = 0;
  Instant created;
  Activity base;            // The totals up to which everything is in points.
  Minute last_minute = -1;  // Of its last point.
  Minute seen = 0;          // The last record that it had a sample in; not stored.
  bool current = false;     // Its totals are those of this process; not stored.
  bool sized = false;       // Something was sent to it.
  bool fair = false;        // It had message groups, and is no FIFO queue.
};

// Who takes how much of the memory for queues with a history, those that were deleted since
// included; queues beyond that are not recorded. An account may take half of what the others leave,
// so that none can take all of it, and one that was late still finds some.
class Space {
 public:
  explicit Space(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  static std::size_t bytes_of(const QueueRef& queue);
  bool has_room_for(const QueueRef& queue) const;
  void take(const QueueRef& queue);  // Whether there is room or not.
  void give_back(const QueueRef& queue);
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::map<std::string, std::size_t> accounts_;  // None of them 0; bytes_ is their sum.
};

class History {
 public:
  // Loads what the store holds. A new history begins at `now`: what queues had counted before is
  // not in it.
  // Queues that it holds are loaded, even if they take more than `bytes_max`.
  static Result<std::unique_ptr<History>> open(std::unique_ptr<store::Store> store, Instant now,
                                               std::size_t bytes_max);

  // Writes a point for each sample that needs one, and remembers the totals of queues that it did
  // not know. Samples of deleted queues come first, and of the others there is one of each queue.
  // New queues for which there is no space are left out. What a failure has not written is in the
  // next record. Queues that are not used any more should have a sample once a day,
  // so that they are not taken for deleted ones and forgotten.
  Status record(const Closing& closing, std::span<const Sample> samples);

  // The minute that the last record was about.
  Minute last_minute() const { return last_minute_; }

  // Merges and erases some of what is too old; true if there may be more to do.
  Result<bool> expire_some(Instant now);

  // Calls `visit` with each period that has a value, in order; one at a time, because the spread of
  // weeks takes much memory. Points of five minutes are used if the period is a multiple of that.
  using BucketVisitor = std::function<void(const Bucket&)>;
  Status read(const Reading& reading, const BucketVisitor& visit) const;

  // What read() has cost so far: points, and as much as some more for each day that was looked at.
  std::uint64_t points_read() const { return points_read_; }

  // In order of account, region and name.
  const std::map<QueueRef, KnownQueue>& queues() const { return queues_; }
  // What queues() takes in memory.
  std::size_t bytes() const { return space_.bytes(); }
  // By account: samples for which there was no space.
  const std::map<std::string, std::uint64_t>& left_out() const { return left_out_; }
  const store::Store& store() const { return *store_; }

 private:
  using QueueNumber = std::uint32_t;
  using Queues = std::map<QueueRef, KnownQueue>;
  using ByNumber = std::unordered_map<QueueNumber, Queues::iterator>;

  History(std::unique_ptr<store::Store> store, std::size_t bytes_max)
      : store_(std::move(store)), space_(bytes_max) {}

  Status load(Instant now);
  Status load_queue(std::string_view key, std::string_view value, ByNumber& by_number);
  static Status load_base(std::string_view key, std::string_view value, const ByNumber& by_number);
  std::optional<KnownQueue> state_before(const Sample& sample, Queues::const_iterator known) const;
  // Adds to the batch what the sample brings, and returns the state after it.
  Result<std::optional<KnownQueue>> write(const Closing& closing, const Sample& sample, bool is_new,
                                          KnownQueue before, Batch& batch) const;
  // What comes in a later commit: a sample does not overtake an earlier one of its queue.
  struct Again {
    std::vector<Sample> samples;
    std::set<QueueRef> queues;
  };
  Status record_part(const Closing& closing, std::span<const Sample> samples, bool is_last,
                     Again& again);
  static void write_base(const KnownQueue& state, Batch& batch);
  void forget(const QueueRef& queue);

  Result<bool> forget_some(Minute last_point, Minute last_seen);

  std::unique_ptr<store::Store> store_;
  Queues queues_;
  Space space_;  // What queues_ takes.
  QueueNumber next_number_ = 1;
  Minute last_minute_ = 0;
  std::int64_t cleaned_day_ = -1;  // Everything was cleaned up on this day.
  std::map<std::string, std::uint64_t> left_out_;
  mutable std::uint64_t points_read_ = 0;
};

}  // namespace stanchion::history
