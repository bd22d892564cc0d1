#include "monitoring/history_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "history/open.h"

namespace stanchion::monitoring {
namespace {

using history::Metric;
using history::Sample;

constexpr Duration kActiveFor = std::chrono::hours(6);

std::uint64_t age_in_seconds(const std::optional<Instant>& entered, Instant now) {
  if (!entered || *entered >= now) return 0;
  return static_cast<std::uint64_t>((now - *entered).count()) / 1'000;
}

Sample make_sample(const broker::QueueFigures& figures, Instant now) {
  Sample sample;
  sample.queue = figures.queue;
  sample.created = figures.created;
  sample.active = is_active(figures.counts, std::max(figures.used, figures.created), now);
  sample.totals = figures.activity;
  sample.sizes = figures.sent_sizes;
  history::Point& gauges = sample.gauges;
  const engine::WatchFigures& watched = figures.watched;
  gauges.set(Metric::kApproximateNumberOfMessagesVisible, figures.counts.visible);
  gauges.set(Metric::kApproximateNumberOfMessagesNotVisible, figures.counts.in_flight);
  gauges.set(Metric::kApproximateNumberOfMessagesDelayed, figures.counts.delayed);
  gauges.set(Metric::kApproximateAgeOfOldestMessage, age_in_seconds(watched.oldest, now));
  if (is_fifo_name(figures.queue.name)) {
    gauges.set(Metric::kApproximateNumberOfGroupsWithInflightMessages, watched.busy_groups);
    return sample;
  }
  if (figures.groups == 0) return sample;
  gauges.fair_minutes = 1;
  gauges.set(Metric::kApproximateNumberOfNoisyGroups, figures.noisy_groups);
  gauges.set(Metric::kApproximateNumberOfMessagesVisibleInQuietGroups, watched.quiet.visible);
  gauges.set(Metric::kApproximateNumberOfMessagesNotVisibleInQuietGroups, watched.quiet.in_flight);
  gauges.set(Metric::kApproximateNumberOfMessagesDelayedInQuietGroups, watched.quiet.delayed);
  gauges.set(Metric::kApproximateAgeOfOldestMessageInQuietGroups,
             age_in_seconds(watched.oldest_quiet, now));
  return sample;
}

Sample make_sample(const engine::LastWord& word) {
  Sample sample;
  sample.queue = word.queue;
  sample.created = word.created;
  sample.deleted = true;
  sample.totals = word.activity;
  sample.sizes = word.sent_sizes;
  return sample;
}

// Deleted queues first: one of the same name may have been made since. Shard by shard, figures are
// freed when there are samples of them.
std::vector<Sample> make_samples(std::vector<broker::ShardFigures> shards) {
  std::vector<Sample> samples;
  for (const broker::ShardFigures& shard : shards)
    for (const engine::LastWord& word : shard.deleted_queues) samples.push_back(make_sample(word));
  for (broker::ShardFigures& shard : shards) {
    const auto queues = std::exchange(shard.queues, {});
    for (const broker::QueueFigures& queue : queues)
      samples.push_back(make_sample(queue, shard.now));
  }
  return samples;
}

}  // namespace

bool is_active(const engine::Counts& counts, Instant used, Instant now) {
  return counts.visible + counts.in_flight + counts.delayed > 0 || used + kActiveFor > now;
}

HistoryKeeper::HistoryKeeper(std::string path, std::size_t names_bytes_max, broker::Broker& broker,
                             broker::Background& background, os::Time& time, Tell tell)
    : path_(std::move(path)),
      names_bytes_max_(names_bytes_max),
      broker_(broker),
      background_(background),
      time_(time),
      tell_(std::move(tell)),
      questions_(background, [this](QuestionLine::Question& question, bool stopping) {
        return answer(question, stopping);
      }) {}

void HistoryKeeper::start(broker::Loop& loop) {
  loop_ = &loop;
  loop.post([this, &loop] {
    alarm_ = loop.make_alarm([this] { on_alarm(); });
    open_minute_ = minute_of(time_.read().now);
    collect(loop, Occasion::kStart, [] {});
    arm();
  });
}

void HistoryKeeper::arm() {
  const Instant now = time_.read().now;
  alarm_->set(std::max(Duration(1), begin_of(open_minute_ + 1) - now));
}

void HistoryKeeper::on_alarm() {
  const Minute minute = minute_of(time_.read().now);
  if (minute > open_minute_) {
    open_minute_ = minute;
    collect(*loop_, Occasion::kMinute, [] {});
  }
  arm();
}

// At first all queues are looked at, because what a queue was used for before a restart is known
// only by its totals; and then once a day, so that the history knows which queues there are.
void HistoryKeeper::collect(broker::Loop& from, Occasion occasion, broker::Task done) {
  const Instant now = time_.read().now;
  const std::int64_t day = minute_of(now) / history::kMinutesADay;
  const bool all = occasion == Occasion::kMinute ? seen_all_.exchange(day) != day : seen_all_ < 0;
  broker_.collect(
      from,
      {.queues =
           [all](const engine::Queue& queue, Instant at) {
             return all || is_active(queue.counts(), std::max(queue.used, queue.created), at);
           },
       .purpose = broker::Purpose::kHistory},
      [this, occasion, now, done = std::move(done)](broker::Figures figures) mutable {
        background_.run(broker::Work::kHistory, [this, occasion, now, figures = std::move(figures),
                                                 done = std::move(done)]() mutable {
          record(occasion, now, std::move(figures));
          expire(now, std::move(done));
        });
      });
}

void HistoryKeeper::before_move(broker::Loop& from, Duration by, broker::Task done) {
  const Instant now = time_.read().now;
  if (minute_of(now + by) == minute_of(now)) return done();
  collect(from, Occasion::kPartOfMinute,
          [&from, done = std::move(done)]() mutable { from.post(std::move(done)); });
}

void HistoryKeeper::after_move(broker::Loop& from, broker::Task done) {
  loop_->post([this, &from, done = std::move(done)]() mutable {
    broker::Task then = [&from, done = std::move(done)]() mutable { from.post(std::move(done)); };
    const Minute minute = minute_of(time_.read().now);
    if (minute == open_minute_) return then();
    open_minute_ = minute;
    collect(*loop_, Occasion::kMinute, std::move(then));
    arm();
  });
}

void HistoryKeeper::finish(std::chrono::milliseconds patience) {
  if (loop_ == nullptr) return;
  auto written = std::make_shared<std::promise<void>>();
  auto done = written->get_future();
  loop_->post([this, written] {
    collect(*loop_, Occasion::kPartOfMinute, [written] { written->set_value(); });
  });
  done.wait_for(patience);
}

bool HistoryKeeper::ask(const std::string& account, QuestionLine::Question question) {
  return questions_.ask(account, std::move(question));
}

QuestionLine::Turn HistoryKeeper::answer(QuestionLine::Question& question, bool stopping) {
  if (stopping) return question(nullptr);
  if (!history_) static_cast<void>(open(time_.read().now));
  QuestionLine::Turn turn = question(history_.get());
  if (turn.failure) handle(*turn.failure, time_.read().now);
  return turn;
}

void HistoryKeeper::record(Occasion occasion, Instant now, broker::Figures figures) {
  if (!history_ && !open(now)) return;
  const Minute minute = minute_of(now);
  const Minute last = history_->last_minute();
  history::Closing closing{minute, minute};
  if (occasion == Occasion::kMinute) closing = {minute - 1, minute - 1};
  // A new history first learns what the queues have counted before.
  if (occasion == Occasion::kStart && !history_->queues().empty()) {
    if (last + 1 >= minute) return;
    closing.minute = last + 1;
  }
  closing.minute = std::max(closing.minute, last);
  const Status recorded = history_->record(closing, make_samples(std::move(figures.shards)));
  if (!recorded) return handle(recorded.error(), now);
  disk_was_full_ = false;
  for (const auto& [account, samples] : history_->left_out())
    if (left_out_.insert(account).second)
      tell_(
          Weight::kWarning,
          fmt::format(
              "the history has no room for more queues of account {}: of {} MiB, an account "
              "may take half of what the others leave. Further queues have no history until "
              "deleted queues are forgotten, {} days after their last point",
              account, names_bytes_max_ >> 20, history::kFiveMinutesKept / history::kMinutesADay));
}

// Step by step, so that questions are answered in between.
void HistoryKeeper::expire(Instant now, broker::Task done) {
  if (!history_) return done();
  const auto more = history_->expire_some(now);
  if (!more) handle(more.error(), now);
  if (!more || !*more) return done();
  background_.run(broker::Work::kHistory,
                  [this, now, done = std::move(done)]() mutable { expire(now, std::move(done)); });
}

bool HistoryKeeper::open(Instant now) {
  auto opened = history::open_history(path_, now, names_bytes_max_);
  if (!opened && !history::is_passing(opened.error())) {
    const auto aside = history::set_aside(path_);
    if (aside || !was_unopened_)
      tell_(Weight::kError,
            fmt::format("the history of the queues cannot be read: {}. Queues and messages are not "
                        "affected. {}",
                        opened.error().message,
                        aside ? fmt::format("It was renamed to {} and begins anew.", *aside)
                              : aside.error().message));
    if (aside) opened = history::open_history(path_, now, names_bytes_max_);
  }
  if (!opened) {
    if (!std::exchange(was_unopened_, true))
      tell_(Weight::kWarning,
            fmt::format("no history of the queues is kept for now: {}", opened.error().message));
    return false;
  }
  was_unopened_ = false;
  seen_all_ = -1;  // It has to learn which queues there are.
  history_ = std::move(*opened);
  return true;
}

void HistoryKeeper::handle(const Failure& failure, Instant now) {
  if (history::is_passing(failure)) {
    if (!std::exchange(disk_was_full_, true))
      tell_(Weight::kWarning,
            fmt::format("the history of the queues waits for space on the disk, and continues by "
                        "itself: {}",
                        failure.message));
    return;
  }
  history_.reset();
  const auto aside = history::set_aside(path_);
  tell_(Weight::kError,
        fmt::format("the history of the queues is damaged: {}. Queues and messages are not "
                    "affected. {}",
                    failure.message,
                    aside ? fmt::format("It was renamed to {} and begins anew.", *aside)
                          : aside.error().message));
  if (aside) static_cast<void>(open(now));
}

}  // namespace stanchion::monitoring
