// What it costs to hold messages: the visibility monitor from ten to 100,000 in flight.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/visibility_monitor.h"

namespace {

using namespace stanchion::worker;
using std::chrono::seconds;

std::vector<Task> tasks(std::size_t count) {
  std::vector<Task> all;
  for (std::size_t i = 0; i < count; ++i) {
    TaskInformation task;
    task.id = TaskId{i + 1};
    task.queue_url = "http://127.0.0.1:9324/000000000000/queue";
    task.receipt_handle = std::string(180, 'r');
    all.push_back(std::make_shared<const TaskInformation>(std::move(task)));
  }
  return all;
}

// One tick, at which everything that is in flight is extended, and the answers to it.
void BM_ExtendAll(benchmark::State& state) {
  const auto all = tasks(static_cast<std::size_t>(state.range(0)));
  std::vector<ExtensionBatch> sent;
  VisibilityMonitor monitor(
      {.period = seconds(30)}, [&](ExtensionBatch batch) { sent.push_back(std::move(batch)); },
      [](const Task&, Loss) {});
  Instant now{seconds(1)};
  Instant begun = now;
  for (const Task& task : all) monitor.add(task, now);
  for (auto _ : state) {
    // No message is held for 12 hours.
    if (now - begun > std::chrono::hours(11)) {
      state.PauseTiming();
      begun = now;
      for (const Task& task : all) {
        monitor.remove(task->id);
        monitor.add(task, now);
      }
      state.ResumeTiming();
    }
    now = *monitor.next_tick();
    monitor.tick(now);
    for (const ExtensionBatch& batch : std::exchange(sent, {}))
      for (const Extension& extension : batch.extensions)
        monitor.answered(extension.task, Extended::kYes, now);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_ExtendAll)->RangeMultiplier(10)->Range(10, 100'000);

// A message that comes and goes while the others are held.
void BM_AddAndRemove(benchmark::State& state) {
  const auto all = tasks(static_cast<std::size_t>(state.range(0)) + 1);
  VisibilityMonitor monitor(
      {.period = seconds(30)}, [](const ExtensionBatch&) {}, [](const Task&, Loss) {});
  const Instant now{seconds(1)};
  for (std::size_t i = 1; i < all.size(); ++i) monitor.add(all[i], now);
  for (auto _ : state) {
    monitor.add(all[0], now);
    monitor.remove(all[0]->id);
  }
}
BENCHMARK(BM_AddAndRemove)->RangeMultiplier(10)->Range(10, 100'000);

}  // namespace

BENCHMARK_MAIN();
