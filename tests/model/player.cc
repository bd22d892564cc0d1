#include "tests/model/player.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace stanchion::reference {
namespace {

constexpr std::int64_t kStartMillis = 1'700'000'000'000;

// Messages that one request names.
constexpr std::size_t kNamedMax = 10;

StringMap attributes_of(const std::vector<Setting>& settings) {
  StringMap out;
  for (const Setting& setting : settings) out[setting.name()] = setting.text();
  return out;
}

// Small chunks, so that every message soon has neighbours that are only in the store.
engine::Options options_of(const Sequence& sequence) {
  return {.strict = sequence.strict,
          .memory = {.chunk_messages = sequence.chunk_messages,
                     .chunk_bytes = 1'000,
                     .read_ahead = 4,
                     .near_messages = 2},
          .decision_messages = sequence.decision_messages};
}

// Of several settings with the same name the last one counts, as in a map.
std::vector<Setting> distinct(const std::vector<Setting>& settings) {
  std::vector<Setting> out;
  for (const Setting& setting : settings) {
    std::erase_if(out, [&](const Setting& other) { return other.kind == setting.kind; });
    out.push_back(setting);
  }
  return out;
}

}  // namespace

Player::Player(const Sequence& sequence)
    : sequence_(sequence),
      engine_(std::make_unique<engine::Engine>(options_of(sequence))),
      model_(sequence.strict, sequence.decision_messages),
      now_(from_millis(kStartMillis)),
      record_(now_) {
  engine_->advance(now_);
  model_.advance(now_);
  engine::Decision decision = decide();
  engine_->found(MacKey{1, 2, 3}, decision);
  keep_record();
  for (const std::string_view name : kQueueNames) engine_->watch(ref_of(name), true);
}

std::optional<std::string> Player::play() {
  int done = 0;
  for (const Operation& operation : sequence_.operations) {
    try {
      step(operation);
      if (++done % sequence_.check_every == 0) engine_->check_invariants();
    } catch (const Mismatch& mismatch) {
      return fmt::format("at \"{}\": {}", operation.describe(), mismatch.what());
    }
  }
  engine_->check_invariants();
  return std::nullopt;
}

engine::Decision Player::decide() {
  record_.start(now_);
  ++draws_;
  return {now_, engine::Random({0x1234'5678'9ABC'DEF0ULL, draws_ * 0x9E37'79B9'7F4A'7C15ULL}),
          record_, full_};
}

void Player::keep_record() {
  require(record_.messages() <= sequence_.decision_messages + kNamedMax,
          fmt::format("one decision touched {} messages", record_.messages()));
  if (!record_.empty()) records_.push_back(record_.bytes());
}

Reply Player::execute(const Request& request) {
  engine::Neighbours neighbours;
  engine_->contribute(engine::needs_of(request), neighbours);
  for (;;) {
    engine::Decision decision = decide();
    Reply reply = engine_->execute(request, neighbours, decision);
    keep_record();
    if (decision.unfinished) {
      note("a receive met more dead letters than one decision moves");
      continue;
    }
    if (!decision.blocked) return reply;
    note("a request waited for the store");
    // The engine must not see what was read before a checkpoint ended.
    if (draws_ % 3 == 0) make_durable();
    install_late();
    read_all(*engine_, now_);
  }
}

void Player::step(const Operation& operation) {
  using enum Operation::Kind;
  const QueueRef ref = ref_of(operation.queue);
  receivable_.clear();
  for (const Queue& queue : model_.queues())
    if (model_.has_receivable(queue)) receivable_.insert(queue.name);
  engine_->take_awakened();
  full_ = operation.full;
  model_.set_nothing_leaves(full_);
  switch (operation.kind) {
    case kCreate:
      create(operation);
      break;
    case kDeleteQueue:
      model_.remove(ref.name, execute(DeleteQueue{ref}));
      break;
    case kPurge:
      model_.purge(ref.name, execute(PurgeQueue{ref}));
      break;
    case kSet:
      model_.set(ref.name, distinct(operation.settings),
                 execute(SetQueueAttributes{ref, attributes_of(operation.settings)}));
      break;
    case kGet:
      model_.get(ref.name, execute(GetQueueAttributes{ref, {"All"}}));
      break;
    case kSend:
    case kSendBatch:
      send(operation);
      break;
    case kReceive:
      receive(operation);
      break;
    case kDelete:
    case kDeleteBatch:
      delete_messages(operation);
      break;
    case kChange:
    case kChangeBatch:
      change(operation);
      break;
    case kStartMove:
    case kCancelMove:
    case kListMoves:
      move_task(operation);
      break;
    case kPeek:
      peek(operation);
      break;
    case kPeekPage:
      peek_page(operation);
      break;
    case kChoose:
      choose(operation);
      break;
    case kTick:
      tick(operation);
      break;
    case kRestart:
      restart();
      break;
    case kDeliver:
      deliver(operation.amount);
      break;
    case kSettle:
      settle(operation.amount);
      break;
    case kCheckpoint:
      checkpoint();
      break;
    case kDurable:
      make_durable();
      break;
    case kEvict:
      evict(operation.amount);
      break;
  }
  let_due_things_happen();
  collect(static_cast<std::size_t>(draws_ % 4));
  // As soon as they may be: nothing refers to what was purged or deleted.
  engine_->take_discarded();
  compare();
}

