#include "history/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "history/keys.h"
#include "history/old_points.h"

namespace stanchion::history {
namespace {

constexpr std::uint64_t kVersion = 1;

// A queue that is not known was made since the last record, or a little before, while it was under
// way. Others come from a time before the history began.
constexpr Minute kNewSince = 2;

// Samples of a commit: some ten megabytes while it is made.
constexpr std::size_t kSamplesAtOnce = 10'000;

// A queue that had no sample for so long is gone.
constexpr Minute kUnseenMax = 2 * kMinutesADay;
// Queues that one step forgets.
constexpr std::size_t kForgottenAtOnce = 10'000;

// A queue takes about this much, and its texts.
constexpr std::size_t kQueueBytes = sizeof(QueueRef) + sizeof(KnownQueue) + 64;

constexpr std::uint64_t kSizedFlag = 1;
constexpr std::uint64_t kFairFlag = 2;

// What is kept of the totals, in the order in which it is written; new ones are added at the end.
constexpr std::array kKept{&Activity::sent, &Activity::sent_bytes, &Activity::received,
                           &Activity::deleted};
// What each process counts from 0.
constexpr std::array kOfProcess{&Activity::deduplicated, &Activity::empty_receives,
                                &Activity::deleted_again};

std::unexpected<Failure> makes_no_sense(std::string_view what) {
  return fail(fmt::format("the history of the queues is damaged: {} makes no sense", what));
}

bool went_back(const Activity& totals, const Activity& base) {
  const auto lower = [&](auto number) { return totals.*number < base.*number; };
  return std::ranges::any_of(kKept, lower) || std::ranges::any_of(kOfProcess, lower);
}

// What happened since the base.
Point count_since(const Activity& base, const Activity& totals) {
  const auto grew = [&](std::uint64_t Activity::*number) { return totals.*number - base.*number; };
  Point point;
  point.set(Metric::kNumberOfMessagesSent, grew(&Activity::sent));
  point.set(Metric::kSentMessageSize, grew(&Activity::sent_bytes));
  point.set(Metric::kNumberOfMessagesReceived, grew(&Activity::received));
  point.set(Metric::kNumberOfMessagesDeleted,
            grew(&Activity::deleted) + grew(&Activity::deleted_again));
  point.set(Metric::kNumberOfEmptyReceives, grew(&Activity::empty_receives));
  point.set(Metric::kNumberOfDeduplicatedSentMessages, grew(&Activity::deduplicated));
  return point;
}

std::string encode_meta(Minute last_minute) {
  std::string value;
  ByteWriter writer(value);
  writer.varint(kVersion);
  writer.varint(static_cast<std::uint64_t>(last_minute));
  return value;
}

std::string encode_queue(const QueueRef& queue) {
  std::string value;
  ByteWriter writer(value);
  writer.text(queue.account);
  writer.text(queue.region);
  writer.text(queue.name);
  return value;
}

}  // namespace

std::size_t Space::bytes_of(const QueueRef& queue) {
  return kQueueBytes + queue.account.size() + queue.region.size() + queue.name.size();
}

bool Space::has_room_for(const QueueRef& queue) const {
  const auto found = accounts_.find(queue.account);
  const std::size_t own = found == accounts_.end() ? 0 : found->second;
  const std::size_t others = bytes_ - own;
  return others < bytes_max_ && own + bytes_of(queue) <= (bytes_max_ - others) / 2;
}

void Space::take(const QueueRef& queue) {
  accounts_[queue.account] += bytes_of(queue);
  bytes_ += bytes_of(queue);
}

void Space::give_back(const QueueRef& queue) {
  const auto found = accounts_.find(queue.account);
  CHECK(found != accounts_.end() && found->second >= bytes_of(queue), "it was taken");
  found->second -= bytes_of(queue);
  bytes_ -= bytes_of(queue);
  if (found->second == 0) accounts_.erase(found);
}

Result<std::unique_ptr<History>> History::open(std::unique_ptr<store::Store> store, Instant now,
                                               std::size_t bytes_max) {
  std::unique_ptr<History> history(new History(std::move(store), bytes_max));
  RETURN_IF_FAILED(history->load(now));
  return history;
}

Status History::load(Instant now) {
  auto meta = store_->get(std::string_view(&kMetaKind, 1));
  if (!meta) return std::unexpected(std::move(meta).error());
  if (!*meta) {
    last_minute_ = minute_of(now);
    Batch batch;
    batch.puts.push_back({Key(std::string(1, kMetaKind)), encode_meta(last_minute_), nullptr});
    return store_->commit(batch);
  }
  ByteReader reader(**meta);
  const std::uint64_t version = reader.varint();
  const std::uint64_t minute = reader.varint();
  if (!reader.ok() || version == 0 || minute > INT32_MAX) return makes_no_sense("its beginning");
  if (version > kVersion)
    return fail(fmt::format("the history of the queues was written by a newer release (version {})",
                            version));
  last_minute_ = static_cast<Minute>(minute);
  Status outcome;
  const auto load_all = [&](char kind, auto one) -> Status {
    const KeyRange range{std::string(1, kind), std::string(1, static_cast<char>(kind + 1))};
    const Status scanned = store_->scan(range, [&](std::string_view key, std::string_view value) {
      outcome = one(key, value);
      return outcome.has_value();
    });
    return scanned ? outcome : scanned;
  };
  ByNumber by_number;
  RETURN_IF_FAILED(load_all(kQueueKind, [&](std::string_view key, std::string_view value) {
    return load_queue(key, value, by_number);
  }));
  return load_all(kBaseKind, [&](std::string_view key, std::string_view value) {
    return load_base(key, value, by_number);
  });
}

Status History::load_queue(std::string_view key, std::string_view value, ByNumber& by_number) {
  if (key.size() != 5) return makes_no_sense("the number of a queue");
  key.remove_prefix(1);
  const auto number = take_big_endian<QueueNumber>(key);
  ByteReader reader(value);
  QueueRef queue;
  queue.account = reader.text();
  queue.region = reader.text();
  queue.name = reader.text();
  if (!reader.ok() || !reader.at_end() || queue.name.empty())
    return makes_no_sense("the name of a queue");
  const auto [at, is_new] = queues_.try_emplace(std::move(queue));
  at->second.number = number;
  at->second.seen = last_minute_;
  if (is_new) space_.take(at->first);
  by_number.emplace(number, at);
  next_number_ = std::max(next_number_, number + 1);
  return {};
}

Status History::load_base(std::string_view key, std::string_view value, const ByNumber& by_number) {
  if (key.size() != 5) return makes_no_sense("the number of a base");
  key.remove_prefix(1);
  const auto queue = by_number.find(take_big_endian<QueueNumber>(key));
  if (queue == by_number.end()) return makes_no_sense("a base without a queue");
  KnownQueue& state = queue->second->second;
  ByteReader reader(value);
  state.created = from_millis(reader.i64());
  state.last_minute = static_cast<Minute>(std::min<std::uint64_t>(reader.varint(), INT32_MAX)) - 1;
  const std::uint64_t flags = reader.varint();
  state.sized = (flags & kSizedFlag) != 0;
  state.fair = (flags & kFairFlag) != 0;
  const std::size_t count = reader.count();
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t number = reader.varint();
    if (i < kKept.size()) state.base.*kKept[i] = number;
  }
  if (!reader.ok() || !reader.at_end()) return makes_no_sense("a base");
  return {};
}

