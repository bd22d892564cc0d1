#include "store/batch_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <numeric>

#include "base/check.h"

namespace stanchion::store {
namespace {

using Kind = Change::Kind;

constexpr std::size_t kNumberSize = 8;
// What the file format adds to an entry, roughly.
constexpr std::size_t kEntryOverhead = 8;
// Two neighbours in a stretch may be this far apart, or this many times the mean distance.
constexpr std::uint64_t kGap = 1024;
constexpr std::uint64_t kGapFactor = 16;

// If runs are shorter than this, looking for order does not pay off.
constexpr std::size_t kRunSizeMin = 8;

bool by_key(const Change& a, const Change& b) {
  return a.key < b.key;
}

// The ascending runs of the changes.
std::vector<std::span<const Change>> runs_of(std::span<const Change> changes) {
  std::vector<std::span<const Change>> runs;
  for (std::size_t first = 0; first < changes.size();) {
    std::size_t end = first + 1;
    while (end < changes.size() && by_key(changes[end - 1], changes[end])) ++end;
    runs.push_back(changes.subspan(first, end - first));
    first = end;
  }
  return runs;
}

// The length of the prefix that all keys share.
std::size_t common_prefix(std::span<const Change> changes) {
  std::string_view common = changes.front().key;
  for (const Change& change : changes) {
    const auto differs = std::ranges::mismatch(common, change.key).in1;
    common = common.substr(0, static_cast<std::size_t>(differs - common.begin()));
  }
  return common.size();
}

// The eight bytes from there on, as a number with the same order; zeros after the end.
std::uint64_t digest_of(std::string_view key, std::size_t from) {
  std::array<char, sizeof(std::uint64_t)> bytes{};
  key.substr(from).copy(bytes.data(), bytes.size());
  const auto number = std::bit_cast<std::uint64_t>(bytes);
  return std::endian::native == std::endian::little ? __builtin_bswap64(number) : number;
}

// For changes in any order. The keys are scattered over memory, so reading them takes the most
// time: most comparisons use a few bytes of each key, kept in one array.
void sort_by_digest(std::span<Change> changes) {
  struct Item {
    std::uint64_t digest;
    std::size_t place;
  };
  const std::size_t prefix = common_prefix(changes);
  std::vector<Item> items(changes.size());
  for (std::size_t i = 0; i < items.size(); ++i) items[i] = {digest_of(changes[i].key, prefix), i};
  std::ranges::sort(items, [&](const Item& a, const Item& b) {
    return a.digest != b.digest ? a.digest < b.digest : by_key(changes[a.place], changes[b.place]);
  });
  std::vector<Change> sorted;
  sorted.reserve(items.size());
  for (const Item& item : items) sorted.push_back(changes[item.place]);
  std::ranges::copy(sorted, changes.begin());
}

// Sorts changes that are mostly in order already: the members of a chunk are in order, and so are
// the chunks of one lane. Changes of many lanes are in any order.
void sort_by_runs(std::span<Change> changes) {
  std::vector<std::span<const Change>> runs = runs_of(changes);
  if (runs.size() <= 1) return;
  const auto begin = [](const std::span<const Change>& run) { return run.front().key; };
  const bool many = runs.size() > changes.size() / kRunSizeMin;
  if (!many) std::ranges::sort(runs, {}, begin);
  const auto meet = [](const auto& a, const auto& b) { return !by_key(a.back(), b.front()); };
  if (many || std::ranges::adjacent_find(runs, meet) != runs.end()) return sort_by_digest(changes);
  std::vector<Change> sorted;
  sorted.reserve(changes.size());
  for (const std::span<const Change>& run : runs)
    sorted.insert(sorted.end(), run.begin(), run.end());
  std::ranges::copy(sorted, changes.begin());
}

// Groups the changes by kind of record, the first byte of the key.
void sort_changes(std::vector<Change>& changes, std::size_t first) {
  const auto kind_of = [](const Change& change) {
    return change.key.empty() ? 0U : static_cast<unsigned char>(change.key.front());
  };
  std::array<std::size_t, 257> begins{};  // Where each kind begins, after `first`.
  for (std::size_t i = first; i < changes.size(); ++i) ++begins[kind_of(changes[i]) + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<Change> sorted(changes.size() - first);
  std::array<std::size_t, 257> next = begins;
  for (std::size_t i = first; i < changes.size(); ++i)
    sorted[next[kind_of(changes[i])]++] = changes[i];
  for (std::size_t kind = 0; kind < 256; ++kind)
    sort_by_runs(std::span(sorted).subspan(begins[kind], begins[kind + 1] - begins[kind]));
  if (first == 0) {
    changes = std::move(sorted);
  } else {
    std::ranges::copy(sorted, changes.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

std::uint64_t number_of(std::string_view key) {
  std::uint64_t number = 0;
  std::memcpy(&number, key.data() + key.size() - kNumberSize, kNumberSize);
  return std::endian::native == std::endian::little ? __builtin_bswap64(number) : number;
}

std::uint32_t size_of(std::string_view key) {
  return static_cast<std::uint32_t>(key.size() + kEntryOverhead);
}

std::uint32_t size_of(const Put& put) {
  std::size_t size = put.head.size();
  if (put.content != nullptr) size += put.content->encoded().size();
  return size_of(put.key.view()) + static_cast<std::uint32_t>(size);
}

std::uint32_t size_of(const Series& series) {
  return static_cast<std::uint32_t>(series.value_bytes +
                                    series.entries.size() * size_of(series.begin.view()));
}

std::vector<Change> merged_ranges(const Batch& batch) {
  std::vector<Change> ranges;
  for (const KeyRange& range : batch.erased_ranges) {
    if (range.begin < range.end)
      ranges.push_back({.key = range.begin, .end = range.end, .kind = Kind::kEraseRange});
  }
  std::sort(ranges.begin(), ranges.end(), by_key);
  std::size_t kept = 0;
  for (const Change& range : ranges) {
    if (kept > 0 && range.key <= ranges[kept - 1].end) {
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, range.end);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
  for (Change& range : ranges)
    range.size = size_of(range.key) + static_cast<std::uint32_t>(range.end.size());
  return ranges;
}

bool lies_in(std::string_view key, const std::vector<Change>& ranges) {
  if (ranges.empty()) return false;
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), key,
                       [](std::string_view k, const Change& range) { return k < range.key; });
  return after != ranges.begin() && key < (after - 1)->end;
}

// Its numbers lie between its ends; that they are in order was checked when they were added.
bool is_within_its_ends(const Series& series) {
  const std::string_view begin = series.begin.view();
  const std::string_view end = series.end.view();
  return !series.entries.empty() && begin.size() > kNumberSize && begin < end &&
         number_of(begin) <= series.entries.front().number &&
         (!same_run(begin, end) || series.entries.back().number < number_of(end)) &&
         series.entries.back().head_end == series.heads.size();
}

bool meets(const Series& series, const std::vector<Change>& ranges) {
  const auto after =
      std::lower_bound(ranges.begin(), ranges.end(), series.end.view(),
                       [](const Change& range, std::string_view k) { return range.key < k; });
  return after != ranges.begin() && series.begin.view() < (after - 1)->end;
}

std::vector<Change> sorted_changes(const Batch& batch, const RangeFilter& needed) {
  const std::vector<Change> ranges = merged_ranges(batch);
  std::vector<Change> changes;
  changes.reserve(batch.puts.size() + batch.series.size() + batch.erased.size() + ranges.size());
  // Mostly the puts are in order already, and sorting all of them again would take the longest.
  const auto merge_from = [&](std::size_t first) {
    sort_changes(changes, first);
    std::inplace_merge(changes.begin(), changes.begin() + static_cast<std::ptrdiff_t>(first),
                       changes.end(), by_key);
  };
  for (const Put& put : batch.puts) {
    CHECK(!lies_in(put.key, ranges), "a key is put into a range that the same batch erases");
    changes.push_back({.key = put.key, .put = &put, .size = size_of(put), .kind = Kind::kPut});
  }
  for (const Series& series : batch.series) {
    CHECK(is_within_its_ends(series), "a series lies between its ends");
    CHECK(!meets(series, ranges), "a series is put into a range that the same batch erases");
    changes.push_back({.key = series.begin,
                       .end = series.end,
                       .series = &series,
                       .size = size_of(series),
                       .kind = Kind::kPutSeries});
  }
  merge_from(0);
  const std::size_t puts = changes.size();
  for (const Key& key : batch.erased) {
    if (!lies_in(key, ranges))
      changes.push_back({.key = key, .size = size_of(key.view()), .kind = Kind::kErase});
  }
  merge_from(puts);
  const std::size_t keys = changes.size();
  std::copy_if(ranges.begin(), ranges.end(), std::back_inserter(changes),
               [&](const Change& range) { return needed(range.key, range.end); });
  merge_from(keys);
  const auto twice =
      std::adjacent_find(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
        return a.key == b.key || (a.series != nullptr && b.key < a.end);
      });
  CHECK(twice == changes.end(), "a key is changed twice in one batch");
  return changes;
}

std::uint64_t last_number_of(const Change& change) {
  return change.series == nullptr ? number_of(change.key) : change.series->entries.back().number;
}

std::size_t entries_of(const Change& change) {
  return change.series == nullptr ? 1 : change.series->entries.size();
}

// The end of the stretch that begins at `first`.
std::size_t stretch_end(const std::vector<Change>& changes, std::size_t first) {
  const Change& head = changes[first];
  std::size_t next = first + 1;
  if (head.kind == Kind::kEraseRange) return next;
  std::size_t entries = entries_of(head);
  for (; next < changes.size(); ++next) {
    const Change& change = changes[next];
    if (change.puts() != head.puts() || change.kind == Kind::kEraseRange ||
        !same_run(head.key, change.key))
      break;
    const std::uint64_t last = last_number_of(changes[next - 1]);
    const std::uint64_t gap = number_of(change.key) - last;
    const std::uint64_t mean = (last - number_of(head.key)) / entries;
    if (gap > kGap && gap / kGapFactor > mean) break;
    entries += entries_of(change);
  }
  return next;
}

// Collects neighbours into files.
class Cutter {
 public:
  explicit Cutter(BatchPlan& plan) : plan_(plan) {}

  void cut_before(std::size_t index) {
    if (index > begin_)
      plan_.files.push_back(std::span(plan_.changes).subspan(begin_, index - begin_));
    begin_ = index;
    size_ = 0;
  }

  void add(std::size_t index) {
    const Change& change = plan_.changes[index];
    const bool other_type =
        index > begin_ && plan_.changes[index - 1].key.substr(0, 1) != change.key.substr(0, 1);
    if (other_type || size_ >= kFileSize) cut_before(index);
    size_ += change.size;
  }

 private:
  BatchPlan& plan_;
  std::size_t begin_ = 0;
  std::size_t size_ = 0;
};

}  // namespace

bool same_run(std::string_view a, std::string_view b) {
  if (a.size() != b.size() || a.size() <= kNumberSize) return false;
  const std::size_t prefix = a.size() - kNumberSize;
  return a.substr(0, prefix) == b.substr(0, prefix);
}

BatchPlan plan_batch(const Batch& batch, const RangeFilter& needed) {
  BatchPlan plan{sorted_changes(batch, needed), {}};
  std::size_t total = 0;
  std::size_t ranges = 0;
  for (const Change& change : plan.changes) {
    total += change.size;
    if (change.kind == Kind::kEraseRange) ++ranges;
  }
  const std::size_t alone = std::max(kStretchSizeMin, total / kStretchesMax);
  // A range may span a whole backlog, so each range gets its own file as long as there are few.
  const bool ranges_alone = ranges <= kStretchesMax;

  Cutter cutter(plan);
  for (std::size_t begin = 0, end = 0; begin < plan.changes.size(); begin = end) {
    end = stretch_end(plan.changes, begin);
    std::size_t size = 0;
    for (std::size_t i = begin; i < end; ++i) size += plan.changes[i].size;
    const bool own_file =
        plan.changes[begin].kind == Kind::kEraseRange ? ranges_alone : size >= alone;
    if (own_file) cutter.cut_before(begin);
    for (std::size_t i = begin; i < end; ++i) cutter.add(i);
    if (own_file) cutter.cut_before(end);
  }
  cutter.cut_before(plan.changes.size());
  return plan;
}

}  // namespace stanchion::store
