// How fast a journal accepts records on a real disk, and how fast it reads them back.
//
// The directory is a new one under $STANCHION_BENCH_DIR, or the build directory: not /tmp, which
// is memory on many machines.
#include <benchmark/benchmark.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

#include "base/check.h"
#include "bench/scratch.h"
#include "journal/local_journal.h"
#include "journal/segment_log.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "os/real_directory.h"

namespace stanchion::journal {
namespace {

constexpr std::size_t kRecordSize = 200;
constexpr ShardOf kShard{ShardIndex(0), 1};

class Scratch {
 public:
  Scratch() {
    auto opened = os::open_real_directory(place_.path);
    CHECK(opened.has_value(), place_.path);
    directory = std::move(*opened);
  }

  std::unique_ptr<SegmentLog> open_log(const SegmentOptions& options = {}) {
    auto log = SegmentLog::open(*directory, kShard, options, entropy, clock.now());
    CHECK(log.has_value(), log.error().message);
    return std::move(*log);
  }

  std::unique_ptr<os::Directory> directory;
  os::SystemEntropy entropy;
  os::SystemClock clock;

 private:
  ScratchDirectory place_;
};

void count_records(benchmark::State& state, std::uint64_t records) {
  state.counters["records/s"] =
      benchmark::Counter(static_cast<double>(records), benchmark::Counter::kIsRate);
  state.SetBytesProcessed(static_cast<std::int64_t>(records * kRecordSize));
}

FrameBuilder batch_of(std::int64_t records) {
  FrameBuilder frame;
  for (std::int64_t i = 0; i < records; ++i) frame.add(std::string(kRecordSize, 'r'));
  return frame;
}

// One commit of range(0) records, and the prepare() after it. range(1) says whether zeros are
// written ahead.
void BM_SegmentLogAppend(benchmark::State& state) {
  Scratch scratch;
  SegmentOptions options;
  if (state.range(1) == 0) options.zero_ahead = 0;
  const auto log = scratch.open_log(options);
  FrameBuilder frame = batch_of(state.range(0));
  for (auto _ : state) {
    const auto last = log->append_batch(frame);
    CHECK(last.has_value(), last.error().message);
    CHECK(log->prepare(scratch.clock.now()).has_value(), "prepare");
    if (log->size_on_disk() > (512u << 20)) {
      state.PauseTiming();
      SegmentLog::Files removed;
      CHECK(log->trim_before(log->next_position(), removed).has_value(), "trim");
      removed.clear();
      state.ResumeTiming();
    }
  }
  count_records(state, log->next_position().value() - 1);
}
BENCHMARK(BM_SegmentLogAppend)
    ->ArgNames({"records", "zeros"})
    ->ArgsProduct({{1, 10, 100, 1000}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// range(0) records appended, flushed and awaited: what the commit thread adds to the disk's time.
void BM_LocalJournalRoundTrip(benchmark::State& state) {
  Scratch scratch;
  auto opened = LocalJournal::open(*scratch.directory, kShard, {}, scratch.entropy, scratch.clock);
  CHECK(opened.has_value(), opened.error().message);
  const auto journal = std::move(*opened);
  std::mutex mutex;
  std::condition_variable changed;
  Position durable;
  journal->start({.durable =
                      [&](Position position) {
                        const std::lock_guard lock(mutex);
                        durable = position;
                        changed.notify_one();
                      },
                  .failed = [](const Failure& failure) { CHECK(false, failure.message); }});
  const std::string record(kRecordSize, 'r');
  std::uint64_t trimmed = 0;
  for (auto _ : state) {
    Position last;
    for (std::int64_t i = 0; i < state.range(0); ++i) last = journal->append(record);
    journal->flush();
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return durable >= last; });
    if (constexpr std::uint64_t kTrimEvery = (512u << 20) / kRecordSize;
        last.value() / kTrimEvery > trimmed) {
      trimmed = last.value() / kTrimEvery;
      journal->trim_before(last);
    }
  }
  count_records(state, journal->next_position().value() - 1);
  CHECK(journal->close().has_value(), "close");
}
BENCHMARK(BM_LocalJournalRoundTrip)
    ->Arg(1)
    ->Arg(10)
    ->Arg(100)
    ->Arg(1000)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// Reading 100 MB in frames of range(0) records, from the page cache.
void BM_Replay(benchmark::State& state) {
  Scratch scratch;
  constexpr std::uint64_t kRecords = 500'000;
  {
    const auto log = scratch.open_log();
    FrameBuilder frame = batch_of(state.range(0));
    while (log->next_position().value() <= kRecords)
      CHECK(log->append_batch(frame).has_value(), "append");
    CHECK(log->close().has_value(), "close");
  }
  std::uint64_t records = 0;
  for (auto _ : state) {
    const auto log = scratch.open_log();
    const Status status = log->replay(Position(1), [&](Position, std::string_view record) {
      benchmark::DoNotOptimize(record.data());
      ++records;
      return Status();
    });
    CHECK(status.has_value(), status.error().message);
  }
  count_records(state, records);
}
BENCHMARK(BM_Replay)->Arg(10)->Arg(1000)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stanchion::journal

BENCHMARK_MAIN();