void History::forget(const QueueRef& queue) {
  if (queues_.erase(queue) > 0) space_.give_back(queue);
}

// With the base from which the sample's totals are to be counted; nullopt if there is nothing to
// count: it is of a queue that another one has replaced, or older than another sample, because two
// were taken at the same time.
std::optional<KnownQueue> History::state_before(const Sample& sample,
                                                Queues::const_iterator known) const {
  KnownQueue state;
  if (known == queues_.end()) {
    if (sample.created < begin_of(last_minute_ - kNewSince)) state.base = sample.totals;
    state.created = sample.created;
    return state;
  }
  state = known->second;
  if (sample.created < state.created) return std::nullopt;
  if (sample.created > state.created) {
    state.base = {};
    state.created = sample.created;
  } else if (went_back(sample.totals, state.base)) {
    if (state.current) return std::nullopt;
    state.base = sample.totals;  // A backup was restored.
  }
  return state;
}

Result<std::optional<KnownQueue>> History::write(const Closing& closing, const Sample& sample,
                                                 bool is_new, KnownQueue state,
                                                 Batch& batch) const {
  Point point = count_since(state.base, sample.totals);
  const bool something = point.values != Point().values;
  if (!something && (sample.deleted || !sample.active)) {
    if (sample.deleted || !is_new) return std::optional<KnownQueue>();
    state.base = sample.totals;
    write_base(state, batch);
    return std::optional(state);
  }
  const Minute sizes_from = std::min(state.last_minute + 1, closing.minute);
  if (point.of(Metric::kNumberOfMessagesSent).sum > 0)
    point.sizes = sample.sizes.between(sizes_from, closing.sizes_through);
  point.fair_minutes = sample.gauges.fair_minutes;
  for (std::size_t i = 0; i < kMetricCount; ++i)
    if (kMetrics[i].is_gauge) point.values[i] = sample.gauges.values[i];

  const std::string key =
      point_key(kMinuteKind, day_of(closing.minute), state.number, closing.minute % kMinutesADay);
  if (state.last_minute == closing.minute) {
    auto stored = store_->get(key);
    if (!stored) return std::unexpected(std::move(stored).error());
    auto earlier = *stored ? decode_point(**stored) : std::nullopt;
    if (earlier) {
      earlier->add_same_minute(point);
      point = *std::move(earlier);
    }
  }
  batch.puts.push_back({Key(key), encode(point), nullptr});

  state.base = sample.totals;
  state.last_minute = std::max(state.last_minute, closing.minute);
  state.sized = state.sized || point.of(Metric::kSentMessageSize).sum > 0;
  state.fair = state.fair || point.fair_minutes > 0;
  write_base(state, batch);
  return std::optional(state);
}