void Player::create(const Operation& operation) {
  CreateQueue request{ref_of(operation.queue), attributes_of(operation.settings), {}};
  if (is_fifo_name(request.queue.name)) request.attributes["FifoQueue"] = "true";
  model_.create(request.queue.name, distinct(operation.settings), execute(request));
}

std::string Player::entry_id(const Operation& operation, std::size_t index) const {
  if (operation.ids == Operation::Ids::kForbidden && index == 0) return "no!";
  if (operation.ids == Operation::Ids::kRepeated) return "same";
  return fmt::format("e{}", index);
}

void Player::send(const Operation& operation) {
  const QueueRef ref = ref_of(operation.queue);
  if (operation.kind == Operation::Kind::kSend) {
    const SendMessage request{ref, "sender", operation.messages.front().request()};
    model_.send(request, execute(request));
    return;
  }
  SendMessageBatch request{ref, "sender", {}};
  for (std::size_t i = 0; i < operation.messages.size(); ++i)
    request.entries.push_back({entry_id(operation, i), operation.messages[i].request()});
  model_.send(request, execute(request));
}

void Player::receive(const Operation& operation) {
  ReceiveMessage request;
  request.queue = ref_of(operation.queue);
  request.max_number_of_messages = operation.most;
  request.visibility_timeout = operation.visibility;
  if (operation.attempt) request.attempt_id = fmt::format("a{}", *operation.attempt);
  const TransferNo next = model_.next_transfer();
  // A receive may stop early at a message that is not in memory; the model does not know that.
  if (operation.most.value_or(1) > 1) bring_in(request.queue);
  const Reply reply = execute(request);
  model_.receive(request, reply, engine_->transfers_from(next));
}

std::optional<std::string> Player::handle_of(const Operation& operation, const Pick& pick) const {
  if (pick.kind == Pick::Kind::kMissing) return std::nullopt;
  if (pick.kind == Pick::Kind::kGarbage) return "no receipt at all";
  const std::string_view name = kQueueNames[static_cast<std::size_t>(operation.queue)];
  int back = pick.back;
  const auto& receipts = model_.receipts();
  for (auto receipt = receipts.rbegin(); receipt != receipts.rend(); ++receipt) {
    if (pick.kind == Pick::Kind::kOwn && receipt->queue_name != name) continue;
    if (back-- > 0) continue;
    std::string handle = receipt->handle;
    if (pick.kind == Pick::Kind::kForged) handle[10] = handle[10] == 'A' ? 'B' : 'A';
    return handle;
  }
  return "never given";
}

void Player::delete_messages(const Operation& operation) {
  const QueueRef ref = ref_of(operation.queue);
  if (operation.kind == Operation::Kind::kDelete) {
    const DeleteMessage request{ref, handle_of(operation, operation.picks.front())};
    model_.remove(request, execute(request));
    return;
  }
  DeleteMessageBatch request{ref, {}};
  for (std::size_t i = 0; i < operation.picks.size(); ++i)
    request.entries.push_back({entry_id(operation, i), handle_of(operation, operation.picks[i])});
  model_.remove(request, execute(request));
}

void Player::change(const Operation& operation) {
  const QueueRef ref = ref_of(operation.queue);
  if (operation.kind == Operation::Kind::kChange) {
    const Pick& pick = operation.picks.front();
    const ChangeMessageVisibility request{ref, handle_of(operation, pick), pick.timeout};
    model_.change(request, execute(request));
    return;
  }
  ChangeMessageVisibilityBatch request{ref, {}};
  for (std::size_t i = 0; i < operation.picks.size(); ++i)
    request.entries.push_back({entry_id(operation, i), handle_of(operation, operation.picks[i]),
                               operation.picks[i].timeout});
  model_.change(request, execute(request));
}

