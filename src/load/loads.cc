#include "load/loads.h"

#include <fmt/format.h>

#include <algorithm>

namespace stanchion::load {
namespace {

using Step = Worker::Step;

// If nothing arrives for this long, missing messages are lost.
constexpr std::chrono::seconds kPatience(30);
// Time for a poll to be parked again before the next send, unless a rate is given.
constexpr std::chrono::milliseconds kWakeGap(2);

// Deletes the first of a worker's receipts, as many as fit into one request.
void write_delete(Shared& shared, Worker& worker) {
  shared.writer.remove(worker.request, worker.queue, worker.receipts);
  worker.step = Step::kDelete;
}

}  // namespace

bool Shared::read(std::string_view body) {
  if (!reader.read(options.protocol, body)) return false;
  if (reader.failed() > 0) {
    refusals.refused += reader.failed();
    if (refusals.first.empty()) refusals.first = reader.first_failure();
  }
  return true;
}

void write_send(Shared& shared, Worker& worker, std::uint32_t queue, std::size_t count) {
  worker.queue = queue;
  worker.step = Step::kSend;
  worker.messages.clear();
  for (std::size_t i = 0; i < count; ++i) worker.messages.push_back({shared.ledger.next(queue)});
  shared.writer.send(worker.request, shared.ledger, worker.messages);
}

bool take_sent(Shared& shared, Worker& worker, std::string_view body) {
  if (!shared.read(body)) return false;
  const bool batch = worker.messages.size() > 1;
  if (shared.reader.rows().size() + shared.reader.failed() != worker.messages.size()) return false;
  for (const ReplyRow& row : shared.reader.rows()) {
    const std::size_t at =
        batch ? static_cast<std::size_t>(row.id.size() == 1 ? row.id[0] - '0' : -1) : 0;
    if (at >= worker.messages.size()) return false;
    const PlacedMessage& message = worker.messages[at];
    const auto sent = std::string_view(worker.request).substr(message.at, shared.options.body_size);
    shared.ledger.on_sent(message.id, sent, row.md5, row.sequence);
  }
  return true;
}

bool take_received(Shared& shared, Worker& worker, std::string_view body) {
  if (!shared.read(body)) return false;
  worker.receipts.clear();
  for (const ReplyRow& row : shared.reader.rows()) {
    if (row.receipt.empty()) return false;
    shared.ledger.on_received(worker.queue, row.body, row.md5);
    if (shared.options.protocol == Protocol::kJson) {
      worker.receipts.emplace_back(row.receipt);
    } else {
      worker.receipts.push_back(decode_xml(row.receipt));
    }
  }
  return true;
}

// Sending.

Load::Next SendLoad::next(Worker& worker, Time now) {
  const std::uint64_t count = window_.count();
  if (!window_.open(now) || (count > 0 && begun_ >= count)) return Next::kDone;
  const std::size_t size = count > 0 ? std::min<std::size_t>(batch_, count - begun_) : batch_;
  begun_ += size;
  write_send(shared_, worker, shared_.next_queue(), size);
  return Next::kRequest;
}

bool SendLoad::on_reply(Worker& worker, std::string_view body, Time now) {
  worker.step = Step::kIdle;
  if (!take_sent(shared_, worker, body)) return false;
  shared_.done += worker.messages.size();
  if (measured_ && window_.measures(now))
    shared_.stats.add(Op::kSend, now - worker.due, worker.messages.size());
  return true;
}

// Receiving.

Load::Next ReceiveLoad::next(Worker& worker, Time) {
  worker.queue = shared_.next_queue();
  shared_.writer.receive(worker.request, worker.queue, shared_.options.batch, 0);
  worker.step = Step::kReceive;
  return Next::kRequest;
}

bool ReceiveLoad::on_reply(Worker& worker, std::string_view body, Time now) {
  worker.step = Step::kIdle;
  if (!take_received(shared_, worker, body)) return false;
  const std::size_t count = worker.receipts.size();
  empty_in_a_row_ = count == 0 ? empty_in_a_row_ + 1 : 0;
  if (count == 0) return true;
  received_ += count;
  shared_.done += count;
  if (measured_) shared_.stats.add(Op::kReceive, now - worker.due, count);
  auto& kept = receipts_[worker.queue];
  std::ranges::move(worker.receipts, std::back_inserter(kept));
  worker.receipts.clear();
  return true;
}

// A server may answer empty while another queue has the rest, but not for ever.
bool ReceiveLoad::finished(Time) const {
  return received_ >= expected_ ||
         empty_in_a_row_ > 100 * (shared_.options.connections + shared_.writer.queue_count());
}

// Deleting.

Load::Next DeleteLoad::next(Worker& worker, Time) {
  for (std::size_t tried = 0; tried < receipts_.size(); ++tried) {
    const std::uint32_t queue = shared_.next_queue();
    auto& kept = receipts_[queue];
    if (kept.empty()) continue;
    const std::size_t count = std::min(kept.size(), shared_.options.batch);
    worker.queue = queue;
    worker.receipts.assign(std::make_move_iterator(kept.end() - static_cast<std::ptrdiff_t>(count)),
                           std::make_move_iterator(kept.end()));
    kept.resize(kept.size() - count);
    write_delete(shared_, worker);
    return Next::kRequest;
  }
  return Next::kDone;
}

bool DeleteLoad::on_reply(Worker& worker, std::string_view body, Time now) {
  worker.step = Step::kIdle;
  if (!shared_.read(body)) return false;
  shared_.done += worker.receipts.size();
  if (measured_) shared_.stats.add(Op::kDelete, now - worker.due, worker.receipts.size());
  worker.receipts.clear();
  return true;
}

void DeleteLoad::on_failure(Worker& worker) {
  worker.step = Step::kIdle;
  worker.receipts.clear();
}

// The cycle.

CycleLoad::CycleLoad(Shared& shared, Window& window, Ending ending)
    : shared_(shared),
      window_(window),
      ending_(ending),
      backlog_max_(shared.ledger.balance() +
                   static_cast<std::int64_t>(shared.options.connections * shared.options.batch)) {}

bool CycleLoad::sends(Time now) const {
  return window_.open(now) && (window_.count() == 0 || begun_ < window_.count()) &&
         shared_.ledger.counts().damaged == 0 && !stalled(now);
}

bool CycleLoad::stalled(Time now) const {
  return last_progress_ != Time{} && now - last_progress_ > kPatience;
}

// Damaged messages are not recognised as received, so the load would wait for them.
bool CycleLoad::all_taken() const {
  return ending_ == Ending::kLeave || shared_.ledger.outstanding() == 0 ||
         shared_.ledger.counts().damaged > 0;
}

bool CycleLoad::enough_waits() const {
  return shared_.ledger.balance() >= backlog_max_;
}

bool CycleLoad::begins_unit(const Worker& worker) const {
  return worker.receipts.empty() && worker.step == Step::kIdle;
}

void CycleLoad::set_step(Worker& worker, Step step) {
  const auto is_busy = [](Step s) { return s == Step::kSend || s == Step::kDelete; };
  busy_ -= is_busy(worker.step) ? 1 : 0;
  busy_ += is_busy(step) ? 1 : 0;
  worker.step = step;
}

// A worker whose send was answered receives (its step is kReceive), and one that has received
// deletes.
Load::Next CycleLoad::next(Worker& worker, Time now) {
  if (last_progress_ == Time{}) last_progress_ = now;
  if (!worker.receipts.empty()) {
    shared_.writer.remove(worker.request, worker.queue, worker.receipts);
    set_step(worker, Step::kDelete);
    return Next::kRequest;
  }
  const bool sending = sends(now);
  if (worker.step == Step::kIdle && sending && !enough_waits()) {
    begun_ += shared_.options.batch;
    write_send(shared_, worker, shared_.next_queue(), shared_.options.batch);
    worker.step = Step::kIdle;
    set_step(worker, Step::kSend);
    return Next::kRequest;
  }
  if (!sending && all_taken()) {
    set_step(worker, Step::kIdle);
    return Next::kDone;
  }
  // With several queues the wait would be on one of them, while another may have the missing
  // messages.
  const bool own = worker.step == Step::kReceive && sending;
  if (!own) worker.queue = shared_.next_queue();
  const std::size_t wait = own || shared_.writer.queue_count() == 1 ? shared_.options.wait : 0;
  shared_.writer.receive(worker.request, worker.queue, shared_.options.batch,
                         sending ? wait : std::min<std::size_t>(wait, 1));
  set_step(worker, Step::kReceive);
  return Next::kRequest;
}

bool CycleLoad::on_reply(Worker& worker, std::string_view body, Time now) {
  const bool counts = window_.measures(now);
  const auto took = now - worker.due;
  switch (worker.step) {
    case Step::kSend:
      if (!take_sent(shared_, worker, body)) return false;
      last_progress_ = now;
      if (counts) shared_.stats.add(Op::kSend, took, worker.messages.size());
      set_step(worker, Step::kReceive);
      return true;
    case Step::kReceive:
      if (!take_received(shared_, worker, body)) return false;
      if (worker.receipts.empty()) return true;
      last_progress_ = now;
      if (counts) shared_.stats.add(Op::kReceive, took, worker.receipts.size());
      return true;
    case Step::kDelete:
      if (!shared_.read(body)) return false;
      shared_.done += worker.receipts.size();
      if (counts) shared_.stats.add(Op::kDelete, took, worker.receipts.size());
      if (counts) shared_.stats.add(Op::kCycle, now - worker.unit_due, worker.receipts.size());
      worker.receipts.clear();
      set_step(worker, Step::kIdle);
      return true;
    case Step::kIdle:
      break;
  }
  return false;
}

void CycleLoad::on_failure(Worker& worker) {
  worker.receipts.clear();
  set_step(worker, Step::kIdle);
}

bool CycleLoad::finished(Time now) const {
  if (sends(now) || busy_ > 0) return false;
  return all_taken() || stalled(now);
}

// The wake-up.

WakeUpLoad::WakeUpLoad(Shared& shared, Window& window)
    : shared_(shared),
      window_(window),
      gap_(shared.options.rate > 0
               ? Histogram::Nanos(static_cast<Histogram::Nanos::rep>(1e9 / shared.options.rate))
               : Histogram::Nanos(kWakeGap)) {}

Load::Next WakeUpLoad::next(Worker& worker, Time now) {
  if (worker.index == 0) return next_send(worker, now);
  worker.queue = kPolled;
  if (!worker.receipts.empty()) {
    write_delete(shared_, worker);
    return Next::kRequest;
  }
  shared_.writer.receive(worker.request, kPolled, 1, 20);
  worker.step = Step::kReceive;
  return Next::kRequest;
}

Load::Next WakeUpLoad::next_send(Worker& worker, Time now) {
  if (!window_.open(now)) return Next::kDone;
  if (next_at_ == Time{}) next_at_ = now + 10 * gap_;  // All polls are parked before the first.
  if (expected_ || now < next_at_) {
    worker.ask_again = std::max(next_at_, now + gap_ / 4);
    return Next::kLater;
  }
  waking_ = !waking_;
  expected_ = waking_;
  write_send(shared_, worker, waking_ ? kPolled : kPlain, 1);
  sent_ = now;
  answered_ = woken_ = Time{};
  worker.due = now;
  return Next::kRequest;
}

// Either of the two answers may come first.
void WakeUpLoad::note_wake_up(Time now) {
  if (answered_ == Time{} || woken_ == Time{}) return;
  ++shared_.done;
  if (!window_.measures(now)) return;
  shared_.stats.add(Op::kWakeUp, woken_ - sent_, 1);
  shared_.stats.add(Op::kWakeLag, woken_ - answered_, 1);
}

bool WakeUpLoad::on_reply(Worker& worker, std::string_view body, Time now) {
  switch (worker.step) {
    case Step::kSend:
      if (!take_sent(shared_, worker, body)) return false;
      if (window_.measures(now))
        shared_.stats.add(waking_ ? Op::kWakingSend : Op::kPlainSend, now - worker.due, 1);
      answered_ = now;
      if (waking_) {
        note_wake_up(now);
      } else {
        next_at_ = now + gap_;
      }
      break;
    case Step::kReceive:
      if (!take_received(shared_, worker, body)) return false;
      if (worker.receipts.empty()) break;
      woken_ = now;
      note_wake_up(now);
      break;
    case Step::kDelete:
      if (!shared_.read(body)) return false;
      worker.receipts.clear();
      expected_ = false;
      next_at_ = now + gap_;
      break;
    case Step::kIdle:
      return false;
  }
  worker.step = Step::kIdle;
  return true;
}

void WakeUpLoad::on_failure(Worker& worker) {
  worker.step = Step::kIdle;
  worker.receipts.clear();
  expected_ = false;
}

// Any URL.

Load::Next HttpLoad::next(Worker& worker, Time now) {
  if (!window_.open(now) || (window_.count() > 0 && begun_ >= window_.count())) return Next::kDone;
  ++begun_;
  if (worker.request.empty()) shared_.writer.post(worker.request, body_);
  worker.step = Step::kSend;
  return Next::kRequest;
}

bool HttpLoad::on_reply(Worker& worker, std::string_view, Time now) {
  worker.step = Step::kIdle;
  ++shared_.done;
  if (window_.measures(now)) shared_.stats.add(Op::kRequest, now - worker.due, 1);
  return true;
}

}  // namespace stanchion::load