void History::write_base(const KnownQueue& state, Batch& batch) {
  Put base{Key(queue_key(kBaseKind, state.number)), {}, nullptr};
  ByteWriter writer(base.head);
  writer.i64(to_millis(state.created));
  writer.varint(static_cast<std::uint64_t>(state.last_minute + 1));
  writer.varint((state.sized ? kSizedFlag : 0) | (state.fair ? kFairFlag : 0));
  writer.varint(kKept.size());
  for (const auto number : kKept) writer.varint(state.base.*number);
  batch.puts.push_back(std::move(base));
}

// The last words of a queue come before the sample of one that replaced it, and each needs the
// state that the other left: so a queue is in a commit only once, and the second one is added to
// `again`. Every minute has a sample of each active queue, so it is looked up once.
Status History::record_part(const Closing& closing, std::span<const Sample> samples, bool is_last,
                            Again& again) {
  Batch batch;
  struct Change {
    const QueueRef& queue;
    Queues::iterator known;
    KnownQueue after;
  };
  std::vector<Change> changes;
  changes.reserve(samples.size());
  std::set<QueueRef> ended;
  QueueNumber next = next_number_;
  Space space = space_;
  std::map<std::string, std::uint64_t> left_out;
  for (const Sample& sample : samples) {
    if (ended.contains(sample.queue) || again.queues.contains(sample.queue)) {
      again.samples.push_back(sample);
      again.queues.insert(sample.queue);
      continue;
    }
    const auto known = queues_.find(sample.queue);
    auto before = state_before(sample, known);
    if (!before) continue;
    if (known != queues_.end() && !sample.deleted) known->second.seen = closing.minute;
    before->seen = closing.minute;
    before->current = true;
    const bool is_new = before->number == 0;
    if (is_new && !space.has_room_for(sample.queue)) {
      ++left_out[sample.queue.account];
      continue;
    }
    if (is_new) before->number = next;
    auto state = write(closing, sample, is_new, *before, batch);
    if (!state) return std::unexpected(std::move(state).error());
    if (!*state) continue;
    if (is_new) {
      ++next;
      space.take(sample.queue);
      batch.puts.push_back(
          {Key(queue_key(kQueueKind, before->number)), encode_queue(sample.queue), nullptr});
    }
    if (sample.deleted) ended.insert(sample.queue);
    changes.push_back({sample.queue, known, **state});
  }
  const Minute last = std::max(last_minute_, closing.minute);
  const bool completes = is_last && again.samples.empty();
  if (completes) batch.puts.push_back({Key(std::string(1, kMetaKind)), encode_meta(last), nullptr});
  RETURN_IF_FAILED(store_->commit(batch));
  if (completes) last_minute_ = last;
  for (const auto& [account, count] : left_out) left_out_[account] += count;
  for (const auto& [queue, known, after] : changes) {
    if (known != queues_.end())
      known->second = after;
    else if (queues_.try_emplace(queue, after).second)
      space_.take(queue);
  }
  next_number_ = next;
  return {};
}

