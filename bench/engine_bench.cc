// The cost of the engine alone: no journal, no network, no clock.
//
// "Life" is send + receive + delete of one message (R10). Memory is what malloc allocated.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#ifdef STANCHION_JEMALLOC
#include <jemalloc/jemalloc.h>
#else
#include <malloc.h>
#endif

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace stanchion::engine {
namespace {

enum Kind : std::int64_t { kStandard, kFair, kFifo };

QueueRef ref_of(Kind kind) {
  return {"000000000000", "us-east-1", kind == kFifo ? "queue.fifo" : "queue"};
}

class Bench {
 public:
  Bench(Kind kind, std::int64_t groups, std::size_t body_size)
      : kind_(kind), groups_(kind == kStandard ? 0 : static_cast<std::uint64_t>(groups)) {
    Decision decision = decide();
    engine_->found({}, decision);
    CreateQueue create{ref_of(kind), {}, {}};
    if (kind == kFifo) create.attributes["FifoQueue"] = "true";
    must(create);
    SendMessage send{ref_of(kind), "AIDACKCEVSQ6C2EXAMPLE", {}};
    send.message.body = std::string(body_size, 'x');
    send_ = std::move(send);
    ReceiveMessage receive;
    receive.queue = ref_of(kind);
    receive_ = std::move(receive);
    delete_ = DeleteMessage{ref_of(kind), {}};
  }

  void send() {
    name_next(std::get<SendMessage>(send_).message);
    must(send_);
  }

  // Receives and deletes one message.
  void take() {
    const Reply reply = must(receive_);
    const auto& result = std::get<ReceiveMessageResult>(*reply);
    CHECK(result.messages.size() == 1, "a message is there");
    std::get<DeleteMessage>(delete_).receipt_handle = result.messages.front().receipt_handle;
    must(delete_);
  }

  void send_ten() {
    if (std::get<SendMessageBatch>(send_ten_).entries.empty()) {
      const auto& send = std::get<SendMessage>(send_);
      SendMessageBatch batch{send.queue, send.sender_id, {}};
      for (int i = 0; i < 10; ++i) batch.entries.push_back({fmt::to_string(i), send.message});
      send_ten_ = std::move(batch);
    }
    for (auto& entry : std::get<SendMessageBatch>(send_ten_).entries) name_next(entry.message);
    must(send_ten_);
  }

  void take_ten() {
    std::get<ReceiveMessage>(receive_).max_number_of_messages = 10;
    const Reply reply = must(receive_);
    const auto& messages = std::get<ReceiveMessageResult>(*reply).messages;
    CHECK(messages.size() == 10, "ten messages are there");
    auto& batch = std::get<DeleteMessageBatch>(delete_ten_);
    batch.queue = ref_of(kind_);
    batch.entries.resize(messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i)
      batch.entries[i] = {fmt::to_string(i), messages[i].receipt_handle};
    must(delete_ten_);
  }

  void hand_out_ten() {
    std::get<ReceiveMessage>(receive_).max_number_of_messages = 10;
    must(receive_);
  }

  void set_attribute(const std::string& name, const std::string& value) {
    SetQueueAttributes set{ref_of(kind_), {}};
    set.attributes[name] = value;
    must(set);
  }

  // Longer than any delay, visibility timeout or retention: everything falls due in one call.
  void let_everything_fall_due() {
    now_ += std::chrono::days(15);
    engine_->advance(now_);
  }

  void fill(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) send();
  }

  Reply must(const Request& request) {
    // Time passes, so that the deduplication window of FIFO queues is full but does not grow.
    if (++requests_ % 8 == 0) now_ += Duration(1);
    engine_->advance(now_);
    Decision decision = decide();
    Reply reply = engine_->execute(request, {}, decision);
    CHECK(reply, "the request is fine");
    if (keep_ && !record_.empty()) records_.push_back(record_.bytes());
    return reply;
  }

  std::size_t counted() const { return engine_->message_bytes() + engine_->structure_bytes(); }

  void keep_records() { keep_ = true; }
  const std::vector<std::string>& records() const { return records_; }

 private:
  Decision decide() {
    record_.start(now_);
    return {now_, Random({0x123456789, ++decisions_}), record_};
  }

  void name_next(OutgoingMessage& message) {
    ++sent_;
    if (groups_ > 0) message.group_id = fmt::format("group-{}", sent_ % groups_);
    if (kind_ == kFifo) message.deduplication_id = fmt::format("deduplication-{}", sent_);
  }

  const Kind kind_;
  const std::uint64_t groups_;
  std::unique_ptr<Engine> engine_ = std::make_unique<Engine>(Options{});
  Instant now_ = from_millis(1'700'000'000'000);
  RecordWriter record_{now_};
  // Made once and changed in place: making requests is the work of the wire layer.
  Request send_, receive_, delete_;
  Request send_ten_ = SendMessageBatch();
  Request delete_ten_ = DeleteMessageBatch();
  std::uint64_t decisions_ = 0;
  std::uint64_t requests_ = 0;
  std::uint64_t sent_ = 0;
  bool keep_ = false;
  std::vector<std::string> records_;
};

// Arguments: kind, groups, size of the backlog.
void Life(benchmark::State& state) {
  Bench bench(static_cast<Kind>(state.range(0)), state.range(1), 100);
  bench.fill(state.range(2));
  for (auto _ : state) {
    bench.send();
    bench.take();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Life)
    ->ArgNames({"kind", "groups", "waiting"})
    ->Args({kStandard, 0, 0})
    ->Args({kStandard, 0, 1'000})
    ->Args({kStandard, 0, 1'000'000})
    ->Args({kFair, 1'000, 1'000})
    ->Args({kFair, 1'000, 1'000'000})
    ->Args({kFifo, 1, 0})
    ->Args({kFifo, 1, 1'000})
    ->Args({kFifo, 1'000, 1'000})
    ->Args({kFifo, 1'000, 1'000'000})
    ->Args({kFifo, 1'000'000, 1'000'000});

void LifeInBatchesOfTen(benchmark::State& state) {
  Bench bench(static_cast<Kind>(state.range(0)), state.range(1), 100);
  bench.fill(state.range(2));
  for (auto _ : state) {
    bench.send_ten();
    bench.take_ten();
  }
  state.SetItemsProcessed(state.iterations() * 10);
}
BENCHMARK(LifeInBatchesOfTen)
    ->ArgNames({"kind", "groups", "waiting"})
    ->Args({kStandard, 0, 1'000})
    ->Args({kFair, 1'000, 1'000})
    ->Args({kFifo, 1, 1'000})
    ->Args({kFifo, 1'000, 1'000});

// One step of a life by itself. The other steps are made in rounds that are not timed.
constexpr std::int64_t kRound = 10'000;

void SendOnly(benchmark::State& state) {
  auto bench = std::make_unique<Bench>(static_cast<Kind>(state.range(0)), state.range(1), 100);
  std::int64_t sent = 0;
  for (auto _ : state) {
    if (++sent % (100 * kRound) == 0) {
      state.PauseTiming();
      bench = std::make_unique<Bench>(static_cast<Kind>(state.range(0)), state.range(1), 100);
      state.ResumeTiming();
    }
    bench->send();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(SendOnly)->ArgNames({"kind", "groups"})->Args({kStandard, 0})->Args({kFifo, 1'000});

// Reading records and applying their facts: what recovery does.
void Replay(benchmark::State& state) {
  Bench bench(static_cast<Kind>(state.range(0)), 1'000, 100);
  bench.keep_records();
  for (int i = 0; i < kRound; ++i) {
    bench.send();
    bench.take();
  }
  std::int64_t facts = 0;
  for (auto _ : state) {
    Engine engine{Options{}};
    const QueueRef ref = ref_of(static_cast<Kind>(state.range(0)));
    QueueAttributes attributes;
    attributes.fifo = state.range(0) == kFifo;
    engine.apply(QueueCreated{QueueId(1), ref, attributes, {}}, from_millis(1));
    for (const std::string& bytes : bench.records()) {
      const auto record = parse_record(bytes);
      engine.advance(record->at);
      for (const Fact& fact : record->facts) engine.apply(fact, record->at);
      facts += static_cast<std::int64_t>(record->facts.size());
    }
  }
  state.SetItemsProcessed(facts);
}
BENCHMARK(Replay)->ArgName("kind")->Arg(kStandard)->Arg(kFair)->Arg(kFifo);

enum Due : std::int64_t { kDelayEnds, kVisibleAgain, kExpires, kDelayBegins };

// How long a shard is busy when this many timers fall due at one instant, or when a queue gets a
// new delay for all its messages. Arguments: kind, what falls due, messages; on a FIFO queue each
// message has its own group.
void FallDue(benchmark::State& state) {
  const auto due = static_cast<Due>(state.range(1));
  for (auto _ : state) {
    state.PauseTiming();
    auto bench = std::make_unique<Bench>(static_cast<Kind>(state.range(0)), state.range(2), 100);
    bench->set_attribute("MessageRetentionPeriod", due == kExpires ? "345600" : "1209600");
    if (due == kDelayEnds) bench->set_attribute("DelaySeconds", "900");
    bench->set_attribute("VisibilityTimeout", "43200");
    bench->fill(state.range(2));
    for (std::int64_t i = 0; due == kVisibleAgain && i < state.range(2); i += 10)
      bench->hand_out_ten();
    state.ResumeTiming();
    if (due == kDelayBegins) {
      bench->set_attribute("DelaySeconds", "900");
    } else {
      bench->let_everything_fall_due();
    }
    state.PauseTiming();
    bench.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * state.range(2));
}
BENCHMARK(FallDue)
    ->ArgNames({"kind", "due", "messages"})
    ->ArgsProduct({{kStandard, kFifo}, {kDelayEnds, kExpires}, {10'000, 100'000, 1'000'000}})
    ->ArgsProduct({{kFifo}, {kDelayBegins}, {10'000, 100'000, 1'000'000}})
    // No more messages of one queue can be in flight.
    ->ArgsProduct({{kStandard, kFifo}, {kVisibleAgain}, {10'000, 100'000}})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

std::size_t allocated() {
#ifdef STANCHION_JEMALLOC
  std::uint64_t epoch = 1;
  mallctl("epoch", nullptr, nullptr, &epoch, sizeof epoch);
  std::size_t bytes = 0;
  std::size_t size = sizeof bytes;
  mallctl("stats.allocated", &bytes, &size, nullptr, 0);
  return bytes;
#else
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#endif
}

// Bytes of memory per waiting message, body included, and those of them that count toward the
// budget. Arguments: kind, groups, body size.
void MemoryPerMessage(benchmark::State& state) {
  constexpr std::int64_t kMessages = 200'000;
  for (auto _ : state) {
    Bench bench(static_cast<Kind>(state.range(0)), state.range(1),
                static_cast<std::size_t>(state.range(2)));
    const std::size_t before = allocated();
    bench.fill(kMessages);
    state.counters["bytes"] =
        static_cast<double>(allocated() - before) / static_cast<double>(kMessages);
    state.counters["counted"] =
        static_cast<double>(bench.counted()) / static_cast<double>(kMessages);
  }
}
BENCHMARK(MemoryPerMessage)
    ->ArgNames({"kind", "groups", "body"})
    ->Args({kStandard, 0, 100})
    ->Args({kStandard, 0, 200})
    ->Args({kFair, 1'000, 100})
    ->Args({kFair, 200'000, 100})
    ->Args({kFifo, 1, 100})
    ->Args({kFifo, 200'000, 100})
    ->Iterations(1);

// Bytes per empty queue, including settings and names.
void MemoryPerEmptyQueue(benchmark::State& state) {
  constexpr int kQueues = 20'000;
  for (auto _ : state) {
    Bench bench(static_cast<Kind>(state.range(0)), 1, 100);
    const std::size_t before = allocated();
    for (int i = 0; i < kQueues; ++i) {
      CreateQueue create{ref_of(static_cast<Kind>(state.range(0))), {}, {}};
      create.queue.name = fmt::format("{}-{}", i, create.queue.name);
      if (state.range(0) == kFifo) create.attributes["FifoQueue"] = "true";
      bench.must(create);
    }
    state.counters["bytes"] =
        static_cast<double>(allocated() - before) / static_cast<double>(kQueues);
  }
}
BENCHMARK(MemoryPerEmptyQueue)->ArgName("kind")->Arg(kStandard)->Arg(kFifo)->Iterations(1);

}  // namespace
}  // namespace stanchion::engine

BENCHMARK_MAIN();
