// How fast a store commits checkpoints and reads evicted messages back, and what a large backlog
// costs in memory, disk and merging.
//
// The directory is a new one under $STANCHION_BENCH_DIR, or the build directory: not /tmp, which
// is memory on many machines.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "base/check.h"
#include "bench/scratch.h"
#include "model/content.h"
#include "store/rocks_store.h"

namespace stanchion::store {
namespace {

constexpr std::size_t kBodySize = 200;
constexpr std::uint64_t kBatchMessages = 100'000;

class Scratch {
 public:
  std::unique_ptr<RocksStore> open(const RocksOptions& options = {}) const {
    auto store = RocksStore::open(place_.path + "/store", options);
    CHECK(store.has_value(), store.error().message);
    return std::move(*store);
  }

 private:
  ScratchDirectory place_;
};

std::string message_key(std::uint64_t lane, std::uint64_t seq) {
  std::string key = "m";
  for (const std::uint64_t number : {std::uint64_t{7}, lane, lane ^ 0x9E3779B97F4A7C15, seq}) {
    for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(number >> shift));
  }
  return key;
}

// Like an order in JSON: names repeat, ids and amounts do not.
ContentPtr message(std::mt19937_64& random) {
  std::string body = fmt::format(
      R"({{"type":"order.created","id":"{:016x}{:016x}","customer":{},"amount":{}.{:02},)"
      R"("currency":"EUR","items":[{{"sku":"A-{:05}","n":{}}},{{"sku":"B-{:05}","n":{}}}],)"
      R"("at":"2024-05-{:02}T{:02}:{:02}:00Z"}})",
      random(), random(), random() % 1'000'000, random() % 1000, random() % 100, random() % 100'000,
      random() % 9, random() % 100'000, random() % 9, random() % 28 + 1, random() % 24,
      random() % 60);
  body.resize(kBodySize, ' ');
  ContentParts parts;
  parts.body = body;
  parts.sent = from_millis(1'700'000'000'000 + static_cast<std::int64_t>(random() % 1'000'000));
  for (auto& byte : parts.id.bytes) byte = static_cast<std::uint8_t>(random());
  return Content::make(parts);
}

// The next messages of one lane, and one small record that is rewritten by every checkpoint.
Batch checkpoint(std::uint64_t lane, std::uint64_t first, std::uint64_t count,
                 std::mt19937_64& random) {
  Batch batch;
  batch.puts.push_back({"c", std::string(64, 'x'), nullptr});
  for (std::uint64_t i = 0; i < count; ++i)
    batch.puts.push_back({message_key(lane, first + i), std::string(16, 'h'), message(random)});
  return batch;
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  file >> size >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void must(const Status& status) {
  CHECK(status.has_value(), status.error().message);
}

// A checkpoint of this many messages in order of key. range(0): Compression; range(1): messages.
// One of the counters is the share of the time spent on reading back and comparing.
void BM_Commit(benchmark::State& state) {
  Scratch scratch;
  RocksOptions options;
  options.compression = static_cast<Compression>(state.range(0));
  const auto store = scratch.open(options);
  const auto messages = static_cast<std::uint64_t>(state.range(1));
  std::mt19937_64 random(1);
  std::uint64_t next = 0;
  double cpu = 0;
  std::chrono::nanoseconds committing{};
  for (auto _ : state) {
    state.PauseTiming();
    const Batch batch = checkpoint(1, next, messages, random);
    next += messages;
    state.ResumeTiming();
    const double before = cpu_seconds();
    const auto began = std::chrono::steady_clock::now();
    must(store->commit(batch));
    committing += std::chrono::steady_clock::now() - began;
    cpu += cpu_seconds() - before;
  }
  state.counters["cpu_ns/message"] = cpu * 1e9 / static_cast<double>(next);
  state.counters["verify_ms"] = static_cast<double>(store->figures().verifying.count()) / 1e6 /
                                static_cast<double>(state.iterations());
  state.counters["verify_share"] = static_cast<double>(store->figures().verifying.count()) /
                                   static_cast<double>(committing.count());
  state.counters["disk_bytes/message"] =
      static_cast<double>(store->size_on_disk()) / static_cast<double>(next);
  state.SetItemsProcessed(static_cast<std::int64_t>(next));
}
BENCHMARK(BM_Commit)
    ->Args({0, kBatchMessages})
    ->Args({1, kBatchMessages})
    ->Args({2, kBatchMessages})
    ->Args({1, 1'000})
    ->Args({1, 1'000'000})
    ->Iterations(10)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// 256 consecutive messages from a random place. range(0): messages in the store, in millions;
// range(1): Compression. The store is filled first, and the cost of that is reported.
void BM_Scan(benchmark::State& state) {
  Scratch scratch;
  RocksOptions options;
  options.compression = static_cast<Compression>(state.range(1));
  const auto store = scratch.open(options);
  std::mt19937_64 random(1);
  const std::uint64_t total = static_cast<std::uint64_t>(state.range(0)) * 1'000'000;
  double load_cpu = 0;
  for (std::uint64_t next = 0; next < total; next += kBatchMessages) {
    const Batch batch = checkpoint(1, next, kBatchMessages, random);
    const double before = cpu_seconds();
    must(store->commit(batch));
    load_cpu += cpu_seconds() - before;
  }
  double cpu = 0;
  for (auto _ : state) {
    const std::uint64_t first = random() % (total - 256);
    std::uint64_t seen = 0;
    std::uint64_t bytes = 0;
    const double before = cpu_seconds();
    must(store->scan({message_key(1, first), message_key(1, first + 256)},
                     [&](std::string_view, std::string_view value) {
                       ++seen;
                       bytes += value.size();
                       return true;
                     }));
    cpu += cpu_seconds() - before;
    CHECK(seen == 256, "messages are missing");
    benchmark::DoNotOptimize(bytes);
  }
  const RocksFigures figures = store->figures();
  state.counters["scan_cpu_ns/message"] = cpu * 1e9 / static_cast<double>(state.iterations()) / 256;
  state.counters["load_cpu_ns/message"] = load_cpu * 1e9 / static_cast<double>(total);
  state.counters["disk_MiB"] = static_cast<double>(store->size_on_disk()) / (1 << 20);
  state.counters["files"] = static_cast<double>(figures.files);
  state.counters["merged/committed"] =
      static_cast<double>(figures.merged) / static_cast<double>(figures.committed);
  state.counters["rss_MiB"] = resident_mib();
  state.counters["store_memory_MiB"] = static_cast<double>(figures.memory) / (1 << 20);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * 256);
}
BENCHMARK(BM_Scan)
    ->Args({1, 0})
    ->Args({1, 1})
    ->Args({1, 2})
    ->Args({10, 1})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

// A checkpoint of new groups with one message each: a chunk and a message per group, in order of
// arrival, which is unrelated to the order of their keys. range(0): groups.
Batch new_groups(std::uint64_t groups, std::mt19937_64& random) {
  Batch batch;
  for (std::uint64_t i = 0; i < groups; ++i) {
    std::string key = message_key(random(), i);
    batch.puts.push_back({key, std::string(16, 'h'), message(random)});
    key.front() = 'c';
    batch.puts.push_back({key, std::string(90, 'x'), nullptr});
  }
  return batch;
}

void BM_PlanNewGroups(benchmark::State& state) {
  std::mt19937_64 random(1);
  const Batch batch = new_groups(static_cast<std::uint64_t>(state.range(0)), random);
  for (auto _ : state)
    benchmark::DoNotOptimize(plan_batch(batch, [](auto, auto) { return true; }).files.size());
}
void BM_CommitNewGroups(benchmark::State& state) {
  Scratch scratch;
  const auto store = scratch.open();
  std::mt19937_64 random(1);
  for (auto _ : state) {
    state.PauseTiming();
    const Batch batch = new_groups(static_cast<std::uint64_t>(state.range(0)), random);
    state.ResumeTiming();
    must(store->commit(batch));
  }
}
void group_counts(benchmark::internal::Benchmark* benchmark) {
  for (const int groups : {20'000, 40'000, 80'000, 200'000, 500'000, 1'000'000})
    benchmark->Arg(groups);
  benchmark->Iterations(1)->Unit(benchmark::kMillisecond)->UseRealTime();
}
BENCHMARK(BM_PlanNewGroups)->Apply(group_counts);
BENCHMARK(BM_CommitNewGroups)->Apply(group_counts);

// A backlog that is drained while it grows: every checkpoint has as many new messages as consumed
// ones. range(0): lanes among which they are spread.
void BM_Drain(benchmark::State& state) {
  Scratch scratch;
  const auto store = scratch.open();
  std::mt19937_64 random(1);
  const auto lanes = static_cast<std::uint64_t>(state.range(0));
  const std::uint64_t per_lane = kBatchMessages / lanes;
  std::uint64_t tail = 0, head = 0;
  const auto put = [&](bool consume) {
    Batch batch;
    for (std::uint64_t lane = 0; lane < lanes; ++lane) {
      Batch part = checkpoint(lane, tail, per_lane, random);
      part.puts.erase(part.puts.begin());
      std::move(part.puts.begin(), part.puts.end(), std::back_inserter(batch.puts));
      if (consume)
        batch.erased_ranges.push_back(
            {message_key(lane, head), message_key(lane, head + per_lane)});
    }
    tail += per_lane;
    if (consume) head += per_lane;
    return batch;
  };
  for (int i = 0; i < 10; ++i) must(store->commit(put(false)));
  double cpu = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const Batch batch = put(true);
    const double before = cpu_seconds();
    state.ResumeTiming();
    must(store->commit(batch));
    cpu += cpu_seconds() - before;
  }
  must(store->reclaim());
  const RocksFigures figures = store->figures();
  state.counters["cpu_ns/message"] =
      cpu * 1e9 / static_cast<double>(state.iterations()) / kBatchMessages;
  state.counters["merged/committed"] =
      static_cast<double>(figures.merged) / static_cast<double>(figures.committed);
  state.counters["files_dropped"] = static_cast<double>(figures.files_dropped);
  state.counters["disk_MiB"] = static_cast<double>(store->size_on_disk()) / (1 << 20);
  state.counters["rss_MiB"] = resident_mib();
}
BENCHMARK(BM_Drain)
    ->Arg(1)
    ->Arg(100)
    ->Arg(10'000)
    ->Iterations(30)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace stanchion::store

BENCHMARK_MAIN();