// The minute counts as recorded with its last part: what a crash leaves out comes into the next
// record, which is then of the same minute.
Status History::record(const Closing& closing, std::span<const Sample> samples) {
  Again again;
  do {
    const Again left = std::exchange(again, {});
    if (!left.samples.empty()) samples = left.samples;
    do {
      const auto part = samples.first(std::min(kSamplesAtOnce, samples.size()));
      samples = samples.subspan(part.size());
      RETURN_IF_FAILED(record_part(closing, part, samples.empty(), again));
    } while (!samples.empty());
  } while (!again.samples.empty());
  return {};
}

// Old points and queues: HI3.

Result<bool> History::forget_some(Minute last_point, Minute last_seen) {
  std::vector<QueueRef> gone;
  for (const auto& [queue, state] : queues_) {
    if (state.last_minute > last_point || state.seen > last_seen) continue;
    gone.push_back(queue);
    if (gone.size() == kForgottenAtOnce) break;
  }
  if (gone.empty()) return false;
  Batch batch;
  for (const QueueRef& queue : gone) {
    const std::uint32_t number = queues_.at(queue).number;
    batch.erased.emplace_back(queue_key(kQueueKind, number));
    batch.erased.emplace_back(queue_key(kBaseKind, number));
  }
  RETURN_IF_FAILED(store_->commit(batch));
  for (const QueueRef& queue : gone) forget(queue);
  return true;
}

Result<bool> History::expire_some(Instant now) {
  const Minute minute = minute_of(now);
  const std::int64_t today = day_of(minute);
  if (cleaned_day_ == today) return false;
  // The last day of which nothing is needed any more.
  const std::int64_t last_minutes = day_of(minute - kMinutesKept) - 1;
  const std::int64_t last_five = day_of(minute - kFiveMinutesKept) - 1;
  OldPoints old(*store_);
  auto five = old.first_day(kFiveKind);
  if (!five) return std::unexpected(std::move(five).error());
  if (*five && **five <= last_five) {
    RETURN_IF_FAILED(old.erase_five_minutes(last_five));
    return true;
  }
  auto minutes = old.first_day(kMinuteKind);
  if (!minutes) return std::unexpected(std::move(minutes).error());
  if (*minutes && **minutes <= last_minutes) {
    RETURN_IF_FAILED(old.merge_some(**minutes));
    return true;
  }
  auto forgot = forget_some((last_five + 1) * kMinutesADay - 1, minute - kUnseenMax);
  if (!forgot || *forgot) return forgot;
  cleaned_day_ = today;
  return false;
}

}  // namespace stanchion::history
