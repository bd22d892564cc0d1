// One engine for tests: its clock is a number, its journal a list of records, and what the broker
// would do between requests (let time pass, pace move tasks, hand over transfers) is done after
// each of them.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace stanchion::engine {

class TestWorld {
 public:
  // How far transfers get before the next request.
  enum class Road { kOpen, kClosed, kNotSettling };

  explicit TestWorld(bool strict = false, const MemoryOptions& memory = {})
      : options_{ShardIndex(0), strict, memory} {
    engine_ = std::make_unique<Engine>(options_);
    MacKey key{};
    for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i * 7 + 1);
    decide([&](Decision& decision) { engine_->found(key, decision); });
  }

  Engine& engine() { return *engine_; }
  Instant now() const { return now_; }
  const std::vector<std::string>& records() const { return records_; }

  static QueueRef ref(std::string name) { return {"000000000000", "us-east-1", std::move(name)}; }

  Reply ask(const Request& request) {
    Reply reply = ask_and_look_away(request);
    settle_down();
    return reply;
  }

  // Time is not advanced: what falls due at this very instant has not happened.
  Reply ask_and_look_away(const Request& request) {
    engine_->advance(now_);
    Neighbours neighbours;
    if (const Needs needs = needs_of(request); needs.any()) engine_->contribute(needs, neighbours);
    std::optional<Reply> reply;
    decide([&](Decision& decision) { reply = engine_->execute(request, neighbours, decision); });
    return std::move(*reply);
  }

  // The answer to a request that must succeed.
  template <class T>
  T get(const Request& request) {
    Reply reply = ask(request);
    if (!reply) throw std::runtime_error("refused: " + reply.error().message);
    return std::get<T>(std::move(*reply));
  }

  // Lets time pass from deadline to deadline, as the broker's timer does.
  void tick(Duration duration) {
    const Instant end = now_ + duration;
    settle_down();
    while (engine_->next_deadline() <= end) {
      now_ = std::max(now_, engine_->next_deadline());
      settle_down();
    }
    now_ = end;
    settle_down();
  }

  // One step, however much falls due in it, as after a machine was suspended.
  void jump(Duration duration) {
    now_ += duration;
    engine_->advance(now_);
  }

  void set_road(Road road) {
    road_ = road;
    handed_over_ = TransferNo(1);
    settle_down();
  }

  // Replays the journal into a fresh engine and continues with that one. False if the two differ.
  bool restart() {
    auto replayed = std::make_unique<Engine>(options_);
    for (const std::string& bytes : records_) {
      const auto record = parse_record(bytes);
      if (!record) throw std::runtime_error(record.error().message);
      replayed->advance(record->at);
      for (const Fact& fact : record->facts) replayed->apply(fact, record->at);
    }
    engine_->advance(now_);
    replayed->advance(now_);
    replayed->check_invariants();
    const bool same = replayed->fingerprint() == engine_->fingerprint() &&
                      replayed->next_deadline() == engine_->next_deadline();
    engine_ = std::move(replayed);
    handed_over_ = TransferNo(1);
    settle_down();
    return same;
  }

 private:
  template <class Decide>
  bool decide(Decide&& decide) {
    RecordWriter record(now_);
    Decision decision{now_, Random({0x5374616e6368696fULL, ++decisions_}), record};
    decide(decision);
    if (record.empty()) return false;
    records_.push_back(record.bytes());
    return true;
  }

  // Until nothing is left to do at this instant.
  void settle_down() {
    bool busy = true;
    while (busy) {
      engine_->advance(now_);
      busy = decide([&](Decision& decision) { engine_->move_messages(decision); });
      if (road_ != Road::kClosed) busy = carry() || busy;
    }
    if (engine_->next_deadline() <= now_)
      throw std::logic_error("next_deadline() stays in the past though there is nothing to do");
  }

  // Hands over transfers under way; false if there were none.
  bool carry() {
    bool any = false;
    while (const auto transfer = engine_->hand_over(handed_over_, engine_->next_transfer())) {
      any = true;
      TransferVerdict verdict{};
      decide([&](Decision& decision) { verdict = engine_->accept(*transfer, decision); });
      if (verdict == TransferVerdict::kRefused) {
        decide([&](Decision& decision) { engine_->refuse_transfer(transfer->number, decision); });
      } else if (road_ == Road::kOpen) {
        decide([&](Decision& decision) { engine_->settle({transfer->number}, decision); });
      }
    }
    return any;
  }

  const Options options_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::string> records_;
  Instant now_ = from_millis(1'700'000'000'000);
  std::uint64_t decisions_ = 0;
  Road road_ = Road::kOpen;
  TransferNo handed_over_{1};  // The first transfer not handed over since the mode changed.
};

}  // namespace stanchion::engine
