#include "sim/auditor.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "base/check.h"
#include "base/text.h"
#include "model/action.h"
#include "model/limits.h"

namespace stanchion::sim {
namespace {

// A refusal that says nothing about the call itself: the disk is full, or cannot be read.
bool is_about_the_server(const Error& error) {
  return error.code == ErrorCode::kServiceUnavailable || error.code == ErrorCode::kInternalFailure;
}

using std::chrono::seconds;
using Outcome = Op::Outcome;

template <class T>
concept OnQueue = requires(const T& request) {
  { request.queue } -> std::convertible_to<const QueueRef&>;
};

}  // namespace

Auditor::Queue::Queue(std::string queue_name)
    : name(std::move(queue_name)), fifo(is_fifo_name(name)) {}

Auditor::Queue& Auditor::queue(const std::string& name) {
  const auto found = queues_.find(name);
  return found != queues_.end() ? found->second : queues_.emplace(name, Queue(name)).first->second;
}

void Auditor::broken(const char* promise, const std::string& what) const {
  throw Violation(fmt::format("{}: {}", promise, what));
}

CallNo Auditor::submitted(const Request& request) {
  const CallNo number = next_call_++;
  Call& call = open_.emplace(number, Call{}).first->second;
  call.request = request;
  call.op = std::make_shared<Op>();
  call.op->from = tick();
  if (stale_ > 0 && impaired_now_ && traits_of(action_of(request)).effect == Effect::kReads)
    call.op->from = moment_of_a_while_ago();
  call.op->lo = world_.clock();
  call.impaired = impaired_now_;
  call.failing = failing_now_;
  call.began = world_.now();
  call.began_steady = world_.steady();
  std::visit([&](const auto& r) { prepare(call, r); }, call.request);
  return number;
}

Moment Auditor::moment_of_a_while_ago() {
  while (moments_.size() > 1 && moments_[1].first <= world_.now() - stale_) moments_.pop_front();
  return moments_.front().second;
}

OpPtr Auditor::add_part(Call& call) {
  call.parts.push_back(std::make_shared<Op>(*call.op));
  return call.parts.back();
}

void Auditor::close(Call& call, Outcome outcome) {
  const auto end = [&, to = tick()](Op& op) {
    op.to = to;
    op.hi = world_.high_water();
    op.outcome = outcome;
  };
  end(*call.op);
  for (const OpPtr& part : call.parts) end(*part);
  if (const auto* receive = std::get_if<ReceiveMessage>(&call.request);
      receive != nullptr && outcome != Outcome::kDoubt)
    std::erase(queue(receive->queue.name).receives, call.op);
}

void Auditor::replied(CallNo number, const Reply& reply) {
  auto node = open_.extract(number);
  CHECK(!node.empty(), "a call is answered once");
  Call& call = node.mapped();
  close(call, reply ? Outcome::kDone : Outcome::kVoid);
  check_patience(call);
  if (!reply) check_refusal(call, reply.error());
  std::visit(
      [&](const auto& r) {
        using R = std::remove_cvref_t<decltype(r)>;
        if constexpr (OnQueue<R> && !std::is_same_v<R, CreateQueue>)
          if (reply) check_existence(call, r.queue.name);
        if (reply) return settle(call, r, *reply);
        if constexpr (std::is_same_v<R, DeleteMessage>) {
          if (!is_about_the_server(reply.error()))
            settle_delete(call.parts[0], r.receipt_handle, false);
        } else if constexpr (std::is_same_v<R, ChangeMessageVisibility>) {
          if (!is_about_the_server(reply.error()))
            settle_change(call.parts[0], r.receipt_handle, false);
        }
      },
      call.request);
}

void Auditor::in_doubt(CallNo number) {
  auto node = open_.extract(number);
  CHECK(!node.empty(), "a call is answered once");
  close(node.mapped(), Outcome::kDoubt);
  ++statistics_.doubts;
}

void Auditor::never_happened(CallNo number) {
  auto node = open_.extract(number);
  CHECK(!node.empty(), "a call is answered once");
  close(node.mapped(), Outcome::kVoid);
}

void Auditor::time_began() {
  for (auto& [number, call] : open_) {
    call.op->lo = std::min(call.op->lo, world_.clock());
    for (const OpPtr& part : call.parts) part->lo = call.op->lo;
  }
}

void Auditor::impaired(bool now) {
  impaired_now_ = now;
  if (now)
    for (auto& [number, call] : open_) call.impaired = true;
}

void Auditor::disk_full(bool now) {
  full_last_ = full_now_ || now ? tick() : full_last_;
  full_now_ = now;
}

void Auditor::failing(bool now) {
  failing_now_ = now;
  if (now)
    for (auto& [number, call] : open_) call.failing = true;
}

void Auditor::time_jumped() {
  jumped_ = world_.now();
}

// A move of the clock takes a moment to reach all shards.
bool Auditor::waited_through_a_jump(const Call& call) const {
  return jumped_ && call.began < *jumped_ + 100 * kMillisecond;
}

void Auditor::prepare(Call& call, const SendMessage& r) {
  prepare_send(call, r.queue, r.message, r.sender_id);
}

void Auditor::prepare(Call& call, const SendMessageBatch& r) {
  for (const auto& entry : r.entries) prepare_send(call, r.queue, entry.message, r.sender_id);
}

void Auditor::prepare_send(Call& call, const QueueRef& ref, const OutgoingMessage& outgoing,
                           const std::string& sender) {
  const std::size_t index = messages_.size();
  Queue& target = queue(ref.name);
  Message& message = messages_.emplace_back();
  message.body = outgoing.body.value();
  message.queue = ref.name;
  message.fifo = target.fifo;
  message.sent = outgoing;
  message.sender = sender;
  message.op = add_part(call);
  message.lives.emplace_back().home = ref.name;
  const bool added = by_body_.emplace(message.body, index).second;
  CHECK(added, "every body is sent once, so that it can be traced");
  if (target.fifo) {
    message.deduplication_id =
        outgoing.deduplication_id.value_or(to_hex(as_text(sha256(message.body))));
    target.by_deduplication[message.deduplication_id].push_back(index);
  }
  call.sent.push_back(index);
}

void Auditor::prepare(Call& call, const ReceiveMessage& r) {
  queue(r.queue.name).receives.push_back(call.op);
  if (!r.attempt_id) return;
  tries_[attempt_key(r)].push_back({call.op, r.visibility_timeout});
  // A repeated attempt restarts the visibility timeouts of the messages it got before, whether it
  // is answered or not.
  for_each_of_attempt(r, [&](Delivery& delivery) {
    delivery.changes.push_back({call.op, r.visibility_timeout});
  });
}

void Auditor::prepare_delete(Call& call, const std::optional<std::string>& handle) {
  const OpPtr op = add_part(call);
  if (const auto found = by_handle_.find(handle.value_or("")); found != by_handle_.end())
    messages_[found->second.message].deletes.push_back(op);
}

void Auditor::prepare(Call& call, const DeleteMessage& r) {
  prepare_delete(call, r.receipt_handle);
}

void Auditor::prepare(Call& call, const DeleteMessageBatch& r) {
  for (const auto& entry : r.entries) prepare_delete(call, entry.receipt_handle);
}

void Auditor::prepare_change(Call& call, const std::optional<std::string>& handle,
                             std::optional<std::int64_t> timeout) {
  const OpPtr op = add_part(call);
  const auto found = by_handle_.find(handle.value_or(""));
  if (found == by_handle_.end()) return;
  for_each_changed(found->second, [&](Delivery& delivery) {
    delivery.changes.push_back({op, timeout.value_or(0)});
  });
}

void Auditor::prepare(Call& call, const ChangeMessageVisibility& r) {
  prepare_change(call, r.receipt_handle, r.visibility_timeout);
}

void Auditor::prepare(Call& call, const ChangeMessageVisibilityBatch& r) {
  for (const auto& entry : r.entries)
    prepare_change(call, entry.receipt_handle, entry.visibility_timeout);
}

void Auditor::prepare(Call& call, const PurgeQueue& r) {
  queue(r.queue.name).wipes.push_back(call.op);
}

void Auditor::prepare(Call& call, const DeleteQueue& r) {
  Queue& target = queue(r.queue.name);
  target.wipes.push_back(call.op);
  target.exists.write(call.op, false);
  target.highest.clear();
}

void Auditor::prepare(Call& call, const CreateQueue& r) {
  queue(r.queue.name).exists.write(call.op, true);
  write_settings(call, r.queue, r.attributes, true);
}

void Auditor::prepare(Call& call, const SetQueueAttributes& r) {
  write_settings(call, r.queue, r.attributes, false);
}

void Auditor::prepare(Call& call, const StartMessageMoveTask& r) {
  const auto source = parse_queue_arn(r.source_arn.value());
  MoveTask task{call.op, {}, kOpen};
  if (r.destination_arn) task.destination = parse_queue_arn(*r.destination_arn)->name;
  queue(source->name).tasks.push_back(std::move(task));
}

void Auditor::settle(Call& call, const SendMessage&, const ReplyValue& reply) {
  settle_send(call, call.sent[0], std::get<SentMessage>(reply));
}

void Auditor::settle(Call& call, const SendMessageBatch& r, const ReplyValue& reply) {
  const auto& result = std::get<SendMessageBatchResult>(reply);
  if (result.successful.size() + result.failed.size() != r.entries.size())
    broken("A1", "a batch of sends was not answered entry by entry");
  for (std::size_t i = 0; i < r.entries.size(); ++i) {
    const auto found = std::ranges::find(result.successful, *r.entries[i].id,
                                         &SendMessageBatchResult::Success::id);
    if (found == result.successful.end())
      broken("A1", "an entry of a batch of sends failed without a reason");
    settle_send(call, call.sent[i], found->message);
  }
}

void Auditor::settle_send(Call& call, std::size_t index, const SentMessage& sent) {
  Message& message = messages_[index];
  Life& life = message.lives.front();
  ++statistics_.sends;
  if (sent.body_md5 != md5(message.body))
    broken("A1", fmt::format("the MD5 that {} was acknowledged with is wrong", message.body));
  if (sent.sequence_number.has_value() != message.fifo)
    broken("A1", fmt::format("{} has, or lacks, a sequence number", message.body));
  // A receive may have shown us the message before its sender was answered.
  if (life.id && *life.id != sent.id && message.lives.size() == 1)
    broken("A1", fmt::format("{} was delivered under another id than it was acknowledged with",
                             message.body));
  life.id = sent.id;
  if (!message.fifo) return;
  if (life.deliveries.empty()) life.seq = sent.sequence_number;
  settle_deduplication(index);
  if (messages_[index].duplicate) return;
  // A queue that is deleted and created anew starts counting from the beginning.
  Queue& target = queue(message.queue);
  if (std::ranges::any_of(target.wipes, [&](const OpPtr& wipe) {
        return wipe->may_have_happened() && wipe->to > message.op->from;
      }))
    return;
  auto& highest = target.highest;
  const auto later = std::ranges::upper_bound(highest, call.op->from, std::less<>(),
                                              &std::pair<Moment, Seq>::first);
  if (later != highest.begin() && !(std::prev(later)->second < *sent.sequence_number) &&
      !message.twins)
    broken("A4", fmt::format("{} was sent after another message of its queue was acknowledged and "
                             "got a lower sequence number",
                             message.body));
  const Seq most = highest.empty() ? Seq(0) : highest.back().second;
  highest.emplace_back(call.op->to, std::max(most, *sent.sequence_number));
}

// Whether this send was a repetition of an earlier one, and whether it had to be.
void Auditor::settle_deduplication(std::size_t index) {
  Message& message = messages_[index];
  Queue& target = queue(message.queue);
  bool by_queue = false, by_group = false;
  target.by_group.possible(message.op->from, message.op->to,
                           [&](bool scoped) { (scoped ? by_group : by_queue) = true; });
  const MessageId id = *message.lives.front().id;
  std::vector<std::size_t> doubtful;
  for (const std::size_t i : target.by_deduplication[message.deduplication_id]) {
    Message& other = messages_[i];
    if (i == index || !other.op->may_have_happened() || other.duplicate) continue;
    const bool same_group = other.group() == message.group();
    if (!by_queue && !same_group) continue;
    const bool unknown = !other.op->done();
    if (unknown && !other.lives.front().id) {
      doubtful.push_back(i);
      continue;
    }
    if (other.lives.front().id == id) {
      if (message.op->lo > sent_hi(other) + limits::kDeduplicationWindow)
        broken("A5", fmt::format("{} was dropped as a repetition of {}, which was sent long before",
                                 message.body, other.body));
      ++statistics_.duplicates;
      // Entries of one batch are processed in their order.
      const bool in_order =
          other.op->before(*message.op) || (other.op->from == message.op->from && i < index);
      if (in_order) {
        message.duplicate = true;
        return;
      }
      doubtful.push_back(i);
      continue;
    }
    const bool surely_inside = message.op->hi < sent_lo(other) + limits::kDeduplicationWindow;
    const bool wiped = std::ranges::any_of(target.wipes, [&](const OpPtr& wipe) {
      return wipe->may_have_happened() && wipe->to > other.op->from;
    });
    const bool scope_known = same_group || !by_group;
    const bool surely_there = !other.twins && !other.may_be_duplicate && other.lives.size() == 1;
    if (surely_inside && !wiped && scope_known && other.op->before(*message.op) && surely_there)
      broken("A5", fmt::format("{} repeats {} inside the deduplication window and was accepted",
                               message.body, other.body));
  }
  // Sends in doubt under the same key: if one of them happened, this one was its repetition. Only
  // one of them can be seen from now on, whichever it is.
  if (doubtful.empty()) return;
  auto twins = std::make_shared<std::vector<std::size_t>>(doubtful);
  for (const std::size_t i : doubtful)
    if (messages_[i].twins)
      for (const std::size_t k : *messages_[i].twins)
        if (std::ranges::find(*twins, k) == twins->end()) twins->push_back(k);
  if (std::ranges::find(*twins, index) == twins->end()) twins->push_back(index);
  for (const std::size_t i : *twins) messages_[i].twins = twins;
  for (const std::size_t i : *twins)
    if (!messages_[i].lives.front().deliveries.empty()) resolve_twins(messages_[i]);
}

// Of several sends with one deduplication id, exactly one exists, and it was seen: sends
// acknowledged with its message id do not exist. The others may still be twins, if one of them has
// no id yet.
void Auditor::resolve_twins(Message& seen) {
  if (!seen.twins) return;
  const auto twins = std::exchange(seen.twins, nullptr);
  const auto& id = seen.lives.front().id;
  auto rest = std::make_shared<std::vector<std::size_t>>();
  bool some_without_id = false;
  for (const std::size_t i : *twins) {
    Message& other = messages_[i];
    if (&other == &seen) continue;
    other.twins = nullptr;
    const auto& other_id = other.lives.front().id;
    if (!id) {
      // Seen only after a move task gave it another id: the other exists or not.
      other.deletes.push_back(std::make_shared<Op>(*seen.op));
      other.deletes.back()->outcome = Outcome::kDoubt;
      other.may_be_duplicate = true;
    } else if (other_id == id) {
      other.duplicate = true;
    } else {
      rest->push_back(i);
      some_without_id |= !other_id;
    }
  }
  const auto has_twin = [&](std::size_t i) {
    return some_without_id || std::ranges::any_of(*rest, [&](std::size_t k) {
             return k != i && messages_[k].lives.front().id == messages_[i].lives.front().id;
           });
  };
  if (rest->size() < 2) return;
  for (const std::size_t i : *rest)
    if (has_twin(i)) messages_[i].twins = rest;
}

void Auditor::settle(Call& call, const DeleteMessage& r, const ReplyValue&) {
  settle_delete(call.parts[0], r.receipt_handle, true);
}

void Auditor::settle(Call& call, const DeleteMessageBatch& r, const ReplyValue& reply) {
  const auto& result = std::get<BatchResult>(reply);
  for (std::size_t i = 0; i < r.entries.size(); ++i) {
    const bool done =
        std::ranges::find(result.successful, *r.entries[i].id) != result.successful.end();
    settle_delete(call.parts[i], r.entries[i].receipt_handle, done);
  }
}

void Auditor::settle_delete(const OpPtr& op, const std::optional<std::string>& handle, bool done) {
  const auto found = by_handle_.find(handle.value_or(""));
  if (found == by_handle_.end()) return;
  const HandleOf at = found->second;
  Message& message = messages_[at.message];
  const Delivery& delivery = message.lives[at.life].deliveries[at.delivery];
  const bool valid = receipt_surely_valid(message, at.life, delivery, *op);
  if (!done) {
    op->outcome = Outcome::kVoid;
    if (valid && !message.gone)
      broken("A2", fmt::format("a valid receipt of {} was refused by a delete{}", message.body,
                               story_of(message)));
    return;
  }
  op->outcome = Outcome::kVoid;
  const bool expired = message.fifo && at.life + 1 == message.lives.size() &&
                       op->lo > until_max(delivery) && surely_in(message, delivery.queue, nullptr);
  op->outcome = Outcome::kDone;
  if (expired)
    broken("A2", fmt::format("an expired receipt of {} was taken by a delete of a FIFO queue{}",
                             message.body, story_of(message)));
  ++statistics_.deletes;
  if (impaired_now_) ++statistics_.drained_while_full;
  if (message.gone) return;
  if (valid) {
    message.gone = op->to;
    message.gone_life = at.life;
    message.gone_count = delivery.count;
    message.gone_by = "deleted by a valid receipt";
    for (const Delivery& other : message.lives[at.life].deliveries)
      if (other.count > delivery.count)
        broken("A2", fmt::format("{} was deleted by receive {} and had been received again{}",
                                 message.body, delivery.count, story_of(message)));
  } else if (at.life + 1 == message.lives.size() && message.life().home == delivery.queue &&
             !may_have_left(message, nullptr) && !may_have_expired(message)) {
    message.gone = op->to;
    message.gone_by = "deleted by an old receipt";
  }
}

void Auditor::settle(Call& call, const ChangeMessageVisibility& r, const ReplyValue&) {
  settle_change(call.parts[0], r.receipt_handle, true);
}

void Auditor::settle(Call& call, const ChangeMessageVisibilityBatch& r, const ReplyValue& reply) {
  const auto& result = std::get<BatchResult>(reply);
  for (std::size_t i = 0; i < r.entries.size(); ++i) {
    const bool done =
        std::ranges::find(result.successful, *r.entries[i].id) != result.successful.end();
    settle_change(call.parts[i], r.entries[i].receipt_handle, done);
  }
}

void Auditor::settle_change(const OpPtr& op, const std::optional<std::string>& handle, bool done) {
  const auto found = by_handle_.find(handle.value_or(""));
  if (found == by_handle_.end()) return;
  const HandleOf at = found->second;
  Message& message = messages_[at.message];
  for_each_changed(
      at, [&](Delivery& delivery) { settle_change_of(message, at.life, delivery, op, done); });
  if (!done) op->outcome = Outcome::kVoid;
}

void Auditor::settle_change_of(const Message& message, std::size_t life, Delivery& delivery,
                               const OpPtr& op, bool done) {
  const auto change = std::ranges::find(delivery.changes, op, &Change::op);
  if (change == delivery.changes.end()) return;  // Received after the change was made.
  // Whether the message was in flight does not depend on this change itself.
  Change own = *change;
  delivery.changes.erase(change);
  // An older receipt of a standard queue does as well, but a receive that overlaps the change may
  // have come behind it, and the message was visible then.
  const bool received_before = message.fifo || delivery.op->before(*op);
  own.sure =
      received_before && receipt_surely_valid(message, life, delivery, *op) && !message.gone &&
      std::ranges::none_of(message.deletes, [](const OpPtr& d) { return d->may_have_happened(); });
  if (!done) {
    if (own.sure &&
        own.op->hi + seconds(*own.timeout) < delivery.taken_lo + limits::kVisibilityTotalMax)
      broken("A3", fmt::format("a valid receipt of {} was refused by a change of visibility{}",
                               message.body, story_of(message)));
    return;
  }
  const bool alone =
      std::ranges::all_of(delivery.changes, [&](const Change& c) { return c.op->before(*op); });
  own.sure = own.sure && alone;
  delivery.changes.push_back(std::move(own));
}

void Auditor::settle(Call& call, const PurgeQueue& r, const ReplyValue&) {
  settle_wipe(call, r.queue.name);
}

void Auditor::settle(Call& call, const DeleteQueue& r, const ReplyValue&) {
  settle_wipe(call, r.queue.name);
  queue(r.queue.name).highest.clear();
}

void Auditor::settle_wipe(Call& call, const std::string& name) {
  for (Message& message : messages_) {
    if (message.gone || message.life().home != name || !message.op->done()) continue;
    if (!was_there_before(message, *call.op) || message.twins || may_have_left(message, nullptr))
      continue;
    message.gone = call.op->to;
    message.gone_by = fmt::format("wiped by {}", name_of(action_of(call.request)));
  }
}

void Auditor::begin_drain() {
  draining_ = true;
}

void Auditor::finish_drain() {
  const auto may_be_gone = [&](const Message& message) {
    return message.duplicate || message.gone || may_be_wiped(message) ||
           may_have_expired(message) || std::ranges::any_of(message.deletes, [](const OpPtr& d) {
             return d->may_have_happened();
           });
  };
  for (const Message& message : messages_) {
    if (!message.op->done() && message.life().deliveries.empty()) continue;
    if (may_be_gone(message)) continue;
    // Where one of several sends exists, it may be one that is older than this one.
    if (message.twins && std::ranges::any_of(*message.twins, [&](std::size_t i) {
          return may_be_gone(messages_[i]);
        }))
      continue;
    broken("A1", fmt::format("{} was acknowledged and is lost{}", message.body, story_of(message)));
  }
}

}  // namespace stanchion::sim
