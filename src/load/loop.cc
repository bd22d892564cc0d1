#include "load/loop.h"

#include <fmt/format.h>

#include <algorithm>

namespace stanchion::load {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kTick(100);
constexpr seconds kConnectTimeMax(10);
// Longer than the longest poll.
constexpr seconds kSilenceMax(60);
// A run with more errors than this is useless.
constexpr std::uint64_t kErrorsMax = 100;
constexpr std::size_t kQuoteMax = 500;

}  // namespace

std::string_view name_of(Op op) {
  static constexpr std::array<std::string_view, kOpCount> kNames{
      "send",        "receive", "delete",      "cycle",   "plain send",
      "waking send", "wake-up", "wake-up lag", "request", "fdatasync"};
  return kNames[static_cast<std::size_t>(op)];
}

LoadLoop::LoadLoop(const std::atomic<bool>& interrupted, std::function<void(Time)> on_tick)
    : interrupted_(interrupted), on_tick_(std::move(on_tick)) {}

Status LoadLoop::open(const Target& target, std::size_t connections) {
  auto client = Connections::open(target, connections, *this);
  if (!client) return std::unexpected(client.error());
  client_ = std::move(*client);
  workers_.resize(connections);
  for (std::size_t i = 0; i < connections; ++i) workers_[i].index = i;
  client_->connect_all();
  const Time end = std::chrono::steady_clock::now() + kConnectTimeMax;
  while (client_->open_count() < connections && failure_.empty()) {
    if (std::chrono::steady_clock::now() > end)
      return fail(fmt::format("only {} of {} connections were accepted within {} s",
                              client_->open_count(), connections, kConnectTimeMax.count()));
    client_->wait(end);
  }
  if (!failure_.empty()) return fail(failure_);
  return {};
}

Status LoadLoop::run(Load& load, double rate) {
  load_ = &load;
  Time now = std::chrono::steady_clock::now();
  interval_ = Histogram::Nanos(rate > 0 ? static_cast<Histogram::Nanos::rep>(1e9 / rate) : 0);
  next_slot_ = now;
  last_reply_ = now;
  for (Worker& worker : workers_) {
    worker.step = Worker::Step::kIdle;
    go_on(worker, now);
  }
  while (!over(now)) {
    client_->wait(next_time(now));
    now = std::chrono::steady_clock::now();
    wake(now);
    if (now - last_tick_ >= kTick) {
      last_tick_ = now;
      if (on_tick_) on_tick_(now);
    }
    if (under_way_ > 0 && now - last_reply_ > kSilenceMax)
      failure_ = fmt::format("no answer for {} s", kSilenceMax.count());
  }
  load_ = nullptr;
  for (Worker& worker : workers_)
    if (worker.step != Worker::Step::kIdle) client_->close(worker.index);
  under_way_ = 0;
  slotted_.clear();
  later_.clear();
  if (!failure_.empty()) return fail(failure_);
  return {};
}

bool LoadLoop::over(Time now) const {
  const bool idle = under_way_ == 0 && slotted_.empty() && later_.empty();
  return idle || (interrupted_ && !cleaning_up_) || !failure_.empty() || load_->finished(now);
}

// When the loop has something to do even without an event.
Time LoadLoop::next_time(Time now) const {
  Time next = now + kTick;
  if (!slotted_.empty()) next = std::min(next, workers_[slotted_.front()].unit_due);
  for (const std::size_t index : later_) next = std::min(next, workers_[index].ask_again);
  return next;
}

void LoadLoop::wake(Time now) {
  while (!slotted_.empty() && workers_[slotted_.front()].unit_due <= now) {
    Worker& worker = workers_[slotted_.front()];
    slotted_.pop_front();
    worker.due = worker.unit_due;
    ask(worker, now);
  }
  for (const std::size_t index : std::exchange(later_, {})) {
    if (workers_[index].ask_again <= now) {
      go_on(workers_[index], now);
    } else {
      later_.push_back(index);
    }
  }
}

void LoadLoop::go_on(Worker& worker, Time now) {
  worker.due = now;
  if (!load_->begins_unit(worker)) return ask(worker, now);
  worker.unit_due = now;
  if (interval_ > Histogram::Nanos::zero()) {
    worker.unit_due = next_slot_;
    worker.due = next_slot_;
    next_slot_ += interval_;
    if (worker.unit_due > now) return slotted_.push_back(worker.index);
  }
  ask(worker, now);
}

void LoadLoop::ask(Worker& worker, Time now) {
  switch (load_->next(worker, now)) {
    case Load::Next::kRequest:
      ++under_way_;
      return client_->send(worker.index, worker.request);
    case Load::Next::kLater:
      worker.step = Worker::Step::kIdle;
      return later_.push_back(worker.index);
    case Load::Next::kDone:
      worker.step = Worker::Step::kIdle;
      return;
  }
}

void LoadLoop::on_response(std::size_t connection, const net::ResponseReader& response) {
  if (load_ == nullptr) return;
  Worker& worker = workers_[connection];
  const Time now = std::chrono::steady_clock::now();
  last_reply_ = now;
  --under_way_;
  if (response.status() == 200) {
    if (!load_->on_reply(worker, response.body(), now))
      failure_ =
          fmt::format("this answer is not one of SQS: {}", response.body().substr(0, kQuoteMax));
  } else {
    note(errors_.refused,
         fmt::format("HTTP {}: {}", response.status(), response.body().substr(0, kQuoteMax)));
    load_->on_failure(worker);
  }
  if (failure_.empty()) go_on(worker, now);
}

void LoadLoop::on_broken(std::size_t connection, const Failure& failure) {
  // While connections are being opened, nothing else can be measured.
  if (load_ == nullptr) {
    failure_ = failure.message;
    return;
  }
  --under_way_;
  note(errors_.broken, failure.message);
  Worker& worker = workers_[connection];
  load_->on_failure(worker);
  // Retried a little later, so as not to flood a server that refuses connections.
  worker.step = Worker::Step::kIdle;
  worker.ask_again = std::chrono::steady_clock::now() + kTick;
  later_.push_back(connection);
}

void LoadLoop::note(std::uint64_t& counter, std::string text) {
  ++counter;
  if (errors_.first.empty()) errors_.first = std::move(text);
  if (errors_.total() >= kErrorsMax)
    failure_ = fmt::format("{} errors, the first: {}", errors_.total(), errors_.first);
}

}  // namespace stanchion::load
