// Messages that go from queue to queue, in the player.
#include <algorithm>

#include "tests/model/player.h"

namespace stanchion::reference {

void Player::move_task(const Operation& operation) {
  const QueueRef ref = ref_of(operation.queue);
  if (operation.kind == Operation::Kind::kStartMove) {
    StartMessageMoveTask request{ref.arn(), {}, operation.rate};
    std::optional<std::string> destination;
    if (operation.target) {
      destination = ref_of(*operation.target).name;
      request.destination_arn = ref_of(*operation.target).arn();
    }
    model_.start_move(ref.name, destination, operation.rate, execute(request));
  } else if (operation.kind == Operation::Kind::kListMoves) {
    model_.list_moves(ref.name, operation.most,
                      execute(ListMessageMoveTasks{ref.arn(), operation.most}));
  } else {
    const auto& handles = model_.task_handles();
    const auto back = static_cast<std::size_t>(operation.amount);
    std::optional<std::string> handle = "bm90IGEgdGFzaw==";
    if (back < handles.size()) handle = handles[handles.size() - 1 - back];
    model_.cancel_move(handle, execute(CancelMessageMoveTask{handle}));
  }
}

void Player::deliver(std::int64_t most) {
  TransferNo from(0);
  while (auto transfer = hand_over(from)) {
    const auto& passages = model_.passages();
    const auto passing = std::ranges::find(passages, transfer->number, &Passage::number);
    require(passing != passages.end(), "a transfer is under way that should not be");
    if (passing->verdict != Passage::Verdict::kNone) continue;
    if (most-- <= 0) break;
    engine::Decision decision = decide();
    const bool known = passing->arrived;
    transfer->settled_below = engine_->settled_below();
    const TransferVerdict verdict = engine_->accept(*transfer, decision);
    require(!known || record_.empty(), "a transfer was accepted twice");
    keep_record();
    model_.deliver(transfer->number, verdict);
  }
}

// Its content may have to be read first.
std::optional<Transfer> Player::hand_over(TransferNo& from) {
  auto transfer = engine_->hand_over(from, engine_->next_transfer());
  if (transfer || from == engine_->next_transfer()) return transfer;
  install_late();
  read_all(*engine_, now_);
  note("a transfer waited for the store");
  transfer = engine_->hand_over(from, engine_->next_transfer());
  require(transfer.has_value(), "what was read can be handed over");
  return transfer;
}

void Player::settle(std::int64_t most) {
  std::vector<TransferNo> accepted;
  std::vector<TransferNo> refused;
  for (const Passage& passing : model_.passages()) {
    if (passing.verdict == Passage::Verdict::kNone) continue;
    if (most-- <= 0) break;
    (passing.verdict == Passage::Verdict::kAccepted ? accepted : refused).push_back(passing.number);
  }
  for (auto from = accepted.begin(); from != accepted.end();) {
    const auto size =
        std::min(static_cast<std::size_t>(accepted.end() - from), sequence_.decision_messages);
    const auto end = from + static_cast<std::ptrdiff_t>(size);
    engine::Decision decision = decide();
    engine_->settle({from, end}, decision);
    keep_record();
    from = end;
  }
  for (const TransferNo number : accepted) model_.settle(number);
  for (const TransferNo number : refused) {
    engine::Decision another = decide();
    engine_->refuse_transfer(number, another);
    keep_record();
    model_.refuse(number);
  }
}

void Player::move_messages() {
  for (bool again = true; again;) {
    engine::Decision decision = decide();
    engine_->move_messages(decision);
    keep_record();
    // If a decision did as much as one may, the next goes on. A task that ends counts, too.
    const bool full = record_.messages() + tasks_ended() >= sequence_.decision_messages;
    if (full) note("a decision moved as many as one may");
    const auto reads = engine_->take_reads();
    again = full || !record_.empty() || !reads.empty();
    for (const engine::ColdRead& read : reads) {
      auto found = engine::Engine::read(read, store_.scan());
      require(found.has_value() && engine_->install(read, std::move(*found), now_).has_value(),
              "a message in the store cannot be read");
    }
    if (full || !again) compare_moves(full);
  }
}

std::size_t Player::tasks_ended() const {
  const auto record = parse_record(record_.bytes());
  require(record.has_value(), "a record cannot be read");
  return static_cast<std::size_t>(std::ranges::count_if(
      record->facts, [](const Fact& fact) { return std::holds_alternative<MoveTaskEnded>(fact); }));
}

void Player::compare_moves(bool full) {
  Model::TaskView tasks;
  engine_->for_each_queue([&](const engine::Queue& queue) {
    if (!queue.tasks.empty())
      tasks[queue.ref.name] = {queue.tasks.back().status, queue.tasks.back().failure_reason};
  });
  model_.move(engine_->transfers_from(model_.next_transfer()), tasks, full);
}

}  // namespace stanchion::reference
