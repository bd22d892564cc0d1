#include "history/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/bytes.h"
#include "history/keys.h"

namespace stanchion::history {
namespace {

constexpr std::uint64_t kVersion = 1;

// A queue that is not known was made since the last record, or a little before, while it was under
// way. Others come from a time before the history began.
constexpr Minute kNewSince = 2;

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

Result<std::unique_ptr<History>> History::open(std::unique_ptr<store::Store> store, Instant now) {
  std::unique_ptr<History> history(new History(std::move(store)));
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
      outcome = (this->*one)(key, value);
      return outcome.has_value();
    });
    return scanned ? outcome : scanned;
  };
  RETURN_IF_FAILED(load_all(kQueueKind, &History::load_queue));
  return load_all(kBaseKind, &History::load_base);
}

Status History::load_queue(std::string_view key, std::string_view value) {
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
  State state;
  state.number = number;
  state.seen = last_minute_;
  apply(queue, state);
  return {};
}

Status History::load_base(std::string_view key, std::string_view value) {
  if (key.size() != 5) return makes_no_sense("the number of a base");
  key.remove_prefix(1);
  const auto queue = by_number_.find(take_big_endian<QueueNumber>(key));
  if (queue == by_number_.end()) return makes_no_sense("a base without a queue");
  State state = states_.at(queue->second);
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
  apply(queue->second, state);
  return {};
}

// Of a queue that may be new.
void History::apply(const QueueRef& queue, const State& state) {
  State& known = states_[queue];
  known.known = &known_[queue];
  known.known->queue = queue;
  by_number_[state.number] = queue;
  next_number_ = std::max(next_number_, state.number + 1);
  update(known, state);
}

void History::update(State& known, const State& state) {
  KnownQueue* const shown = known.known;
  known = state;
  known.known = shown;
  shown->last_minute = state.last_minute;
  shown->sized = state.sized;
  shown->fair = state.fair;
}

void History::forget(const QueueRef& queue) {
  const auto found = states_.find(queue);
  if (found == states_.end()) return;
  by_number_.erase(found->second.number);
  states_.erase(found);
  known_.erase(queue);
}

// With the base from which the sample's totals are to be counted; nullopt if there is nothing to
// count: it is of a queue that another one has replaced, or older than another sample, because two
// were taken at the same time.
std::optional<History::State> History::state_before(const Sample& sample,
                                                    States::const_iterator known) const {
  State state;
  if (known == states_.end()) {
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

Result<std::optional<History::State>> History::write(const Closing& closing, const Sample& sample,
                                                     State state, Batch& batch) const {
  Point point = count_since(state.base, sample.totals);
  const bool something = point.values != Point().values;
  if (!something && (sample.deleted || !sample.active)) {
    if (sample.deleted || state.known != nullptr) return std::optional<State>();
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

void History::write_base(const State& state, Batch& batch) {
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
// state that the other left: so a queue is in a commit only once, and the second one goes to the
// next. Every minute has a sample of each active queue, so it is looked up once.
Status History::record(const Closing& closing, const std::vector<Sample>& samples) {
  Batch batch;
  struct Change {
    const QueueRef& queue;
    States::iterator known;
    State after;
  };
  std::vector<Change> changes;
  changes.reserve(samples.size());
  std::set<QueueRef> ended;
  std::vector<Sample> again;
  QueueNumber next = next_number_;
  std::uint64_t left_out = 0;
  for (const Sample& sample : samples) {
    if (ended.contains(sample.queue)) {
      again.push_back(sample);
      continue;
    }
    const auto known = states_.find(sample.queue);
    auto before = state_before(sample, known);
    if (!before) continue;
    if (known != states_.end() && !sample.deleted) known->second.seen = closing.minute;
    before->seen = closing.minute;
    before->current = true;
    const bool is_new = before->number == 0;
    if (is_new && states_.size() + (next - next_number_) >= kQueuesMax) {
      ++left_out;
      continue;
    }
    if (is_new) before->number = next;
    auto state = write(closing, sample, *before, batch);
    if (!state) return std::unexpected(std::move(state).error());
    if (!*state) continue;
    if (is_new) {
      ++next;
      batch.puts.push_back(
          {Key(queue_key(kQueueKind, before->number)), encode_queue(sample.queue), nullptr});
    }
    if (sample.deleted) ended.insert(sample.queue);
    changes.push_back({sample.queue, known, **state});
  }
  const Minute last = std::max(last_minute_, closing.minute);
  batch.puts.push_back({Key(std::string(1, kMetaKind)), encode_meta(last), nullptr});
  RETURN_IF_FAILED(store_->commit(batch));
  last_minute_ = last;
  left_out_ += left_out;
  for (const auto& [queue, known, after] : changes) {
    if (known == states_.end()) {
      apply(queue, after);
    } else {
      update(known->second, after);
    }
  }
  return again.empty() ? Status() : record(closing, again);
}

}  // namespace stanchion::history
