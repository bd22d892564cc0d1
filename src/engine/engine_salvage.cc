// Replays the journal onto a store that lost something.
#include <algorithm>
#include <utility>

#include "engine/engine.h"

namespace stanchion::engine {
namespace {

// The queue that a fact concerns, or none.
const QueueId* queue_named_by(const Fact& fact) {
  return std::visit(
      [](const auto& f) -> const QueueId* {
        if constexpr (requires { f.queue; }) return &f.queue;
        return nullptr;
      },
      fact);
}

std::vector<Seq> messages_named_by(const Fact& fact) {
  std::vector<Seq> seqs;
  if (const auto* deleted = std::get_if<MessagesDeleted>(&fact)) return deleted->seqs;
  if (const auto* received = std::get_if<MessagesReceived>(&fact))
    for (const auto& item : received->items) seqs.push_back(item.seq);
  if (const auto* changed = std::get_if<VisibilityChanged>(&fact))
    for (const auto& item : changed->items) seqs.push_back(item.seq);
  if (const auto* left = std::get_if<MessagesLeft>(&fact))
    for (const auto& item : left->items) seqs.push_back(item.seq);
  return seqs;
}

}  // namespace

// A message whose record was lost waits among the members, anywhere in its chunk.
Status Engine::bring_in_named(const Fact& fact, const Living& living, const ScanStore& scan,
                              Instant at) {
  const QueueId* id = queue_named_by(fact);
  const auto known = id == nullptr ? living.end() : living.find(*id);
  Queue* queue = known == living.end() ? nullptr : find_by_id(*id);
  if (queue == nullptr) return {};
  for (const Seq seq : messages_named_by(fact)) {
    if (!std::ranges::binary_search(known->second, seq)) continue;
    while (queue->find(seq) == nullptr && queue->stock().residency().want_around(seq))
      RETURN_IF_FAILED(read_wanted(scan, at));
  }
  return {};
}

// Judged now, so that each fact is seen after those before it were applied; earlier, one could only
// tell whether its messages exist at all.
std::uint64_t Engine::leave_out_missing(Fact& fact, bool by_state) const {
  const QueueId* id = queue_named_by(fact);
  const Queue* queue = id == nullptr ? nullptr : find(*id);
  const auto is = [&](Seq seq, State state) {
    const Message* message = queue->find(seq);
    return message != nullptr && (!by_state || message->state == state);
  };
  if (auto* deleted = std::get_if<MessagesDeleted>(&fact))
    return std::erase_if(deleted->seqs, [&](Seq seq) { return queue->find(seq) == nullptr; });
  if (auto* received = std::get_if<MessagesReceived>(&fact))
    return std::erase_if(received->items,
                         [&](const auto& item) { return !is(item.seq, State::kReady); });
  if (auto* changed = std::get_if<VisibilityChanged>(&fact))
    return std::erase_if(changed->items,
                         [&](const auto& item) { return !is(item.seq, State::kInFlight); });
  if (auto* left = std::get_if<MessagesLeft>(&fact))
    return std::erase_if(left->items,
                         [&](const auto& item) { return !is(item.seq, State::kReady); });
  if (auto* settled = std::get_if<TransfersSettled>(&fact))
    return std::erase_if(settled->transfers,
                         [&](TransferNo number) { return !outbox_.under_way().contains(number); });
  return 0;
}

void Engine::recount_departures() {
  for (Queue* queue : listing_) {
    for (MoveTask& task : queue->tasks) {
      const auto is_of_task = [&](const auto& departure) {
        return departure.second.queue == queue->id && departure.second.task == task.id;
      };
      task.in_transit =
          static_cast<std::uint64_t>(std::ranges::count_if(outbox_.under_way(), is_of_task));
    }
    if (!queue->tasks.empty()) unsaved_.add(*queue);
  }
}

Result<std::uint64_t> Engine::apply_what_is_left(std::vector<Fact> facts, const Living& living,
                                                 const ScanStore& scan, Instant at) {
  std::uint64_t left_out = std::erase_if(facts, [&](const Fact& fact) {
    const QueueId* id = queue_named_by(fact);
    return id != nullptr && *id < next_queue_ && find_by_id(*id) == nullptr;
  });
  std::vector<Fact> present = facts;
  for (Fact& fact : present) {
    RETURN_IF_FAILED(bring_in_named(fact, living, scan, at));
    const QueueId* id = queue_named_by(fact);
    // Sound queues have all their messages, though perhaps not in memory.
    if (id != nullptr && living.contains(*id)) leave_out_missing(fact, false);
  }
  RETURN_IF_FAILED(prepare_for(present, scan, at));
  for (Fact& fact : facts) {
    const QueueId* id = queue_named_by(fact);
    if (id == nullptr || living.contains(*id)) left_out += leave_out_missing(fact, true);
    const auto* refused = std::get_if<TransferRefused>(&fact);
    if (refused != nullptr && !outbox_.under_way().contains(refused->transfer)) {
      ++left_out;
    } else {
      apply(fact, at);
    }
  }
  return left_out;
}

}  // namespace stanchion::engine