// Time in several steps does the same as in one, and before the next deadline nothing happens.
void Player::tick(const Operation& operation) {
  const Instant until = now_ + Duration(operation.amount);
  install_late();
  if (operation.steps == 1) {
    now_ = until;
    return;
  }
  const auto twin = replayed();
  const Instant deadline = engine_->next_deadline();
  require(deadline > now_, "something is due that was not done");
  const Instant before = std::min(deadline - Duration(1), until);
  const std::uint64_t fingerprint_before = fingerprint();
  now_ = before;
  advance(*engine_, before);
  engine::Decision decision = decide();
  engine_->move_messages(decision);
  require(record_.empty() && fingerprint() == fingerprint_before,
          "something happened before the next deadline");
  for (int i = 1; i <= operation.steps; ++i) {
    now_ = before + (until - before) * i / operation.steps;
    advance(*engine_, now_);
  }
  note("time passed in steps");
  twin->advance(until);
  require(twin->fingerprint() == fingerprint(),
          "time in several steps does not do the same as in one");
}

std::unique_ptr<engine::Engine> Player::replayed() const {
  auto fresh = std::make_unique<engine::Engine>(options_of(sequence_));
  for (const std::string& bytes : records_) {
    const auto record = parse_record(bytes);
    require(record.has_value(), "a record cannot be read");
    fresh->advance(record->at);
    for (const Fact& fact : record->facts) fresh->apply(fact, record->at);
  }
  fresh->advance(now_);
  return fresh;
}

std::unique_ptr<engine::Engine> Player::recovered() const {
  auto fresh = std::make_unique<engine::Engine>(options_of(sequence_));
  Instant at;
  const auto position = fresh->load(store_.scan(), at);
  require(position.has_value(), "the store cannot be loaded");
  read_all(*fresh, at);
  for (std::size_t i = position->value(); i < records_.size(); ++i) {
    const auto record = parse_record(records_[i]);
    require(record.has_value(), "a record cannot be read");
    advance(*fresh, record->at);
    while (!fresh->is_ready_for(record->facts, record->at)) read_all(*fresh, record->at);
    for (const Fact& fact : record->facts) fresh->apply(fact, record->at);
  }
  advance(*fresh, now_);
  return fresh;
}

std::uint64_t Player::fingerprint() const {
  return engine_->fingerprint([&](const KeyRange& range) {
    auto found = engine::Engine::read({.range = range}, store_.scan());
    require(found.has_value(), "a message in the store cannot be read");
    return std::move(*found);
  });
}

void Player::checkpoint() {
  if (collecting_ || store_.is_under_way()) return;
  const std::uint64_t before = engine_->looked_at_by_checkpoints();
  engine_->begin_checkpoint(Position(records_.size()), now_);
  require(engine_->looked_at_by_checkpoints() - before == 1,
          "a checkpoint begins with a look at what it will write");
  collecting_ = true;
}

// A checkpoint is assembled while other things happen.
void Player::collect(std::size_t messages) {
  if (!collecting_) return;
  const std::uint64_t before = engine_->looked_at_by_checkpoints();
  const bool whole = engine_->save_some(messages);
  // A chunk is written as a whole, and so is a page of deduplication ids.
  const std::uint64_t most = messages + std::max(2 * sequence_.chunk_messages + 1, 17U);
  require(engine_->looked_at_by_checkpoints() - before <= most,
          "a part of a checkpoint has no bound");
  if (!whole) return;
  collecting_ = false;
  store_.begin(engine_->take_checkpoint());
}

void Player::make_durable() {
  if (!store_.is_under_way()) return;
  store_.finish();
  engine_->checkpoint_is_durable();
  note("a checkpoint");
}

void Player::evict(std::int64_t budget) {
  const std::size_t before = engine_->message_bytes();
  while (engine_->evict_some(static_cast<std::size_t>(budget))) continue;
  if (engine_->message_bytes() < before) note("messages left memory");
}

void Player::read_all(engine::Engine& engine, Instant now) const {
  for (auto reads = engine.take_reads(); !reads.empty(); reads = engine.take_reads()) {
    for (const engine::ColdRead& read : reads) {
      auto found = engine::Engine::read(read, store_.scan());
      require(found.has_value(), "a message in the store cannot be read");
      const Status installed = engine.install(read, std::move(*found), now);
      require(installed.has_value(), installed ? "" : installed.error().message);
      note("a read from the store");
    }
  }
}

void Player::advance(engine::Engine& engine, Instant now) const {
  engine.advance(now);
  read_all(engine, now);
  require(!engine.stalled(), "everything was read, and yet a queue does not know what it holds");
}

void Player::bring_in(const QueueRef& ref) {
  // The player owns the engine; the queue is const for everybody else.
  auto* queue = const_cast<engine::Queue*>(engine_->find(ref));
  if (queue == nullptr) return;
  install_late();
  queue->stock().residency().want_entered_after(Instant::min());
  queue->for_each_message([&](const engine::Message& message) {
    queue->stock().residency().look_for(message.seq, true);
  });
  read_all(*engine_, now_);
}

