#include "worker/visibility_monitor.h"

#include <algorithm>

#include "base/check.h"

namespace stanchion::worker {
namespace {

// How many ticks earlier than usual an extension that failed is tried again.
constexpr int kRetriesPerTick = 4;

}  // namespace

VisibilityMonitor::VisibilityMonitor(MonitorOptions options, Extend extend, Lost lost)
    : options_(options), extend_(std::move(extend)), lost_(std::move(lost)) {
  CHECK(options_.period.count() > 0, "a visibility of nothing cannot be kept");
  options_.window = std::max(options_.window, options_.period);
}

void VisibilityMonitor::add(const Task& task, Instant received) {
  const Instant end = received + options_.period;
  const bool added =
      held_.emplace(task->id, Held{task, end, received + kInFlightMax, {}, {}}).second;
  CHECK(added, "VM1: a task is added once");
  by_end_.emplace(end, task->id);
  task->set_visibility_end(end);
  const Instant tick = received + between_ticks();
  if (!next_tick_ || tick < *next_tick_) next_tick_ = tick;
}

bool VisibilityMonitor::remove(TaskId task) {
  const auto found = held_.find(task);
  if (found == held_.end()) return false;
  const bool under_way = found->second.sent.has_value();
  const std::size_t erased = by_end_.erase({found->second.end, task});
  CHECK(erased == 1, "VM1: a task is in the order once");
  held_.erase(found);
  if (held_.empty()) next_tick_.reset();
  return under_way;
}

void VisibilityMonitor::answered(TaskId task, Extended result, Instant now) {
  const auto found = held_.find(task);
  if (found == held_.end() || !found->second.sent) return;
  Held& held = found->second;
  const Instant sent = *std::exchange(held.sent, std::nullopt);
  const auto at = by_end_.find({held.end, task});
  CHECK(at != by_end_.end(), "VM1: a task is in the order once");
  switch (result) {
    case Extended::kYes: {
      by_end_.erase(at);
      held.end = sent + held.asked;
      CHECK(held.end <= now + options_.period, "VM3: an extension counts from when it was sent");
      by_end_.emplace(held.end, task);
      held.task->set_visibility_end(held.end);
      return;
    }
    case Extended::kRefused:
      lose(at, Loss::kGone);
      return;
    case Extended::kFailed:
      next_tick_ = std::min(*next_tick_, now + between_ticks() / kRetriesPerTick);
      return;
  }
}

std::optional<Instant> VisibilityMonitor::next_tick() const {
  return next_tick_;
}

void VisibilityMonitor::tick(Instant now) {
  if (!next_tick_ || now < *next_tick_) return;
  std::vector<ExtensionBatch> batches;
  std::unordered_map<std::string, std::size_t> open;
  next_tick_ = now + between_ticks();
  for (auto at = by_end_.begin(); at != by_end_.end();) {
    ++visited_;
    if (at->first > now + options_.window) break;
    const auto here = at++;
    Held& held = held_.at(here->second);
    const auto room = std::chrono::floor<std::chrono::seconds>(held.cap - now);
    if (held.end <= now) {
      lose(here, held.cap <= now ? Loss::kCapped : Loss::kExpired);
    } else if (!held.sent && now + room <= held.end) {
      lose(here, Loss::kCapped);
    } else {
      // Without an answer the task is lost when its visibility ends.
      next_tick_ = std::min(*next_tick_, held.end);
      if (held.sent) continue;
      held.sent = now;
      held.asked = std::min(options_.period, room);
      put(batches, open, held);
    }
  }
  if (held_.empty()) next_tick_.reset();
  for (ExtensionBatch& batch : batches) extend_(std::move(batch));
}

void VisibilityMonitor::put(std::vector<ExtensionBatch>& batches,
                            std::unordered_map<std::string, std::size_t>& open,
                            const Held& held) const {
  const TaskInformation& task = *held.task;
  const auto [at, first] = open.try_emplace(task.queue_url, batches.size());
  if (!first && batches[at->second].extensions.size() == kBatchMax) at->second = batches.size();
  if (at->second == batches.size()) batches.push_back({.queue_url = task.queue_url});
  batches[at->second].extensions.push_back({task.id, task.receipt_handle, held.asked});
}

void VisibilityMonitor::check_invariants() const {
  CHECK(by_end_.size() == held_.size(), "VM1: a task is in the order once");
  CHECK(held_.empty() != next_tick_.has_value(), "VM2: somebody ticks as long as a task is held");
  for (const auto& [end, task] : by_end_)
    CHECK(held_.at(task).end == end, "VM1: a task is in the order once");
}

void VisibilityMonitor::lose(Order::iterator at, Loss loss) {
  const auto found = held_.find(at->second);
  CHECK(found != held_.end(), "VM1: a task is lost once");
  const Task task = std::move(found->second.task);
  held_.erase(found);
  by_end_.erase(at);
  if (held_.empty()) next_tick_.reset();
  lost_(task, loss);
}

}  // namespace stanchion::worker