void Player::restart() {
  store_.lose();
  collecting_ = false;
  auto fresh = recovered();
  note("a restart");
  require(replayed()->fingerprint() == fingerprint(), "replay does not lead to the same state");
  late_.clear();
  engine_ = std::move(fresh);
  require(replayed()->fingerprint() == fingerprint(), "recovery does not lead to the same state");
  engine_->check_invariants();
  model_.restarted();
  for (auto& [name, walk] : walks_) walk.restarted();
  for (const std::string_view name : kQueueNames) engine_->watch(ref_of(name), true);
  for (const Queue& queue : model_.queues()) receivable_.insert(queue.name);
}

void Player::install_late() {
  for (Arrived& late : std::exchange(late_, {})) {
    const Status installed = engine_->install(late.read, std::move(late.found), now_);
    require(installed.has_value(), installed ? "" : installed.error().message);
    note("a read ahead came late");
  }
}

void Player::let_due_things_happen() {
  // Read-ahead of earlier operations arrives now or later, whatever happened since.
  if (draws_ % 4 == 0) install_late();
  for (engine::ColdRead& read : engine_->take_reads()) {
    auto found = engine::Engine::read(read, store_.scan());
    require(found.has_value(), "a message in the store cannot be read");
    late_.push_back({std::move(read), std::move(*found)});
  }
  engine_->advance(now_);
  if (engine_->stalled() || engine_->has_move_tasks()) install_late();
  advance(*engine_, now_);
  model_.advance(now_);
  // A move stops at a message that is not in memory, and a FIFO group then waits until the message
  // has been read.
  for (const std::string_view name : kQueueNames)
    if (const engine::Queue* queue = engine_->find(ref_of(name));
        queue != nullptr && queue->fifo() && !queue->tasks.empty() && queue->tasks.back().running())
      bring_in(queue->ref);
  move_messages();
  require(engine_->next_deadline() > now_, "the next deadline has passed, but nothing is due");
}

void Player::compare() {
  for (const std::string_view name : kQueueNames) {
    const Queue* wanted = model_.find(std::string(name));
    const engine::Queue* is = engine_->find(ref_of(name));
    require((wanted == nullptr) == (is == nullptr),
            fmt::format("queue {} should {}exist", name, wanted == nullptr ? "not " : ""));
    if (wanted != nullptr) compare_queue(*wanted, *is);
  }
  compare_passages();
  check_awakened();
}

void Player::compare_queue(const Queue& wanted, const engine::Queue& is) const {
  using Where = Message::Where;
  const auto same = [&](const char* what, std::uint64_t got, std::uint64_t expected) {
    require(got == expected,
            fmt::format("{} has {} {} instead of {}", wanted.name, got, what, expected));
  };
  same("visible", is.counts().visible, wanted.count(Where::kReady));
  same("in flight", is.counts().in_flight, wanted.count(Where::kInFlight));
  same("delayed", is.counts().delayed, wanted.count(Where::kDelayed));
  const Instant oldest = wanted.messages.empty() ? kNever : wanted.messages.front().entered;
  require(is.oldest_entered().value_or(kNever) == oldest,
          "the oldest message of " + wanted.name + " is another");
  require(is.line() == wanted.line, "the groups of " + wanted.name + " stand in another order");
  same("tasks", is.tasks.size(), wanted.tasks.size());
  for (std::size_t i = 0; i < wanted.tasks.size(); ++i) {
    const Task& task = wanted.tasks[i];
    same("messages moved", is.tasks[i].moved, task.moved);
    same("messages in transit", is.tasks[i].in_transit, task.in_transit);
    require(is.tasks[i].status == task.status,
            fmt::format("a task of {} has status {} instead of {}", wanted.name,
                        static_cast<int>(is.tasks[i].status), static_cast<int>(task.status)));
    require(is.tasks[i].failure_reason == task.failure, "a task failed for another reason");
  }
}

void Player::compare_passages() const {
  const auto transfers = engine_->transfers_from(TransferNo(0));
  const auto& passages = model_.passages();
  require(
      transfers.size() == passages.size(),
      fmt::format("{} transfers are under way instead of {}", transfers.size(), passages.size()));
  for (std::size_t i = 0; i < passages.size(); ++i)
    require(transfers[i].number == passages[i].number &&
                transfers[i].receive_count == passages[i].message.receive_count,
            "another transfer is under way");
}

void Player::check_awakened() {
  std::set<std::string> awakened;
  for (const QueueRef& ref : engine_->take_awakened()) awakened.insert(ref.name);
  for (const Queue& queue : model_.queues())
    require(!model_.has_receivable(queue) || receivable_.contains(queue.name) ||
                awakened.contains(queue.name),
            fmt::format("something came to {} but nobody was woken", queue.name));
}

}  // namespace stanchion::reference
